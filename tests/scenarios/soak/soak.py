"""A soak: several services on one database, many clients, and what must hold in the end.

    python -m tests.scenarios.soak.soak [database] [seconds] [clients] [services] [kills per minute]

The database is `sqlite`, `postgresql`, `mariadb` (a server of its own each) or a URL. `make soak`
runs it for half an hour on SQLite and on PostgreSQL. Prints what was done, the rate, and the
slowest answer; ends with 1 and a list if anything was wrong.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from tests.scenarios.soak.clients import MOVING, STEADY, TOTAL, Client
from tests.servers import mariadb, postgres
from tests.servers.replica import Replica

from moorage.domain.changes import Change, Changeset, CreateProvider, PutFlavor, PutInventories
from moorage.domain.flavors import Flavor
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOWEST = 30.0
"""Seconds after which a client counts as starved."""


@dataclass(frozen=True)
class Soaked:
    """What came of it."""

    wrong: list[str]
    done: Counter[str]
    seconds: float
    slowest: float
    least: int
    """Requests of the client that got fewest answered."""

    def told(self) -> str:
        """For the terminal."""
        total = sum(self.done.values())
        lines = [f"{count:8} {what}" for what, count in sorted(self.done.items())]
        lines.append(
            f"{total} requests in {self.seconds:.0f} s: {total / self.seconds:.0f} a second"
        )
        lines.append(f"slowest {self.slowest:.2f} s; the least served client had {self.least}")
        return "\n".join([*lines, *(f"WRONG: {one}" for one in self.wrong)])


def prepare(store: Ledger) -> None:
    """Hosts and a flavor."""
    changes: list[Change] = [PutFlavor(Flavor("1", "m1.small", {"VCPU": 1}))]
    for host in STEADY + MOVING:
        stock = PutInventories(host, (Inventory("VCPU", TOTAL),), None)
        changes += [CreateProvider(host, f"host-{host[-3:]}"), stock]
    store.commit(Changeset(tuple(changes)))


@contextmanager
def replicas(folder: Path, database: str, count: int) -> Iterator[list[Replica]]:
    """Services on one database, all of them up."""
    found = []
    for number in range(count):
        own = folder / f"replica{number}"
        own.mkdir()
        found.append(Replica(own, database))
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
    database: str,
    *,
    seconds: float,
    clients: int,
    services: int,
    kills_per_minute: float = 0.0,
    seed: int = 20261121,
) -> Soaked:
    """Run it and judge it."""
    store = open_store(database)
    prepare(store)
    dice, stop = random.Random(seed), Event()
    with replicas(folder, database, services) as served:
        every = [
            Client(number, served, random.Random(f"{seed}-{number}"), kills_per_minute > 0)
            for number in range(clients)
        ]
        threads = [Thread(target=client.run, args=(stop,)) for client in every]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        while (left := seconds - (time.monotonic() - began)) > 0 and not any(
            client.wrong for client in every
        ):
            if not kills_per_minute:
                time.sleep(min(left, 0.5))
                continue
            time.sleep(min(left, dice.expovariate(kills_per_minute / 60)))
            dice.choice(served).kill_worker()
        stop.set()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        for one in served:
            one.up()
        wrong = [one for client in every for one in client.wrong]
        wrong += judge(store, every)
        wrong += [
            f"log of a service: {text}" for one in served if "Traceback" in (text := one.log())
        ]
    store.close()
    done = sum((client.done for client in every), Counter[str]())
    return Soaked(
        wrong,
        done,
        took,
        max(client.slowest for client in every),
        min(sum(client.done.values()) for client in every),
    )


def judge(store: Ledger, clients: list[Client]) -> list[str]:
    """What is not as it must be, once all is quiet."""
    booked: Counter[str] = Counter()
    wrong = []
    for client in clients:
        wrong += judge_client(store, client, booked)
    wrong += judge_hosts(store, clients, booked)
    if said(Ledger(store._backend, None)) != said(store):
        wrong.append("a snapshot kept in step differs from a new one")
    return wrong


def judge_client(store: Ledger, client: Client, booked: Counter[str]) -> list[str]:
    """Everything acknowledged stands, at the generation that was told; adds up what stands."""
    wrong = []
    for name in list(client.doubtful):
        client.settle(name)
    for name, held in client.stands.items():
        found = store.consumer(name)
        stored = {one.provider: one.amounts["VCPU"] for one in found[1]} if found else {}
        booked.update(stored)
        generation = found[0].generation if found else None
        if (stored, generation) != (held, client.generation.get(name)):
            wrong.append(
                f"{name} has {stored} at {generation}, acknowledged was {held}"
                f" at {client.generation.get(name)}"
            )
    if client.slowest > SLOWEST:
        wrong.append(f"client {client.number} waited {client.slowest:.1f} s")
    return wrong


def judge_hosts(store: Ledger, clients: list[Client], booked: Counter[str]) -> list[str]:
    """Use is the sum of allocations; where nobody shrinks, within capacity, and counted exactly."""
    wrong = []
    snapshot = store.snapshot()
    columns = snapshot.classes["VCPU"]
    exact = not any(client.killing for client in clients)
    for host in STEADY + MOVING:
        row = snapshot.row(host)
        used, capacity = (
            int(one[columns.position[row]]) for one in (columns.used, columns.capacity)
        )
        if used != booked[host]:
            wrong.append(f"{host} is used {used}, allocations say {booked[host]}")
        if host in STEADY and used > capacity:
            wrong.append(f"{host} is over its capacity")
        expected = 1 + sum(client.moved[host] for client in clients)
        if host in STEADY and exact and snapshot.generation[row] != expected:
            wrong.append(f"{host} is at {snapshot.generation[row]}, counted were {expected}")
    return wrong


def said(store: Ledger) -> dict[str, tuple[int, int]]:
    """What a snapshot says of every provider."""
    snapshot = store.snapshot()
    return {
        one: (int(snapshot.generation[row]), int(snapshot.revisions[row]))
        for one, row in snapshot.row_of.items()
    }


@contextmanager
def database_of(kind: str, folder: Path) -> Iterator[str]:
    """The URL of an empty database of a kind, on a server of its own; or the URL that was given."""
    if kind == "postgresql":
        with postgres.running_server() as server:
            yield postgres.Databases(server.url).empty()
    elif kind == "mariadb":
        with mariadb.running_server() as found:
            yield mariadb.Databases(found.url).empty()
    else:
        yield f"sqlite:///{folder}/ledger.db" if kind == "sqlite" else kind


def main() -> int:
    """From the command line."""
    words = sys.argv[1:]
    database = words[0] if words else "sqlite"
    seconds, clients, services, kills = (
        float(words[at]) if len(words) > at else default
        for at, default in ((1, 60.0), (2, 64.0), (3, 3.0), (4, 0.0))
    )
    with (
        tempfile.TemporaryDirectory(prefix="moorage-soak-") as name,
        database_of(database, Path(name)) as url,
    ):
        found = soak(
            Path(name),
            url,
            seconds=seconds,
            clients=int(clients),
            services=int(services),
            kills_per_minute=kills,
        )
    print(found.told())  # noqa: T201 - a command's result
    return bool(found.wrong)


if __name__ == "__main__":
    sys.exit(main())
