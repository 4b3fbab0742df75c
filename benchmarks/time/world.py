"""A fleet with leases ahead, in this process on SQLite in a file, and what questions cost it."""

from __future__ import annotations

import gc
import json
import statistics
import time
from typing import TYPE_CHECKING, Any

from falcon.testing import create_environ

from moorage.domain.bookings import Binding, Booking, BookingState
from moorage.domain.changes import Changeset, PutBookings
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_ensemble
from moorage.domain.leases import Terms
from moorage.domain.period import DAY, HOUR, Period
from moorage.testing.service import NINE, TENANT, Service
from moorage.testing.statements import said
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.requests import LeaseRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.http.wsgi import Application
    from moorage.usecases.ports import Caller

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


class World:
    """A fleet with many leases ahead, and the statements that its database was sent."""

    def __init__(self, fleet: str, folder: str) -> None:
        self.service = Service(fleet, database=f"sqlite:///{folder}/ledger.db")
        self.hosts = self.service.store.snapshot().uuids
        self.statements = 0
        """Those of the last question."""

    def book(self, per_host: int, period: Callable[[int, int], Period]) -> int:
        """So many future bookings on each host; how many in all."""
        ids, pending, made = self.service.env.ids, [], 0
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
        """Processor milliseconds of one grant, by the use case itself."""
        parts = self.service.env
        asked = LeaseRequest("bench", Terms(period), description=read_ensemble(description))
        started = time.process_time()
        with said() as statements:
            create_lease(parts, TENANT, asked, RequestIdentity(parts.ids.uuid()))
        taken = (time.process_time() - started) * 1000
        self.statements = len(statements)
        return taken

    def ask(
        self,
        app: Application,
        method: str,
        path: str,
        body: object = None,
        *,
        caller: Caller = TENANT,
        headers: dict[str, str] | None = None,
    ) -> float:
        """Processor milliseconds of one request to a WSGI application, its body read whole.

        Raises:
            RuntimeError: it was refused.
        """
        path, _, query = path.partition("?")
        data = b"" if body is None else json.dumps(body).encode()
        given = {"Accept": "application/json", **(headers or {})}
        environ = create_environ(
            path=path, query_string=query, method=method, body=data, headers=given
        )
        environ |= {"moorage.caller": caller, "moorage.request_id": "req-bench"}
        begun: list[str] = []

        def note_status(status: str, *_: object) -> Callable[[bytes], object]:
            begun.append(status)
            return len

        started = time.process_time()
        with said() as statements:
            answer = b"".join(app(environ, note_status))
        taken = (time.process_time() - started) * 1000
        self.statements = len(statements)
        if not begun[0].startswith("2"):
            raise RuntimeError(f"{method} {path}: {begun[0]}: {answer[:500]!r}")
        return taken


def several(rounds: int, *questions: Callable[[], float], each: int = 1) -> list[dict[str, Any]]:
    """What each question costs, in milliseconds; asked in turns, so that all meet the same load.

    In a round each is asked `each` times on end, and the median of those is its time: what is
    short is then measured as a busy server meets it, not with caches that the other has filled.
    The first round is not counted.
    """
    found: list[list[float]] = [[] for _ in questions]
    gc.collect()
    for number in range(rounds + 1):
        for question, taken in zip(questions, found, strict=True):
            once = statistics.median(question() for _ in range(each))
            if number:
                taken.append(once)
    return [
        {
            "cpu_ms": statistics.median(taken),
            "least_ms": min(taken),
            "most_ms": max(taken),
            "rounds": rounds,
        }
        for taken in found
    ]


def overlapping(host: int, number: int) -> Period:
    """All of them lie across the window, no two alike."""
    before, after = (7 * host + 13 * number) % 3600, (11 * host + 5 * number) % 3600
    return Period(WINDOW.start - before * 1_000_000, WINDOW.end + after * 1_000_000 + 1)


def scattered(host: int, number: int) -> Period:
    """Over a month, an hour or a day long."""
    start = NINE + DAY + ((host * 7919 + number * 104_729) % (28 * 24)) * HOUR
    return Period(start, start + (HOUR if number % 2 else DAY))
