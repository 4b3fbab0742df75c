"""What stands in the way of a request in time: leases, and users that do not end before it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.explain import Conflict, Element, Explanation, Stage
from moorage.domain.period import FOREVER, SECOND, format_instant
from moorage.domain.words import counted
from moorage.engine.conflicts import Oracle, emptied
from moorage.engine.overlay import overflow
from moorage.engine.whynot import INFEASIBLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import MemberName
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant, Period
    from moorage.domain.resources import Amounts
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts

BOOKED: Final = "booked"
"""The kind of an element that is no part of the request, but somebody who is there."""

STAY: Final = "stay"
"""The kind of an element that is what was asked for, where only its time is in question."""

_HOSTS: Final = 500
"""Hosts looked at: enough to say what is in the way, on a fleet of any size."""
_LEASES: Final = 5
"""Leases named at most, those that begin first."""

_OPEN: Final = "servers without an end"
_LATE: Final = "servers that end after it begins"
_OVERRUN: Final = "servers past their end"
_YIELDING: Final = "preemptible servers"


def in_time(
    parts: Parts,
    explanation: Explanation,
    built: Built,
    snapshot: Snapshot,
    *,
    operator: bool,
    lease: bool = False,
) -> Explanation:
    """The explanation, of stage `time` where an empty fleet would do and bookings are in the way.

    Of a request that begins now, only what begins later is a matter of time; of a lease's, also
    those who have an end.

    Args:
        parts: for the solver, and to look up leases.
        explanation: as the problem alone gives it.
        built: the problem that has no answer.
        snapshot: what it was made from.
        operator: whether who asks may know other projects' leases by their ids.
        lease: whether the request is a lease's.
    """
    if explanation.stage is Stage.STATIC:
        return explanation
    there = list(others(built, snapshot))
    leases = leases_of(parts, there)
    begins_now = built.request.period.start <= snapshot.taken_at
    waiting = lease and any(one.period.end != FOREVER for one in there)
    if begins_now and not leases and not waiting:
        return explanation
    seconds = parts.limits.explanation_budget / SECOND
    empty = emptied(built.request, built)
    if Oracle(parts.solver, lambda: seconds).feasible(empty.problem) is not True:
        return explanation
    conflict = _conflict(built, snapshot, there, leases, operator=operator)
    return replace(
        explanation,
        verdict=INFEASIBLE,
        stage=Stage.TIME,
        conflicts=(conflict, *explanation.conflicts)
        if conflict.elements
        else explanation.conflicts,
    )


def there_by_now(
    parts: Parts, built: Built, snapshot: Snapshot, *, operator: bool
) -> Explanation | None:
    """Who is in the way of a request in time, without a search; None: nobody.

    Args:
        parts: to look up leases.
        built: the problem that has no answer.
        snapshot: what it was made from.
        operator: whether who asks may know other projects' leases by their ids.
    """
    there = list(others(built, snapshot))
    conflict = _conflict(built, snapshot, there, leases_of(parts, there), operator=operator)
    return in_vain(parts, built, snapshot, (conflict,)) if conflict.elements else None


def kept_out(
    parts: Parts,
    built: Built,
    snapshot: Snapshot,
    staying: Mapping[MemberName, tuple[Booking, ...]],
    period: Period,
    *,
    operator: bool,
) -> Explanation:
    """Why members that stay where they are cannot have their places for another period.

    Named is who is there at the first instants at which a place is not free.

    Args:
        parts: to look up leases.
        built: the problem; it says nothing of members that stay.
        snapshot: what it was made from.
        staying: their bookings as they would have been.
        period: the one that was asked for.
        operator: whether who asks may know other projects' leases by their ids.
    """
    there = list(_beside(built, snapshot, staying, period))
    begins, ends = format_instant(period.start), format_instant(period.end)
    stay = Element(STAY, f"{_where(len(staying))}, from {begins} to {ends}")
    leases = leases_of(parts, there)
    conflict = _conflict(built, snapshot, there, leases, stay, operator=operator)
    return in_vain(parts, built, snapshot, (conflict,))


def _conflict(
    built: Built,
    snapshot: Snapshot,
    there: list[Booking],
    leases: list[Lease],
    *more: Element,
    operator: bool,
) -> Conflict:
    """Who is there; preemptible ones are in the way where nobody else is."""
    counts = _counts(there, snapshot)
    firm = [what for what, _ in counts if what != _YIELDING]
    named = firm if firm or leases else [what for what, _ in counts]
    elements = (*booked(leases, named, built.request.project_id, operator=operator), *more)
    return Conflict(elements, ("",) * len(elements), facts=tuple(counts), minimal=False)


def _where(places: int) -> str:
    return f"{counted(places, 'place')} where {'it is' if places == 1 else 'they are'}"


def in_vain(
    parts: Parts, built: Built, snapshot: Snapshot, conflicts: tuple[Conflict, ...]
) -> Explanation:
    """An explanation of stage `time`."""
    return Explanation(
        id=parts.ids.uuid(),
        verdict=INFEASIBLE,
        stage=Stage.TIME,
        computed_at=snapshot.taken_at,
        revision=snapshot.revision,
        conflicts=conflicts,
        considered=built.considered,
        rejected=built.rejected,
    )


def booked(
    leases: list[Lease], others: Iterable[str], project_id: str, *, operator: bool
) -> tuple[Element, ...]:
    """Leases and sorts of users as the elements of a conflict; for somebody of a project."""
    names = _once(
        f"{_called(one, project_id, operator=operator)} to {format_instant(one.terms.occupied.end)}"
        for one in leases
    )
    return tuple(Element(BOOKED, name) for name in (*names, *others))


def beginning(leases: list[Lease], project_id: str, *, operator: bool) -> tuple[Element, ...]:
    """Leases whose beginning alone is in the way, as the elements of a conflict."""
    names = _once(_called(one, project_id, operator=operator) for one in leases)
    return tuple(Element(BOOKED, name) for name in names)


def _once(names: Iterable[str]) -> list[str]:
    """Each name once, the first ones; to a tenant others' leases of one time have the same."""
    return [
        f"{name} ({times} of them)" if times > 1 else name for name, times in Counter(names).items()
    ][:_LEASES]


