"""The earliest window of a large ensemble on a fleet that is leased for months ahead."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from benchmarks.time.leases import LARGE
from benchmarks.time.world import several

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.describe import read_ensemble
from moorage.domain.period import DAY, MINUTE, SECOND, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.requests import Objective
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.capacity.starts import Starts
from moorage.engine.state.snapshot import ProviderState, Snapshot
from moorage.testing.service import NINE, TENANT, Service
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import request_for
from moorage.usecases.ensembles.create import ensemble_from_description
from moorage.usecases.refusals.earliest_window import earliest_start
from moorage.usecases.refusals.trial import WindowRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

LEASES = 5
FULL = 200
"""Days for which every host is leased, but for less than an hour between two leases."""


def earliest(scale: float) -> list[dict[str, Any]]:
    """A hundred members with rack policies, over a year, on 10,000 hosts with 50,000 leases."""
    hosts = int(10_000 * scale)
    snapshot = leased(hosts)
    service = Service()
    ensemble = ensemble_from_description(
        service.env, TENANT, read_ensemble(LARGE), RequestIdentity("e")
    )
    everyone = frozenset(one.name for one in ensemble.members)
    window = Period(NINE, NINE + 5 * DAY)
    member_places = locate_members(snapshot, ensemble)
    request = request_for(ensemble, member_places, everyone, window, Objective.SPREAD)
    ahead = WindowRequest(ensemble, request, snapshot, ())
    starts = Starts(NINE, NINE + 365 * DAY, 5 * DAY)

    def ask() -> float:
        started = time.process_time()
        found = earliest_start(service.env, ahead, starts, time_limit=60 * SECOND)
        taken = (time.process_time() - started) * 1000
        if found.start is None or not found.proved or found.start < NINE + FULL * DAY // 2:
            raise RuntimeError(f"not the earliest window: {found}")
        return taken

    (found,) = several(5, ask)
    service.close()
    made = sum(len(one.bookings) for one in snapshot.states if one is not None)
    return [
        {
            "row": "earliest",
            "title": "Earliest window of 100 members with rack policies in a year",
            "hosts": hosts,
            "bookings": made,
            "ours": found,
            "target": {"cpu_ms": 2000},
        }
    ]


def leased(hosts: int) -> Snapshot:
    """Hosts in racks of twenty-five, each leased by one after the other, almost whole."""
    chance = random.Random(1)
    names = [f"h{number}" for number in range(hosts)]
    racks = max(1, hosts // 25)
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain(f"r{number}", "rack") for number in range(racks)],
        [Attachment(name, f"r{number % racks}") for number, name in enumerate(names)],
    )
    states = [_host(name, number, chance) for number, name in enumerate(names)]
    return Snapshot.empty(now=NINE).with_states(states, topology=topology, now=NINE)


def _host(name: str, number: int, chance: random.Random) -> ProviderState:
    uuid = f"00000000-0000-4000-8000-{number:012}"
    bookings = tuple(
        Booking(
            f"{name}-{start}",
            uuid,
            {"VCPU": chance.choice([52, 58, 62]), "MEMORY_MB": 100_000},
            Period(NINE + start * MINUTE, NINE + end * MINUTE),
            BookingState.RESERVED,
        )
        for start, end in _leases(chance)
    )
    stock = (Inventory("VCPU", 64), Inventory("MEMORY_MB", 262_144))
    return ProviderState(
        ResourceProvider(uuid, name, None, uuid, inventories=stock),
        bookings,
        tuple(Occupant(one.consumer, "others") for one in bookings),
    )


def _leases(chance: random.Random) -> Iterator[tuple[int, int]]:
    """Minutes: one after the other, with a break of less than an hour."""
    day = 24 * 60
    cuts = sorted(chance.randrange(FULL * day) for _ in range(LEASES - 1))
    for start, end in pairwise([0, *cuts, (FULL + chance.randrange(10)) * day]):
        yield start, max(start + 1, end - chance.randrange(1, 60))
