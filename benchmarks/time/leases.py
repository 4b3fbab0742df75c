"""What leases cost: a grant over a window full of others, and Placement's candidates beside them.

    .venv/bin/python benchmarks/time/leases.py                     # all rows, at their full size
    .venv/bin/python benchmarks/time/leases.py --rows slots large  # some of them
    .venv/bin/python benchmarks/time/leases.py --scale 0.1         # smaller fleets, to try it

Every row runs in this process on SQLite in a file: the whole use case, from description to commit.
Times are processor time, medians; statements are those that reach the database.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from ranges import record

from moorage.domain.bookings import Binding, Booking, BookingState
from moorage.domain.changes import Changeset, PutBookings
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_ensemble
from moorage.domain.leases import Terms
from moorage.domain.period import DAY, HOUR, Period
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates import CandidateQuery, candidates
from moorage.store.session import CursorSession
from moorage.testing.service import NINE, TENANT, Service
from moorage.usecases.leases.asking import LeaseAsk
from moorage.usecases.leases.create import create_lease
from moorage.usecases.proposal import Naming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WINDOW = Period(NINE + 10 * DAY, NINE + 10 * DAY + HOUR)
VCPU = 100_000
BATCH = 2_000


def fleet(hosts: int) -> str:
    """Hosts of equal size in racks of twenty-five."""
    return f"""
