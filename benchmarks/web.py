"""What the web page asks of the service: the map of the fleet, and the timeline of leases.

    python -m benchmarks.web [--hosts 10000,100000] [--leases 5000] [--rounds 7]

Prints wall time in this process, medians of the rounds where it repeats, and bytes as they are
sent (gzipped). *Cold* is the first map of a process that has the ledger in memory; *changed* the
first one after a commit; *kept* what others get meanwhile; *since* what has changed only.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
import uuid
from random import Random
from typing import TYPE_CHECKING, Any, Final

from benchmarks.web_fleet import fleet_of

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import Changeset, PutBookings, PutLease, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.fleet_load import ForeignLoad
from moorage.domain.fleet_parts import FleetPart
from moorage.domain.leases import Lease, LeaseState, Terms
from moorage.domain.period import DAY, HOUR, Period, format_instant
from moorage.http.child_main import collect_seldom
from moorage.testing.service import NINE, OPERATOR, Service
from moorage.usecases.ledger.fleet_loading import load_fleet

if TYPE_CHECKING:
    from collections.abc import Callable

_AT_ONCE: Final = 2_000
_AHEAD: Final = 90
"""Days over which the leases are spread."""
_NEW_OBJECTS: Final = 10_000
"""As in a worker."""
_GZIP: Final = {"Accept-Encoding": "gzip"}


def filled(hosts: int) -> Service:
    """A fleet in racks of forty, each host with one consumer that takes any part of it."""
    service = Service(fleet_of(hosts))
    snapshot, random = service.store.snapshot(), Random(1)
    load = [
        ForeignLoad(
            consumer=Consumer(_uuid(random), "p", "u", "INSTANCE"),
            allocations={snapshot.uuids[row]: {"VCPU": n, "MEMORY_MB": 1024 * n, "DISK_GB": n}},
        )
        for row in snapshot.hosts.tolist()
        if (n := random.randrange(250))
    ]
    for first in range(0, len(load), _AT_ONCE):
        load_fleet(service.store, OPERATOR, FleetPart(load=tuple(load[first : first + _AT_ONCE])))
    return service


def lease(service: Service, number: int) -> None:
    """So many leases of some hours to a week, each with places on a few hosts."""
    snapshot, random = service.store.snapshot(), Random(2)
    hosts = [snapshot.uuids[row] for row in snapshot.hosts.tolist()]
    changes: list[PutLease | PutBookings] = []
    for n in range(number):
        start = NINE + random.randrange(_AHEAD * 24) * HOUR
        terms = Terms(Period(start, start + random.randrange(1, 168) * HOUR), lead=HOUR)
        decision, project = _uuid(random), f"project-{n % 50}"
        made = Lease(
            id=_uuid(random),
            project_id=project,
            user_id="u",
            name=f"batch {n}",
            ensemble_id=_uuid(random),
            decision_id=decision,
            terms=terms,
            state=LeaseState.PENDING,
            reservations=(),
        )
        changes.append(PutLease(made, None))
        for host in random.sample(hosts, 3):
            member = _uuid(random)
            booking = Booking(
                member,
                host,
                {"VCPU": 1},
                terms.occupied,
                BookingState.RESERVED,
                decision=decision,
            )
            changes.append(PutBookings(Consumer(member, project), (booking,)))
    for first in range(0, len(changes), _AT_ONCE):
        service.store.commit(Changeset(tuple(changes[first : first + _AT_ONCE])))


def _uuid(random: Random) -> str:
    return str(uuid.UUID(int=random.getrandbits(128), version=4))


class Bench:
    """Requests of an operator, timed."""

    def __init__(self, service: Service, rounds: int) -> None:
        self._service, self._rounds = service, rounds
        self._random = Random(3)
        snapshot = service.store.snapshot()
        self._hosts = [snapshot.uuids[row] for row in snapshot.hosts[:100].tolist()]

    def ask(self, path: str, **query: object) -> tuple[float, int, Any]:
        """Milliseconds, bytes and the body."""
        began = time.perf_counter()
        answer = self._service.call("GET", path, caller=OPERATOR, headers=_GZIP, query=query)
        spent = 1000 * (time.perf_counter() - began)
        assert answer.status_code == 200, answer.text  # noqa: PLR2004 - OK
        body = answer.content
        if answer.headers.get("content-encoding") == "gzip":
            return spent, len(body), json.loads(gzip.decompress(body))
        return spent, len(body), answer.json

    def write(self) -> None:
        """Let something change."""
        host, consumer = self._random.choice(self._hosts), _uuid(self._random)
        owner = Consumer(consumer, "p", "u", "INSTANCE")
        change = ReplaceAllocations(owner, {host: {"DISK_GB": 1}}, None)
        self._service.store.commit(Changeset((change,)))
        self._service.store.snapshot()  # every worker reads it with its first request

    def measured(
        self, what: str, path: str, before: Callable[[], object] = lambda: None, **query: object
    ) -> Any:  # noqa: ANN401 - a JSON object
        """A line: the median of the rounds, with `before` before each."""
        spent: list[float] = []
        size, body = 0, None
        for _ in range(self._rounds):
            before()
            milliseconds, size, body = self.ask(path, **query)
            spent.append(milliseconds)
        self.line(what, statistics.median(spent), size)
        return body

    def line(self, what: str, milliseconds: float, size: int) -> None:
        """A line of the result."""
        print(f"  {what:44} {milliseconds:9.1f} ms {size / 1000:10.1f} kB", flush=True)

    def map(self) -> None:
        """The map of the fleet."""
        self._service.call("GET", "/")  # the application is there
        milliseconds, size, _ = self.ask("/fleet/map")
        self.line("map, cold", milliseconds, size)
        self.measured("map, changed", "/fleet/map", self.write)
        last = self.measured("map, kept", "/fleet/map")["map"]["tag"]
        spent: list[float] = []
        for _ in range(self._rounds):
            self.write()
            milliseconds, size, body = self.ask("/fleet/map", since=last)
            assert "changed" in body["map"]
            last = body["map"]["tag"]
            spent.append(milliseconds)
        self.line("map, since", statistics.median(spent), size)
        self.measured("map with what fits, changed", "/fleet/map", self.write, flavor="m1.small")
        at = format_instant(self._service.clock.now() + 7 * DAY)
        self.measured("map a week ahead, changed", "/fleet/map", self.write, at=at)
        self.measured("a page of GET /fleet, for comparison", "/fleet", limit=1000)

    def timeline(self) -> None:
        """The timeline of all leases."""
        days: dict[str, Any] = {
            "from": format_instant(NINE),
            "to": format_instant(NINE + _AHEAD * DAY),
            "all_projects": "true",
        }
        milliseconds, size, body = self.ask("/timeline", **days)
        number = len(body["timeline"]["rows"]["id"])
        self.line(f"timeline of {number} leases, cold", milliseconds, size)
        for rows in ("lease", "project", "rack", "host"):
            self.measured(f"timeline by {rows}", "/timeline", **days, rows=rows)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--hosts", default="10000,100000")
    parser.add_argument("--leases", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    for hosts in map(int, args.hosts.split(",")):
        print(f"{hosts:,} hosts", flush=True)
        service = filled(hosts)
        try:
            bench = Bench(service, args.rounds)
            collect_seldom(_NEW_OBJECTS)
            bench.map()
            lease(service, args.leases)
            service.store.snapshot()
            collect_seldom(_NEW_OBJECTS)
            bench.timeline()
            bench.measured("map with leases, changed", "/fleet/map", bench.write)
        finally:
            service.close()


if __name__ == "__main__":
    main()