def _beside(
    built: Built,
    snapshot: Snapshot,
    staying: Mapping[MemberName, tuple[Booking, ...]],
    period: Period,
) -> Iterator[Booking]:
    """Others' bookings at the first instant at which there is no room for those who stay."""
    request, now = built.request, snapshot.taken_at
    own = request.own_consumers | request.released
    wanted: dict[str, Amounts] = {}
    for one in (one for some in staying.values() for one in some):
        sums = dict(wanted.get(one.provider, {}))
        for name, amount in one.amounts.items():
            sums[name] = sums.get(name, 0) + amount
        wanted[one.provider] = sums
    for uuid, amounts in wanted.items():
        state = snapshot.state(snapshot.row_of[uuid])
        rest = [one for one in state.bookings if one.consumer not in own]
        at = overflow(state, rest, amounts, period, now)
        if at is not None:
            yield from (one for one in rest if one.period.start <= at < one.occupies_until(now))


def others(built: Built, snapshot: Snapshot) -> Iterator[Booking]:
    """Others' bookings in the request's period, on hosts that could hold some of it if empty.

    Hosts where something begins or ends come first: there are more than are looked at.
    """
    request, now = built.request, snapshot.taken_at
    own = request.own_consumers | request.released
    for row in _rows(built, snapshot):
        for one in snapshot.bookings_of(row):
            inside = (
                one.period.start < request.period.end
                and one.occupies_until(now) > request.period.start
            )
            if inside and one.consumer not in own:
                yield one


def departures(built: Built, snapshot: Snapshot) -> set[Instant]:
    """When such hosts are planned to be away from, in the request's period."""
    period = built.request.period
    return {
        one.start
        for row in _rows(built, snapshot)
        for one in snapshot.state(row).down
        if period.start < one.start < period.end
    }


def _rows(built: Built, snapshot: Snapshot) -> Iterator[int]:
    """Rows of the trees of hosts that could hold some of the request if empty, a bounded number."""
    masks = list(built.ground.eligible_rows.values())
    if not masks:
        return
    changing = {
        snapshot.uuids[row] for row in snapshot.root[np.flatnonzero(snapshot.breaks < FOREVER)]
    }
    eligible = np.flatnonzero(np.logical_or.reduce(masks)).tolist()
    hosts = [built.terrain.uuids[row] for row in eligible]
    hosts.sort(key=lambda uuid: uuid not in changing)
    for uuid in hosts[:_HOSTS]:
        yield from snapshot.tree(snapshot.row_of[uuid]).tolist()


def leases_of(parts: Parts, there: list[Booking]) -> list[Lease]:
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


def _called(lease: Lease, project_id: str, *, operator: bool) -> str:
    """`lease L3 from <when>`; another project's by its id, which only operators may know."""
    when = f"from {format_instant(lease.terms.occupied.start)}"
    if lease.project_id == project_id:
        return f"{lease.called} {when}"
    kind = "offer" if lease.proposed else "lease"
    return f"{kind} {lease.id} {when}" if operator else f"another project's {kind} {when}"


def _counts(there: list[Booking], snapshot: Snapshot) -> list[tuple[str, int]]:
    """How many consumers of each sort are in the way, beside leases."""
    now = snapshot.taken_at
    sorts: dict[str, set[str]] = {_OPEN: set(), _LATE: set(), _OVERRUN: set(), _YIELDING: set()}
    for one in there:
        if one.state is BookingState.RESERVED:
            continue
        if one.period.end <= now:
            sorts[_OVERRUN].add(one.consumer)
        elif one.period.end == FOREVER:
            sorts[_YIELDING if one.preemptible else _OPEN].add(one.consumer)
        else:
            sorts[_LATE].add(one.consumer)
    return [(what, len(consumers)) for what, consumers in sorts.items() if consumers]
