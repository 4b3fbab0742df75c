"""The ledger: what a commit, a snapshot and a start cost, and how many commits go at once.

    python benchmarks/store.py [hosts] [sqlite | postgresql | mariadb | URL of an empty database]

Prints this process's processor time, medians where it repeats; by the wall as well what waits for
a disk or a server. Asserts that what was measured did happen. `postgresql` is the server of the
tests' wheel, `mariadb` the one found on the machine, both with a disk that is really flushed.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    PutInventories,
    PutTraits,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.providers import Inventory
from moorage.engine.state.snapshot import Snapshot
from moorage.store import Ledger, open_store

STOCK = (
    Inventory("VCPU", 64, allocation_ratio=16.0),
    Inventory("MEMORY_MB", 2_097_152),
    Inventory("DISK_GB", 20_000),
)
WANTED = {"VCPU": 2, "MEMORY_MB": 2_048, "DISK_GB": 10}
TRAITS = frozenset({"COMPUTE_NODE", "HW_CPU_X86_AVX2"})
SERVERS = 3
"""Servers that stand on each host before anything is measured."""
REPEATS = 200


def host(number: int) -> str:
    """A provider's UUID."""
    return f"00000000-0000-4000-8000-{number:012d}"


def boot(server: str, number: int) -> ReplaceAllocations:
    """What Nova's PUT /allocations becomes."""
    return ReplaceAllocations(Consumer(server, "p", "u"), {host(number): WANTED}, None)


def fill(store: Ledger, hosts: int) -> None:
    """Hosts with servers, a thousand hosts per commit."""
    for first in range(0, hosts, 1000):
        changes: list[Change] = []
        for number in range(first, min(first + 1000, hosts)):
            changes += [
                CreateProvider(host(number), f"host-{number}"),
                PutInventories(host(number), STOCK, None),
                PutTraits(host(number), TRAITS, None),
                *(boot(f"{number}-{one}", number) for one in range(SERVERS)),
            ]
        store.commit(Changeset(tuple(changes)))


def milliseconds(work: Callable[[], object]) -> float:
    """Processor time of one run: a busy machine does not change it much."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e3


def measure(database: str, hosts: int) -> dict[str, float]:
    """Every figure, in milliseconds."""
    store = open_store(database)
    found = {"fill, per host": milliseconds(lambda: fill(store, hosts)) / hosts}
    again = open_store(database)
    found["first snapshot"] = milliseconds(again.snapshot)
    states = [state for state in again.snapshot().states if state is not None]
    found["columns alone"] = milliseconds(lambda: Snapshot.empty(now=1).with_states(states))
    again.close()
    store.snapshot()
    walls, commits, refreshes, unchanged, polls = [], [], [], [], []
    for turn in range(REPEATS):
        change = Changeset((boot(f"new-{turn}", turn * 7 % hosts),))
        began = time.perf_counter()
        commits.append(milliseconds(partial(store.commit, change)))
        walls.append((time.perf_counter() - began) * 1e3)
        refreshes.append(milliseconds(store.snapshot))
        began = time.perf_counter()
        unchanged.append(milliseconds(store.snapshot))
        polls.append((time.perf_counter() - began) * 1e3)
    used = int(store.snapshot().classes["VCPU"].used.sum())
    assert used == 2 * (hosts * SERVERS + REPEATS), "not everything was booked"
    store.close()
    return found | {
        "commit": statistics.median(commits),
        "commit, by the wall": statistics.median(walls),
        "refresh after a commit": statistics.median(refreshes),
        "snapshot unchanged": statistics.median(unchanged),
        "snapshot unchanged, by the wall": statistics.median(polls),
    }


WRITER = """
import sys, time
from moorage.domain.changes import Changeset
sys.path.insert(0, sys.argv[4])
from store import boot
from moorage.store import open_store
url, name, hosts = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, done = open_store(url), 0
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + 5
while time.monotonic() < end:
    store.commit(Changeset((boot(f"{name}-{done}", (done * 13 + hash(name)) % hosts),)))
    done += 1
print(done)
"""


def commits_a_second(database: str, hosts: int, writers: int) -> float:
    """How many claims processes commit together."""
    here = str(Path(__file__).parent)
    words = [sys.executable, "-c", WRITER, database]
    running = [
        subprocess.Popen(  # noqa: S603 - this interpreter, on a program that stands above
            [*words, f"w{writers}.{number}", str(hosts), here],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in running:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    answers = [one.communicate()[0] for one in running]
    return sum(map(int, answers)) / 5


@contextmanager
def database_of(kind: str) -> Iterator[str]:
    """The URL of an empty database."""
    with ExitStack() as stack:
        if kind == "sqlite":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            yield f"sqlite:///{folder}/ledger.db"
        elif kind == "postgresql":
            sys.path.insert(0, str(Path(__file__).parents[1]))
            from tests.servers import postgres  # noqa: PLC0415 - the tests', not of the package

            postgres.FAST = tuple(one for one in postgres.FAST if one != "fsync=off")
            server = stack.enter_context(postgres.running_server())
            yield postgres.Databases(server.url).empty()
        elif kind == "mariadb":
            sys.path.insert(0, str(Path(__file__).parents[1]))
            from tests.servers import mariadb  # noqa: PLC0415 - the tests', not of the package

            mariadb.FAST = tuple(one for one in mariadb.FAST if "flush" not in one)
            found = stack.enter_context(mariadb.running_server())
            yield mariadb.Databases(found.url).empty()
        else:
            yield kind


def main() -> None:
    """Measure at the size asked for."""
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    (kind,) = sys.argv[2:] or ["sqlite"]
    with database_of(kind) as database:
        for name, value in measure(database, hosts).items():
            print(f"{hosts:6} hosts  {name:32} {value:10.2f} ms")
        for writers in (1, 4, 8):
            rate = commits_a_second(database, hosts, writers)
            print(f"{hosts:6} hosts  {writers} writing processes {rate:10.0f} commits/s")


if __name__ == "__main__":
    main()