fleet: bench
topology:
  location:
    levels: [rack]
    domains: [{{name: "r{{n}}", count: {max(1, hosts // 25)}, level: rack}}]
hosts:
  - name: "h{{n}}"
    count: {hosts}
    inventories: {{VCPU: {VCPU}, MEMORY_MB: {{total: 1000000}}}}
    place: {{location: {{name: "r{{n}}", count: {max(1, hosts // 25)}}}}}
"""


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Counts the statements of this process by their first word."""
    found: Counter[str] = Counter()
    usual = CursorSession._run  # noqa: SLF001 - all of them pass here

    def counted(session: CursorSession, text: str, arguments: Any) -> Any:  # noqa: ANN401
        found[text.split(None, 1)[0]] += 1
        return usual(session, text, arguments)

    CursorSession._run = counted  # type: ignore[method-assign]  # noqa: SLF001
    try:
        yield found
    finally:
        CursorSession._run = usual  # type: ignore[method-assign]  # noqa: SLF001


class World:
    """A fleet with many leases ahead, and the statements that its database was sent."""

    def __init__(self, hosts: int, folder: str) -> None:
        self.service = Service(fleet(hosts), database=f"sqlite:///{folder}/ledger.db")
        self.hosts = self.service.store.snapshot().uuids
        self.statements = 0
        """Those of the last grant."""

    def book(self, per_host: int, period: Callable[[int, int], Period]) -> int:
        """So many future bookings on each host; how many in all."""
        ids, pending, made = self.service.parts.ids, [], 0
        for host, uuid in enumerate(self.hosts):
            for number in range(per_host):
                consumer = ids.uuid()
                booking = Booking(
                    consumer,
                    uuid,
                    {"VCPU": 1},
                    period(host, number),
                    BookingState.RESERVED,
                    binding=Binding.BOUND,
                    decision=None,
                )
                pending.append(PutBookings(Consumer(consumer, "others"), (booking,)))
                made += 1
                if len(pending) == BATCH:
                    self.service.store.commit(Changeset(tuple(pending)))
                    pending = []
        if pending:
            self.service.store.commit(Changeset(tuple(pending)))
        return made

    def lease(self, description: dict[str, Any], period: Period) -> float:
        """Processor milliseconds of one grant."""
        parts = self.service.parts
        asked = LeaseAsk("bench", Terms(period), description=read_ensemble(description))
        started = time.process_time()
        with counting() as statements:
            create_lease(parts, TENANT, asked, Naming(parts.ids.uuid()))
        self.statements = statements.total()
        return (time.process_time() - started) * 1000


def overlapping(host: int, number: int) -> Period:
    """All of them lie across the window, no two alike."""
    before, after = (7 * host + 13 * number) % 3600, (11 * host + 5 * number) % 3600
    return Period(WINDOW.start - before * 1_000_000, WINDOW.end + after * 1_000_000 + 1)


def scattered(host: int, number: int) -> Period:
    """Over a month, an hour or a day long."""
    start = NINE + DAY + ((host * 7919 + number * 104_729) % (28 * 24)) * HOUR
    return Period(start, start + (HOUR if number % 2 else DAY))


SLOTS: dict[str, Any] = {
    "name": "four",
    "members": [{"name": "s", "count": 4, "resources": {"VCPU": 2, "MEMORY_MB": 1024}}],
}
LARGE: dict[str, Any] = {
    "name": "hundred",
    "members": [
        {"name": "web", "count": 60, "resources": {"VCPU": 4, "MEMORY_MB": 4096}},
        {"name": "db", "count": 40, "resources": {"VCPU": 16, "MEMORY_MB": 16384}},
    ],
    "policies": [
        {"name": "racks", "type": "spread", "members": ["web"], "level": "rack", "max_skew": 1},
        {"name": "apart", "type": "anti-affinity", "members": ["db"]},
        {
            "name": "ha",
            "type": "survive",
            "members": ["db"],
            "level": "rack",
            "lose": 1,
            "keep": 36,
        },
    ],
}


def grants(world: World, description: dict[str, Any], rounds: int) -> list[float]:
    """A few grants in the window, after one that nobody counts."""
    world.lease(description, WINDOW)
    gc.collect()
    return [world.lease(description, WINDOW) for _ in range(rounds)]


def slots(scale: float) -> dict[str, float]:
    """Four slots on 1,000 hosts with 100 leases each in the window."""
    hosts = int(1_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        world = World(hosts, folder)
        empty = statistics.median(grants(world, SLOTS, 7))
        made = world.book(100, overlapping)
        full = statistics.median(grants(world, SLOTS, 7))
        statements = world.statements
        world.service.close()
    print(
        f"4 slots, {hosts} hosts, {made} leases in the window:"
        f" {full:.1f} ms, {statements} statements (without them {empty:.1f} ms)"
    )
    return {"four-slots": full, "four-slots-empty": empty, "four-slots-statements": statements}


def large(scale: float) -> dict[str, float]:
    """A hundred members with rack policies on 10,000 hosts with 50,000 leases."""
    hosts = int(10_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        world = World(hosts, folder)
        made = world.book(5, scattered)
        taken = statistics.median(grants(world, LARGE, 3))
        world.service.close()
    print(f"100 members with rack policies, {hosts} hosts, {made} leases: {taken:.1f} ms")
    return {"hundred-members": taken}


def beside(scale: float) -> dict[str, float]:
    """Candidates (limit 1,000) with 50,000 future bookings, against without."""
    hosts = int(10_000 * scale)
    query = CandidateQuery((RequestGroup("", {"VCPU": 2, "MEMORY_MB": 1024}),))

    def median(world: World) -> float:
        taken = []
        for _ in range(15):
            snapshot = world.service.store.snapshot()
            started = time.process_time()
            found = sum(1 for _ in islice(candidates(snapshot, query), 1000))
            taken.append((time.process_time() - started) * 1000)
            assert found
        return statistics.median(taken)

    with tempfile.TemporaryDirectory() as folder:
        world = World(hosts, folder)
        without = median(world)
        made = world.book(5, scattered)
        with_them = median(world)
        world.service.close()
    print(
        f"candidates, {hosts} hosts, {made} bookings ahead: {with_them:.2f} ms,"
        f" without {without:.2f} ms: {with_them / without:.2f}x"
    )
    return {"candidates-beside": with_them, "candidates-alone": without}


ROWS = {"slots": slots, "large": large, "beside": beside}


def main() -> None:
    """Measure the rows asked for."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--record", action="store_true", help="write benchmarks/ranges.toml")
    args = parser.parse_args()
    found: dict[str, float] = {}
    for name in args.rows:
        found |= ROWS[name](args.scale)
    if args.record:
        record("time", "milliseconds of processor time, medians; benchmarks/time/leases.py", found)


if __name__ == "__main__":
    main()
