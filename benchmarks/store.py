"""The ledger on SQLite: what a commit, a snapshot and a start cost.

    python benchmarks/store.py [hosts]

Prints processor time, medians where it repeats; a commit by the wall as well, because most of it
is the disk's flush. Asserts that what was measured did happen.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
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
from moorage.engine.snapshot import Snapshot
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


def measure(folder: Path, hosts: int) -> dict[str, float]:
    """Every figure, in milliseconds."""
    store = open_store(f"sqlite:///{folder / 'ledger.db'}")
    found = {"fill, per host": milliseconds(lambda: fill(store, hosts)) / hosts}
    again = open_store(f"sqlite:///{folder / 'ledger.db'}")
    found["first snapshot"] = milliseconds(again.snapshot)
    states = [state for state in again.snapshot().states if state is not None]
    found["columns alone"] = milliseconds(lambda: Snapshot.empty(now=1).with_states(states))
    again.close()
    store.snapshot()
    walls, commits, refreshes, unchanged = [], [], [], []
    for turn in range(REPEATS):
        change = Changeset((boot(f"new-{turn}", turn * 7 % hosts),))
        began = time.perf_counter()
        commits.append(milliseconds(partial(store.commit, change)))
        walls.append((time.perf_counter() - began) * 1e3)
        refreshes.append(milliseconds(store.snapshot))
        unchanged.append(milliseconds(store.snapshot))
    used = int(store.snapshot().classes["VCPU"].used.sum())
    assert used == 2 * (hosts * SERVERS + REPEATS), "not everything was booked"
    store.close()
    return found | {
        "commit": statistics.median(commits),
        "commit, by the wall": statistics.median(walls),
        "refresh after a commit": statistics.median(refreshes),
        "snapshot unchanged": statistics.median(unchanged),
    }


def main() -> None:
    """Measure at the size asked for."""
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        for name, value in measure(Path(folder), hosts).items():
            print(f"{hosts:6} hosts  {name:24} {value:10.2f} ms")


if __name__ == "__main__":
    main()
