"""The event feed: a consumer that is a million events behind, and what events cost who writes.

    python benchmarks/events.py [events] [URL of an empty database; default: SQLite in a new file]

Prints this process's processor time, medians where it repeats. The log is generated: leases of a
hundred projects, one of which is the consumer's. Asserts that all of its events were read, in
their order, and none twice.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from moorage.domain.changes import Change, Changeset, PutEvent
from moorage.domain.events import BEGINNING, DerivedEvent, EventFilter
from moorage.store import Ledger, open_store
from moorage.store.commit.apply import events
from moorage.store.commit.batch import Batch
from moorage.testing.service import Service

PROJECTS = 100
TYPES = ("lease.pending", "lease.starting", "lease.active", "lease.ending", "lease.closed")
A_COMMIT = 2_000
"""Events of one commit of the generated log."""
PAGE = 1_000
LEASES = 100


def happened(number: int) -> DerivedEvent:
    """The `number`th event of the log."""
    body = {"name": f"lease-{number}", "status": "active", "degraded": False, "missing": 0}
    return DerivedEvent(
        TYPES[number % len(TYPES)], f"p{number % PROJECTS}", f"lease-{number // 5}", 0, body
    )


def fill(store: Ledger, events: int) -> None:
    """The log, some thousand events a commit."""
    for first in range(0, events, A_COMMIT):
        some = range(first, min(first + A_COMMIT, events))
        store.commit(Changeset(tuple(PutEvent(happened(number)) for number in some)))


def behind(store: Ledger, project: str | None, wanted: EventFilter) -> tuple[int, list[float]]:
    """How many events a consumer reads from the beginning on, and what each page takes."""
    cursor, found, pages = BEGINNING, 0, []
    while True:
        began = time.process_time()
        page = store.event_log.page(project, cursor, wanted, PAGE)
        pages.append(time.process_time() - began)
        positions = [one.position for one in page.events]
        assert positions == sorted(set(positions))
        assert not positions or positions[0] > cursor.position
        cursor, found = page.cursor, found + len(positions)
        if not page.more:
            return found, pages


def told(what: str, found: int, pages: list[float]) -> None:
    """A line about a consumer."""
    total, half = sum(pages), len(pages) // 2
    first, last = (statistics.median(some) * 1000 for some in (pages[: half + 1], pages[half:]))
    print(
        f"{what:38} {found:9,} events  {len(pages):6,} pages  {total:7.2f} s"
        f"  a page {first:6.2f} ms, in the second half {last:6.2f} ms"
    )


@contextmanager
def timed(spent: list[float]) -> Iterator[None]:
    """Note how long each commit takes to tell its events."""
    tell = events.write_events

    def measured(batch: Batch, every: Sequence[Change], revision: int) -> None:
        began = time.process_time()
        tell(batch, every, revision)
        spent.append(time.process_time() - began)

    vars(events)["write_events"] = measured
    try:
        yield
    finally:
        vars(events)["write_events"] = tell


def leases(database: str) -> None:
    """What of a lease's POST goes into its events."""
    hosts = '- {name: "n{n}", count: 1000, inventories: {VCPU: 64}}'
    service = Service(f"fleet: f\nhosts:\n  {hosts}\n", database=database)
    spent: list[float] = []
    parts: list[float] = []
    whole: list[float] = []
    with timed(spent):
        for number in range(LEASES):
            body = {
                "name": f"l{number}",
                "start": "2026-12-07T08:00:00Z",
                "end": "2026-12-11T18:00:00Z",
                "amount": {"count": 4, "resources": {"VCPU": 2}},
            }
            del spent[:]
            began = time.process_time()
            made = service.call("POST", "/leases", {"lease": body})
            whole.append(time.process_time() - began)
            parts.append(sum(spent))
            assert made.json["lease"]["status"] == "pending"
    service.close()
    post, part = (statistics.median(some[LEASES // 10 :]) * 1000 for some in (whole, parts))
    print(f"POST of a lease of 4 places, 1,000 hosts  {post:6.2f} ms, of it events {part:5.2f} ms")


def main() -> None:
    """Fill, read, and tell."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as directory:
        url = sys.argv[2] if len(sys.argv) > 2 else f"sqlite:///{Path(directory) / 'events.db'}"  # noqa: PLR2004
        store = open_store(url)
        began = time.perf_counter()
        fill(store, events)
        print(f"{events:,} events written in {time.perf_counter() - began:.0f} s by the wall")
        everything = EventFilter()
        told("an operator, all of it", *_checked(behind(store, None, everything), events))
        mine = events // PROJECTS
        told("a project, a hundredth of it", *_checked(behind(store, "p7", everything), mine))
        told("a type that never was", *_checked(behind(store, None, EventFilter(("claim.*",))), 0))
        store.close()
        leases(f"sqlite:///{Path(directory) / 'leases.db'}")


def _checked(read: tuple[int, list[float]], expected: int) -> tuple[int, list[float]]:
    assert read[0] == expected, f"{read[0]} events read of {expected}"
    return read


if __name__ == "__main__":
    main()
