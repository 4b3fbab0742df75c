"""Obstacles in time: the leases, servers and holds that book the capacity a request needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.disclosure import EXACT, Disclosure
from moorage.domain.explain import Conflict, Element, Explanation, Fact, Stage
from moorage.domain.period import FOREVER, SECOND, format_instant
from moorage.domain.words import counted
from moorage.engine.explain.conflicts import Oracle
from moorage.engine.explain.elements import on_empty_hosts
from moorage.engine.explain.refusal import INFEASIBLE
from moorage.engine.state.overlay import first_shortage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.leases import Lease
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant, Period
    from moorage.domain.resources import Amounts
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.shared.environment import Environment

BOOKED: Final = "booked"
"""Kind of a conflict's element that is an obstacle: other leases, servers or holds."""

STAY: Final = "stay"
"""Kind of a conflict's element that is the requested stay itself."""

_FITS_EMPTY: Final = frozenset({Stage.CAPACITY, Stage.POLICY})
"""Stages of requests that were placed on the fleet without bookings."""
_HOSTS: Final = 500
"""Hosts whose bookings are read at most, on a fleet of any size."""
_LEASES: Final = 5
"""Leases named at most, those that begin first."""

_OPEN: Final = "servers without an end"
_LATE: Final = "servers that end after it begins"
_OVERRUN: Final = "servers past their end"
_YIELDING: Final = "preemptible servers"
_OWN_HELD: Final = "own places that are held and not claimed"
_HELD: Final = "places of others that are held and not claimed"


def in_time(
    env: Environment,
    explanation: Explanation,
    built: BuiltProblem,
    snapshot: Snapshot,
    *,
    operator: bool,
    lease: bool = False,
) -> Explanation:
    """The explanation, changed to stage `time` if the request would fit the fleet without bookings.

    For a request that begins now only leases count as obstacles in time; for a lease also
    bookings that have an end.

    With `operator` the explanation may name other projects' leases by their ids; `lease` says
    whether the request is for a lease.
    """
    if explanation.stage is Stage.STATIC:
        return explanation
    there = list(foreign_bookings(built, snapshot))
    leases = leases_of(env, there)
    begins_now = built.request.period.start <= snapshot.taken_at
    waiting = lease and any(one.period.end != FOREVER for one in there)
    if begins_now and not leases and not waiting:
        return explanation
    empty = _fits_empty(env, explanation, built)
    if empty is not True:
        return replace(explanation, complete=explanation.complete and empty is not None)
    conflict = _conflict(env, built, snapshot, there, leases, operator=operator)
    return replace(
        explanation,
        verdict=INFEASIBLE,
        stage=Stage.TIME,
        conflicts=(conflict, *explanation.conflicts)
        if conflict.elements
        else explanation.conflicts,
    )


def _fits_empty(env: Environment, explanation: Explanation, built: BuiltProblem) -> bool | None:
    """Whether the request fits the fleet without bookings; None: not decided in time.

    Its stage says so where that was shown by placing it there. With fixed members that was tried
    without its policies.
    """
    if explanation.stage in _FITS_EMPTY and not built.request.fixed:
        return True
    seconds = env.limits.explanation_budget / SECOND
    oracle = Oracle(env.solver, lambda: seconds)
    return oracle.feasible_if_time(lambda: on_empty_hosts(built.request, built).problem)


def present_obstacles(
    env: Environment, built: BuiltProblem, snapshot: Snapshot, *, operator: bool
) -> Explanation | None:
    """An explanation with the obstacles of a request, without a search; None: there are none.

    With `operator` it may name other projects' leases by their ids.
    """
    there = list(foreign_bookings(built, snapshot))
    conflict = _conflict(env, built, snapshot, there, leases_of(env, there), operator=operator)
    return time_explanation(env, built, snapshot, (conflict,)) if conflict.elements else None


