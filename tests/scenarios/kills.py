"""What the scenarios that kill share: databases, services on them, kills, and reports of it.

Three stand on it: the steps of joint decisions (`crash`), what is due of leases (`lease_crash`),
and everything at once for a long time (`soak`).
"""

import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.servers import mariadb, postgres
from tests.servers.replica import Replica

from moorage.domain.changes import Change, Changeset, CreateProvider, PutFlavor, PutInventories
from moorage.domain.flavors import Flavor
from moorage.domain.providers import Inventory
from moorage.store import Ledger

SEED: Final = int(os.environ.get("MOORAGE_CRASH_SEED", "20261121"))
"""The same seed repeats a run, as far as the moments of a machine can be repeated."""
WORKER, SERVICE, DATABASE = "HTTP worker", "supervisor with all its processes", "database server"
PATIENCE: Final = 100.0
SERVERS: Final = {"postgresql": postgres, "mariadb": mariadb}


class Database(NamedTuple):
    """An empty one."""

    url: str
    restart: Callable[[], None] | None = None
    """Kills its server and starts it again; SQLite has none."""


@contextmanager
def database(kind: str, folder: Path) -> Iterator[Database]:
    """A new one on a server of its own."""
    if kind == "sqlite":
        yield Database(f"sqlite:///{folder / 'ledger.db'}")
        return
    if kind == "mariadb" and mariadb.program() is None:
        pytest.skip(mariadb.NONE_FOUND)
    with SERVERS[kind].running_server() as server:
        yield Database(SERVERS[kind].Databases(server.url).empty(), server.restart)


def stock(store: Ledger, vcpu: int, hosts: Iterable[str]) -> None:
    """Hosts by their UUIDs, with so many VCPU each; and a flavor of one."""
    changes: list[Change] = [PutFlavor(Flavor("1", "m1.small", {"VCPU": 1}))]
    for host in hosts:
        inventory = PutInventories(host, (Inventory("VCPU", vcpu),), None)
        changes += [CreateProvider(host, f"host-{host[-3:]}"), inventory]
    store.commit(Changeset(tuple(changes)))


@contextmanager
def services(
    folder: Path, urls: Sequence[str], number: int, *options: str
) -> Iterator[list[Replica]]:
    """So many, all of them up; with several URLs of one database each takes the next."""
    found = []
    for each in range(number):
        own = folder / f"service{each}"
        own.mkdir()
        found.append(Replica(own, urls[each % len(urls)], *options))
    try:
        for one in found:
            one.start()
        for one in found:
            one.up()
        yield found
    finally:
        for one in found:
            one.down()


class Kills:
    """Kills with SIGKILL, and counts by what was killed."""

    def __init__(self, restart: Callable[[], None] | None) -> None:
        """`restart` is the database server's, where there is one."""
        self.done: Counter[str] = Counter()
        self._restart = restart
        self.ways = (WORKER, SERVICE) if restart is None else (DATABASE, WORKER, SERVICE)
        """What can be killed."""

    def kill(self, what: str, service: Replica) -> None:
        """A worker is replaced by its supervisor; a database server is started again."""
        if what == WORKER:
            service.kill_worker()
        elif what == SERVICE:
            service.kill_everything()
        else:
            assert self._restart is not None
            self._restart()
        self.done[what] += 1

    def kill_and_start(self, what: str, service: Replica) -> None:
        """A service that was killed is up again afterwards."""
        self.kill(what, service)
        if what == SERVICE:
            service.down()
            service.start()
            service.up()


def wait_for(what: Callable[[], object], service: Replica) -> None:
    """Until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, service.log()
        time.sleep(0.05)


# --- reports ------------------------------------------------------------------------------------


def machine() -> str:
    """When and where a run was."""
    return (
        f"{datetime.now(tz=UTC):%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()}"
        " cores, which clients, services and database share with other work."
    )


def table(title: str, counts: Mapping[str, int]) -> list[str]:
    """The lines of a table in Markdown, and an empty one."""
    rows = (f"| {what} | {count:,} |" for what, count in sorted(counts.items()))
    return [f"| {title} | count |", "|---|---|", *rows, ""]


def append(page: Path, title: str, text: str) -> None:
    """Add a section to a page, which begins with its title."""
    page.parent.mkdir(parents=True, exist_ok=True)
    before = page.read_text() if page.exists() else title
    page.write_text(f"{before}\n{text}")
