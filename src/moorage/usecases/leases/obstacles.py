"""What stands in the way of a request in time: leases, and users that do not end before it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.explain import Conflict, Element, Stage
from moorage.domain.period import FOREVER, SECOND, format_instant
from moorage.engine.conflicts import Oracle, emptied
from moorage.engine.whynot import INFEASIBLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.bookings import Booking
    from moorage.domain.explain import Explanation
    from moorage.domain.leases import Lease
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts

BOOKED: Final = "booked"
"""The kind of an element that is no part of the request, but somebody who is there."""

_HOSTS: Final = 500
"""Hosts looked at: enough to say what is in the way, on a fleet of any size."""
_LEASES: Final = 5
"""Leases named at most, those that begin first."""

_OPEN: Final = "servers without an end"
_LATE: Final = "servers that end after it begins"
_OVERRUN: Final = "servers past their end"


def in_time(
    parts: Parts, explanation: Explanation, built: Built, snapshot: Snapshot, *, operator: bool
) -> Explanation:
    """The explanation, of stage `time` where an empty fleet would do and bookings are in the way.

    Of a request that begins now, only what begins later is a matter of time.

    Args:
        parts: for the solver, and to look up leases.
        explanation: as the problem alone gives it.
        built: the problem that has no answer.
        snapshot: what it was made from.
        operator: whether who asks may know other projects' leases by their ids.
    """
    if explanation.stage is Stage.STATIC:
        return explanation
    there = list(_there(built, snapshot))
    leases = _leases(parts, there)
    if built.request.period.start <= snapshot.taken_at and not leases:
        return explanation
    seconds = parts.limits.explanation_budget / SECOND
    empty = emptied(built.request, built)
    if Oracle(parts.solver, lambda: seconds).feasible(empty.problem) is not True:
        return explanation
    counts = _counts(there, snapshot)
    names = [_called(one, operator=operator) for one in leases[:_LEASES]]
    names += [what for what, _ in counts]
    elements = tuple(Element(BOOKED, name) for name in names)
    conflict = Conflict(elements, ("",) * len(elements), facts=tuple(counts), minimal=False)
    return replace(
        explanation,
        verdict=INFEASIBLE,
        stage=Stage.TIME,
        conflicts=(conflict, *explanation.conflicts) if elements else explanation.conflicts,
    )


def _there(built: Built, snapshot: Snapshot) -> Iterator[Booking]:
    """Others' bookings in the request's period, on hosts that could hold some of it if empty."""
    request, now = built.request, snapshot.taken_at
    own = request.own_consumers | request.released
    masks = list(built.ground.eligible_rows.values())
    if not masks:
        return
    hosts = np.flatnonzero(np.logical_or.reduce(masks))[:_HOSTS]
    for uuid in (built.terrain.uuids[row] for row in hosts.tolist()):
        for row in snapshot.tree(snapshot.row_of[uuid]).tolist():
            for one in snapshot.bookings_of(row):
                inside = (
                    one.period.start < request.period.end
                    and one.occupies_until(now) > request.period.start
                )
                if inside and one.consumer not in own:
                    yield one


def _leases(parts: Parts, there: list[Booking]) -> list[Lease]:
    """The leases that some of the bookings are for, those that begin first in front."""
    promised = {
        one.decision
        for one in there
        if one.decision is not None
        and (one.state is BookingState.RESERVED or one.period.end != FOREVER)
    }
    found = {}
    for decision in sorted(promised):
        lease_id = parts.store.decision(decision).lease_id
        if lease_id is not None and lease_id not in found:
            found[lease_id] = parts.store.lease(lease_id)
    return sorted(found.values(), key=lambda one: (one.terms.occupied.start, one.id))


def _called(lease: Lease, *, operator: bool) -> str:
    occupied = lease.terms.occupied
    when = f"from {format_instant(occupied.start)} to {format_instant(occupied.end)}"
    return f"lease {lease.id} {when}" if operator else f"a lease {when}"


def _counts(there: list[Booking], snapshot: Snapshot) -> list[tuple[str, int]]:
    """How many consumers of each sort are in the way, beside leases."""
    now = snapshot.taken_at
    sorts: dict[str, set[str]] = {_OPEN: set(), _LATE: set(), _OVERRUN: set()}
    for one in there:
        if one.state is BookingState.RESERVED:
            continue
        if one.period.end == FOREVER:
            sorts[_OPEN].add(one.consumer)
        elif one.period.end <= now:
            sorts[_OVERRUN].add(one.consumer)
        else:
            sorts[_LATE].add(one.consumer)
    return [(what, len(consumers)) for what, consumers in sorts.items() if consumers]
