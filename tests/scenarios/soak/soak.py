"""A soak: several services on one database, many clients, kills, and what must hold meanwhile.

    python -m tests.scenarios.soak.soak --database postgresql --seconds 1800 --kills 4

`make soak` runs it for half an hour on each database there is. Prints a report in Markdown, and
writes it where `--report` says; ends with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from tests.scenarios.soak.clients import MOVING, STEADY, TOTAL, Client
from tests.scenarios.soak.judging import Watcher, judge
from tests.scenarios.soak.killing import ALL, Killer
from tests.scenarios.soak.report import TITLE, Soaked, as_markdown
from tests.servers import mariadb, postgres
from tests.servers.replica import Replica

from moorage.domain.changes import Change, Changeset, CreateProvider, PutFlavor, PutInventories
from moorage.domain.flavors import Flavor
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_SERVERS = {"postgresql": postgres, "mariadb": mariadb}


@dataclass(frozen=True)
class Plan:
    """How long, and how much at once."""

    seconds: float = 60.0
    operations: int = 0
    """Requests to be answered before it may end, however long that takes."""
    clients: int = 64
    services: int = 3
    kills_per_minute: float = 0.0
    aims: tuple[str, ...] = ALL
    """What is killed, as often as it is named."""
    seed: int = 20261121


def prepare(store: Ledger) -> None:
    """Hosts and a flavor."""
    changes: list[Change] = [PutFlavor(Flavor("1", "m1.small", {"VCPU": 1}))]
    for host in STEADY + MOVING:
        stock = PutInventories(host, (Inventory("VCPU", TOTAL),), None)
        changes += [CreateProvider(host, f"host-{host[-3:]}"), stock]
    store.commit(Changeset(tuple(changes)))


@contextmanager
def replicas(folder: Path, databases: Sequence[str], count: int) -> Iterator[list[Replica]]:
    """Services on one database, all of them up; with several URLs of it each takes the next."""
    found = []
    for number in range(count):
        own = folder / f"replica{number}"
        own.mkdir()
        found.append(Replica(own, databases[number % len(databases)]))
    try:
        for one in found:
            one.start()
        for one in found:
            one.up()
        yield found
    finally:
        for one in found:
            one.down()


def soak(
    folder: Path,
    *databases: str,
    plan: Plan,
    restart: Callable[[], None] | None = None,
) -> Soaked:
    """Run it and judge it; `restart` crashes the database's server and starts it again.

    Several URLs are of one database, each of another of its nodes.
    """
    store = open_store(databases[0])
    prepare(store)
    stop, killing = Event(), plan.kills_per_minute > 0
    with replicas(folder, databases, plan.services) as served:
        clients = [
            Client(number, served, random.Random(f"{plan.seed}-{number}"), killing)
            for number in range(plan.clients)
        ]
        watcher = Watcher(store, killing=killing)
        dice = random.Random(plan.seed)
        killer = Killer(served, restart, dice, plan.kills_per_minute, plan.aims)
        threads = [Thread(target=client.run, args=(stop,)) for client in clients]
        threads.append(Thread(target=watcher.run, args=(stop,)))
        began = time.monotonic()
        for thread in threads:
            thread.start()
        while not _is_over(plan, clients, time.monotonic() - began):
            killer.wait(0.5)
        stop.set()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        for one in served:
            one.up()
        wrong = [one for client in clients for one in client.wrong]
        wrong += watcher.wrong + judge(store, clients)
        wrong += [f"log of a service: {text}" for one in served for text in _told(one.whole_log())]
    store.close()
    return Soaked.of(plan.services, clients, took, wrong, killer.done, watcher.looked)


def _is_over(plan: Plan, clients: list[Client], passed: float) -> bool:
    if any(client.wrong for client in clients):
        return True
    enough = sum(len(client.waits) for client in clients) >= plan.operations
    return enough and passed >= plan.seconds


def _told(log: str) -> list[str]:
    """What no service should ever have to say, with what it said around it."""
    found = (log.find(text) for text in ("Traceback", "database is locked"))
    return [log[max(at - 1_000, 0) : at + 3_000] for at in found if at >= 0]


def main() -> int:
    """From the command line."""
    asked = _arguments()
    plan = Plan(asked.seconds, asked.operations, asked.clients, asked.services, asked.kills)
    with tempfile.TemporaryDirectory(prefix="moorage-soak-") as name:
        module = _SERVERS.get(asked.database)
        with nullcontext() if module is None else module.running_server() as own:
            database, restart = asked.database, None
            if own is not None and module is not None:
                database, restart = module.Databases(own.url).empty(), own.restart
            elif database == "sqlite":
                database = f"sqlite:///{name}/ledger.db"
            found = soak(Path(name), database, plan=plan, restart=restart)
    text = as_markdown(found, kind=asked.database.partition(":")[0], command=_repeatable(asked))
    print(text)  # noqa: T201 - a command's result
    if asked.report is not None:
        asked.report.parent.mkdir(parents=True, exist_ok=True)
        before = asked.report.read_text() if asked.report.exists() else TITLE
        asked.report.write_text(f"{before}\n{text}")
    return bool(found.wrong)


def _repeatable(asked: argparse.Namespace) -> list[str]:
    """What was asked for, without where the report goes; of a URL only the kind."""
    given = {name: value for name, value in vars(asked).items() if name != "report"}
    given["database"] = asked.database.partition(":")[0]
    return [
        word
        for name, value in given.items()
        for word in (f"--{name}", f"{value:g}" if isinstance(value, float) else str(value))
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.soak.soak")
    say = parser.add_argument
    say(
        "--database",
        default="sqlite",
        help="sqlite, postgresql, mariadb, or the URL of an empty one",
    )
    say("--seconds", type=float, default=60.0, help="at least so long")
    say("--operations", type=int, default=10_000, help="at least so many answers")
    say("--clients", type=int, default=64, help="at once")
    say("--services", type=int, default=3, help="on the one database")
    say("--kills", type=float, default=0.0, help="a minute")
    say("--report", type=Path, help="append the report to this file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