def stay_obstacles(
    env: Environment,
    built: BuiltProblem,
    snapshot: Snapshot,
    staying: Mapping[MemberName, tuple[Booking, ...]],
    period: Period,
    *,
    operator: bool,
) -> Explanation:
    """Why fixed members cannot keep their places for another period.

    The obstacles are the bookings at the first instant of shortage on each provider.

    `built` does not contain the fixed members' bookings; `staying` are those that they would have
    had in `period`.
    """
    there = list(_beside(built, snapshot, staying, period))
    begins, ends = format_instant(period.start), format_instant(period.end)
    stay = Element(STAY, f"{_where(len(staying))}, from {begins} to {ends}")
    leases = leases_of(env, there)
    conflict = _conflict(env, built, snapshot, there, leases, stay, operator=operator)
    return time_explanation(env, built, snapshot, (conflict,))


def _conflict(
    env: Environment,
    built: BuiltProblem,
    snapshot: Snapshot,
    there: list[Booking],
    leases: list[Lease],
    *more: Element,
    operator: bool,
) -> Conflict:
    """The conflict with present bookings; preemptible ones count only if there are no others."""
    counts = _counts(there, snapshot, built.request.project_id)
    firm = [what for what, _ in counts if what != _YIELDING]
    named = firm if firm or leases else [what for what, _ in counts]
    recipient = Recipient(env.limits.disclosure, built.request.project_id, operator=operator)
    others = (Element(BOOKED, name) for name in named)
    elements = (*recipient.leases(leases, ends=True), *others, *more)
    facts = tuple(Fact(what, count) for what, count in counts)
    return Conflict(elements, ("",) * len(elements), facts, minimal=False)


def _where(places: int) -> str:
    return f"{counted(places, 'place')} where {'it is' if places == 1 else 'they are'}"


def time_explanation(
    env: Environment, built: BuiltProblem, snapshot: Snapshot, conflicts: tuple[Conflict, ...]
) -> Explanation:
    """An explanation of stage `time`."""
    return Explanation(
        id=env.ids.uuid(),
        verdict=INFEASIBLE,
        stage=Stage.TIME,
        computed_at=snapshot.taken_at,
        revision=snapshot.revision,
        conflicts=conflicts,
        considered=built.considered,
        rejected=built.rejected,
        exact=env.limits.disclosure.exact,
    )


@dataclass(frozen=True, slots=True)
class Recipient:
    """The reader of an explanation: a project, and whether it is an operator."""

    disclosure: Disclosure
    project_id: str
    operator: bool

    def leases(self, leases: Iterable[Lease], *, ends: bool) -> tuple[Element, ...]:
        """The first `_LEASES` leases as elements of a conflict, with or without their ends.

        Times of other projects' leases are rounded, and leases that then look the same become one
        element; for operators each element has the ids too.
        """
        # Tenants may read the explanation of an operator's request, so names are always rounded.
        rough = replace(self.disclosure, exact=False)
        exact: dict[str, list[str]] = {}
        for one in leases:
            if one.project_id == self.project_id:
                name = known = f"{one.called} {_when(one, EXACT, ends=ends)}"
            else:
                name = f"another project's {_kind(one)} {_when(one, rough, ends=ends)}"
                known = f"{_kind(one)} {one.id} {_when(one, EXACT, ends=ends)}"
            exact.setdefault(name, []).append(known)
        return tuple(
            Element(
                BOOKED, self._several(name, len(some)), "; ".join(some) if self.operator else ""
            )
            for name, some in exact.items()
        )[:_LEASES]

    def _several(self, name: str, count: int) -> str:
        if count == 1:
            return name
        return f"{name} ({replace(self.disclosure, exact=False).count_text(count)} of them)"


def _kind(lease: Lease) -> str:
    return "offer" if lease.proposed else "lease"


def _when(lease: Lease, rough: Disclosure, *, ends: bool) -> str:
    occupied = lease.terms.occupied
    since = f"from {format_instant(rough.since(occupied.start))}"
    return f"{since} to {format_instant(rough.until(occupied.end))}" if ends else since


