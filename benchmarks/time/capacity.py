"""How many of a flavor fit over 90 days, by the use case itself and by the application."""

from __future__ import annotations

import tempfile
import time
from typing import Any

from benchmarks.time.world import World, fleet, scattered, several

from moorage.domain.period import DAY, format_instant
from moorage.testing.service import NINE, OPERATOR
from moorage.testing.statements import said
from moorage.usecases.capacity.over_time import capacity_over_time
from moorage.usecases.capacity.scope import Scope

FLAVORS = "flavors: [{name: half, resources: {VCPU: 50000, MEMORY_MB: 4096}}]\n"
"""Two on a host of which nothing is booked, else one."""
CHANGES = 100
"""At least so many are told."""
ENDS = NINE + 90 * DAY


def capacity(scale: float) -> list[dict[str, Any]]:
    """A flavor over 90 days on 10,000 hosts with 50,000 leases."""
    hosts = int(10_000 * scale)
    scope = Scope(since=NINE, until=ENDS, flavor="half")
    path = f"/capacity?from={format_instant(NINE)}&to={format_instant(ENDS)}&flavor=half"
    statements: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        world = World(fleet(hosts) + FLAVORS, folder)
        made = world.book(5, scattered)

        def read() -> float:
            started = time.process_time()
            with said() as sent:
                found = capacity_over_time(world.service.env, OPERATOR, scope)
            taken = (time.process_time() - started) * 1000
            statements["read"] = len(sent)
            (course,) = found.courses
            if course.hosts != hosts or not course.fits or len(course.fits) < CHANGES:
                raise RuntimeError("not the whole answer")
            return taken

        def answer() -> float:
            taken = world.ask(world.service.app, "GET", path, caller=OPERATOR)
            statements["answer"] = world.statements
            return taken

        found = several(11, read, answer)
        world.service.close()
    titles = {"read": "Use case", "answer": "GET /v1/capacity"}
    return [
        {
            "row": f"capacity-{name}",
            "title": f"{titles[name]}: how many of a flavor fit over 90 days",
            "hosts": hosts,
            "bookings": made,
            "ours": {**one, "statements": statements[name]},
            "target": {"cpu_ms": 200},
        }
        for name, one in zip(titles, found, strict=True)
    ]
