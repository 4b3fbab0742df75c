"""Allocation candidates over flat fleets: engine and body, without HTTP.

    python benchmarks/candidates.py

Prints, per fleet and query: candidates, median engine milliseconds, milliseconds for the body
with nothing kept and with every summary kept, and the body's bytes. Asserts that there was
something to measure.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice

from moorage.api.placement.fragments import Summaries, allocation_requests
from moorage.domain.bookings import Booking
from moorage.domain.period import Period
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates import Candidate, CandidateQuery, candidates, summary_rows
from moorage.engine.snapshot import ProviderState, Snapshot

LIMIT = 1000
REPEATS = 15
STOCK = (
    Inventory("VCPU", 64, allocation_ratio=4.0),
    Inventory("MEMORY_MB", 262_144),
    Inventory("DISK_GB", 2_000),
)
TRAITS = frozenset({"COMPUTE_NODE", "COMPUTE_VOLUME_EXTEND", "HW_CPU_X86_AVX2"})
SERVER = {"VCPU": 4, "MEMORY_MB": 8_192, "DISK_GB": 20}
WANTED = {"VCPU": 2, "MEMORY_MB": 2_048, "DISK_GB": 10}
QUERIES = {
    "resources": RequestGroup("", WANTED),
    "resources and traits": RequestGroup(
        "",
        WANTED,
        required=(frozenset({"HW_CPU_X86_AVX2"}),),
        forbidden=frozenset({"HW_CPU_X86_VMX"}),
    ),
    "one suffixed group": RequestGroup("_COMPUTE", WANTED),
}


def states(hosts: int) -> Iterator[ProviderState]:
    """Hosts with ten servers each; every second one has a trait more."""
    for number in range(hosts):
        uuid = f"00000000-0000-4000-8000-{number:012d}"
        provider = ResourceProvider(
            uuid,
            f"host{number}",
            None,
            uuid,
            inventories=STOCK,
            traits=TRAITS | ({"HW_CPU_X86_VMX"} if number % 2 else set()),
            aggregates=frozenset({f"00000000-0000-4000-9000-{number % 40:012d}"}),
        )
        bookings = tuple(Booking(f"{uuid}-{n}", uuid, SERVER, Period(0)) for n in range(10))
        yield ProviderState(provider, bookings)


def median_ms(work: Callable[[], object]) -> float:
    """The median of some runs, in milliseconds."""
    spans = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        spans.append((time.perf_counter() - began) * 1e3)
    return statistics.median(spans)


def body(snapshot: Snapshot, found: list[Candidate], summaries: Summaries) -> bytes:
    """The answer's body, as the dialect puts it together."""
    rows = summary_rows(snapshot, found, whole_trees=True)
    return allocation_requests(snapshot, found) + summaries.of(snapshot, rows)


def measure(snapshot: Snapshot, group: RequestGroup) -> str:
    """One row of the table."""
    query, kept = CandidateQuery((group,)), Summaries()

    def search() -> list[Candidate]:
        return list(islice(candidates(snapshot, query), LIMIT))

    found = search()
    assert found, "nothing was measured"
    size = len(body(snapshot, found, kept))
    engine = median_ms(search)
    cold = median_ms(lambda: body(snapshot, found, Summaries()))
    warm = median_ms(lambda: body(snapshot, found, kept))
    return f"{len(found):6} {engine:8.2f} {cold:8.2f} {warm:8.2f} {size:8}"


def main() -> None:
    """Measure every query on both fleets."""
    print(
        f"{'hosts':>6} {'query':22} {'found':>6} {'engine':>8} {'cold':>8} {'kept':>8} {'bytes':>8}"
    )
    for hosts in (1_000, 10_000):
        snapshot = Snapshot.empty().with_states(states(hosts), revision=1)
        for name, group in QUERIES.items():
            print(f"{hosts:6} {name:22} {measure(snapshot, group)}")


if __name__ == "__main__":
    main()