def _beside(
    built: BuiltProblem,
    snapshot: Snapshot,
    staying: Mapping[MemberName, tuple[Booking, ...]],
    period: Period,
) -> Iterator[Booking]:
    """Others' bookings at the first instant at which capacity lacks for the fixed members."""
    request, now = built.request, snapshot.taken_at
    own = request.own_consumers | request.released
    demand: dict[str, Amounts] = {}
    for one in (one for some in staying.values() for one in some):
        sums = dict(demand.get(one.provider, {}))
        for name, amount in one.amounts.items():
            sums[name] = sums.get(name, 0) + amount
        demand[one.provider] = sums
    for uuid, amounts in demand.items():
        state = snapshot.state(snapshot.row_of[uuid])
        rest = [one for one in state.bookings if one.consumer not in own]
        at = first_shortage(state, rest, amounts, period, now)
        if at is not None:
            yield from (one for one in rest if one.period.start <= at < one.occupies_until(now))


def foreign_bookings(built: BuiltProblem, snapshot: Snapshot) -> Iterator[Booking]:
    """Others' bookings in the request's period, on hosts that could hold some of it if empty.

    At most `_HOSTS` hosts are read, first those where a booking begins or ends.
    """
    request, now = built.request, snapshot.taken_at
    own = request.own_consumers | request.released
    start, end = request.period.start, request.period.end
    for row in _rows(built, snapshot):
        for one in snapshot.state(row).bookings:
            if (
                one.period.start < end
                and one.occupies_until(now) > start
                and one.live(now)
                and one.consumer not in own
            ):
                yield one


def planned_absences(built: BuiltProblem, snapshot: Snapshot) -> set[Instant]:
    """Starts of planned absences, in the request's period, of the hosts that `_rows` reads."""
    period = built.request.period
    return {
        one.start
        for row in _rows(built, snapshot)
        for one in snapshot.state(row).down
        if period.start < one.start < period.end
    }


def _rows(built: BuiltProblem, snapshot: Snapshot) -> Iterator[int]:
    """Rows of the trees of hosts that could hold some of the request if empty, a bounded number."""
    masks = list(built.policy_view.eligible_rows.values())
    if not masks:
        return
    changing = {
        snapshot.uuids[row] for row in snapshot.root[np.flatnonzero(snapshot.next_change < FOREVER)]
    }
    uuids = built.terrain.uuids
    eligible = [uuids[row] for row in np.flatnonzero(np.logical_or.reduce(masks)).tolist()]
    first = (uuid for uuid in eligible if uuid in changing) if changing else ()
    rest = (uuid for uuid in eligible if uuid not in changing)
    for uuid in islice(chain(first, rest), _HOSTS):
        yield from snapshot.tree(snapshot.row_of[uuid]).tolist()


def leases_of(env: Environment, there: list[Booking]) -> list[Lease]:
    """The leases that the bookings belong to, in the order of their starts."""
    promised = {
        one.decision
        for one in there
        if one.decision is not None
        and (one.state is BookingState.RESERVED or one.period.end != FOREVER)
    }
    found = {}
    for decision in sorted(promised):
        lease_id = env.store.decision(decision).lease_id
        if lease_id is not None and lease_id not in found:
            found[lease_id] = env.store.lease(lease_id)
    return sorted(found.values(), key=lambda one: (one.terms.occupied.start, one.id))


def _counts(there: list[Booking], snapshot: Snapshot, project_id: str) -> list[tuple[str, int]]:
    """The number of obstructing consumers of each sort, as a project sees them."""
    sorts: dict[str, set[str]] = {
        sort: set() for sort in (_OPEN, _LATE, _OVERRUN, _YIELDING, _OWN_HELD, _HELD)
    }
    for one in there:
        if one.state is not BookingState.RESERVED:
            sorts[_sort(one, snapshot, project_id)].add(one.consumer)
    return [(what, len(consumers)) for what, consumers in sorts.items() if consumers]


def _sort(one: Booking, snapshot: Snapshot, project_id: str) -> str:
    """The sort of an obstructing booking: a kind of server, or a held place."""
    if one.period.end <= snapshot.taken_at:
        return _OVERRUN
    if one.preemptible and one.period.end == FOREVER:
        return _YIELDING
    if one.state is BookingState.HELD:
        there = snapshot.state(snapshot.row_of[one.provider]).occupants
        own = any(
            other.consumer == one.consumer and other.project_id == project_id for other in there
        )
        return _OWN_HELD if own else _HELD
    return _OPEN if one.period.end == FOREVER else _LATE
