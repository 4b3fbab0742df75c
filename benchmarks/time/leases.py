"""Rows of our own: a grant over a window full of others, and candidates beside future bookings."""

from __future__ import annotations

import tempfile
import time
from itertools import islice
from typing import Any

from benchmarks.time.world import WINDOW, World, fleet, overlapping, scattered, several

from moorage.api import placement
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.candidates.query import CandidateQuery
from moorage.testing.service import OPERATOR

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
CANDIDATES = "/allocation_candidates?resources=VCPU:2,MEMORY_MB:1024&limit=1000"
VERSION = {"OpenStack-API-Version": "placement 1.39"}


def slots(scale: float) -> list[dict[str, Any]]:
    """Four slots on 1,000 hosts with 100 leases each in the window, and on as many without."""
    hosts = int(1_000 * scale)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        full, empty = World(fleet(hosts), one), World(fleet(hosts), other)
        made = full.book(100, overlapping)
        with_them, without = several(
            11, lambda: full.lease(SLOTS, WINDOW), lambda: empty.lease(SLOTS, WINDOW)
        )
        with_them["statements"], without["statements"] = full.statements, empty.statements
        full.service.close()
        empty.service.close()
    return [
        {
            "row": "slots",
            "title": "Lease of 4 slots, 100 leases a host in its window",
            "hosts": hosts,
            "bookings": made,
            "ours": with_them,
            "beside": {"what": "no leases", **without},
            "target": {"cpu_ms": 50, "statements": 30},
        }
    ]


def large(scale: float) -> list[dict[str, Any]]:
    """A hundred members with rack policies on 10,000 hosts with 50,000 leases."""
    hosts = int(10_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        world = World(fleet(hosts), folder)
        made = world.book(5, scattered)
        (found,) = several(5, lambda: world.lease(LARGE, WINDOW))
        found["statements"] = world.statements
        world.service.close()
    return [
        {
            "row": "large",
            "title": "Lease of 100 members with rack policies",
            "hosts": hosts,
            "bookings": made,
            "ours": found,
            "target": {"cpu_ms": 500},
        }
    ]


def beside(scale: float) -> list[dict[str, Any]]:
    """Candidates (limit 1,000) with 50,000 future bookings, against without: search, and answer."""
    hosts = int(10_000 * scale)
    query = CandidateQuery((RequestGroup("", {"VCPU": 2, "MEMORY_MB": 1024}),))

    def search(world: World) -> float:
        snapshot = world.service.store.snapshot()
        started = time.process_time()
        found = sum(1 for _ in islice(candidates(snapshot, query), 1000))
        taken = (time.process_time() - started) * 1000
        if not found:
            raise RuntimeError("no candidates")
        return taken

    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        full, empty = World(fleet(hosts), one), World(fleet(hosts), other)
        made = full.book(5, scattered)
        searched = several(15, lambda: search(full), lambda: search(empty), each=10)
        doors = [
            (world, placement.create_app(world.service.store, world.service.env.ids))
            for world in (full, empty)
        ]
        answered = several(
            15,
            *(
                lambda world=world, app=app: world.ask(
                    app, "GET", CANDIDATES, caller=OPERATOR, headers=VERSION
                )
                for world, app in doors
            ),
            each=40,
        )
        full.service.close()
        empty.service.close()
    titles = {
        "search": "Search of 1,000 candidates, with bookings ahead",
        "answer": "GET /allocation_candidates, limit 1,000, with bookings ahead",
    }
    return [
        {
            "row": f"beside-{name}",
            "title": titles[name],
            "hosts": hosts,
            "bookings": made,
            "ours": found[0],
            "beside": {"what": "no bookings", **found[1]},
            "target": {"at_most": 1.3},
        }
        for name, found in (("search", searched), ("answer", answered))
    ]
