"""Leases with places on hosts that are planned to be away: moved, or in the way.

A lease that has not started is placed anew: first only its members on these hosts, then all of its
members, then jointly with other leases that have not started, and last with preemptible consumers
displaced for moved leases. Offers are leases here. A lease that has started or is bound stays, and
then the hosts cannot be away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.errors import Busy
from moorage.domain.leases import LeaseState
from moorage.domain.period import FOREVER, Period
from moorage.engine.explain.conflict_classes import binding_classes
from moorage.engine.explain.conflict_facts import conflict_facts
from moorage.engine.explain.conflicts import DeletionFilter, Oracle
from moorage.engine.explain.element_facts import demand_text
from moorage.engine.explain.elements import CLOSED, POLICY
from moorage.engine.joint.build import build
from moorage.engine.joint.fleet_room import with_fleet_room
from moorage.engine.joint.problem import Verdict
from moorage.engine.state.overlay import with_bookings
from moorage.usecases.decide.closed_hosts import closed_hosts
from moorage.usecases.decide.solution import request_for, solve_and_verify
from moorage.usecases.preemption.victims import with_least_priority
from moorage.usecases.relocation.displacements import displace_for, preemption_pool
from moorage.usecases.relocation.movable_leases import LeaseMove, movable, movable_in
from moorage.usecases.relocation.replanning import (
    lease_moves,
    lease_party,
    placements_hold,
    required_places,
    solve_parties,
)
from moorage.usecases.shared.lookup import lease_of_decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration, Instant
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.preemption.pending_leases import PendingLease
    from moorage.usecases.preemption.victims import PreemptionCandidate
    from moorage.usecases.relocation.displacements import PreemptionPool

_COUNTED: Final = re.compile(r"(\d+ \w+) for .*")
_WHY: Final = 2.0
"""Seconds for the search of the reason why a lease cannot move."""


@dataclass(frozen=True, slots=True)
class BlockingLease:
    """A lease that cannot move, and the reason."""

    lease: Lease
    why: str


@dataclass(frozen=True, slots=True)
class Clearance:
    """Leases that move off the hosts, and those that cannot."""

    moved: tuple[LeaseMove, ...]
    stuck: tuple[BlockingLease, ...]


def with_hosts_away(snapshot: Snapshot, hosts: Iterable[str], period: Period) -> Snapshot:
    """The fleet with hosts away over a period."""
    rows = (row for host in hosts for row in snapshot.tree(snapshot.row_of[host]).tolist())
    states = (snapshot.state(row) for row in rows)
    return snapshot.with_states(replace(one, down=(*one.down, period)) for one in states)


def bookings_on(
    snapshot: Snapshot, hosts: Iterable[str], period: Period
) -> list[tuple[str, Booking]]:
    """Pairs of host and booking of all bookings in the hosts' trees during a period."""
    now = snapshot.taken_at
    return [
        (host, one)
        for host in hosts
        for row in snapshot.tree(snapshot.row_of[host]).tolist()
        for one in snapshot.bookings_of(row)
        if one.period.start < period.end and one.occupies_until(now) > period.start
    ]


def open_leases_of(env: UseCaseEnvironment, bookings: Iterable[Booking]) -> list[Lease]:
    """The open leases of bookings: of unclaimed places and of servers."""
    found: dict[str, Lease] = {}
    for decision_id in sorted({one.decision for one in bookings if one.decision is not None}):
        lease = lease_of_decision(env.store, decision_id)
        if lease is not None and lease.state is not LeaseState.CLOSED:
            found[lease.id] = lease
    return sorted(found.values(), key=lambda one: (one.terms.period.start, one.id))


def clear_hosts(
    env: UseCaseEnvironment,
    snapshot: Snapshot,
    hosts: Sequence[str],
    period: Period,
    exclusive: Sequence[Ensemble],
    time_limit: Duration,
) -> Clearance:
    """Search for other places for all leases on these hosts in a period.

    `hosts` are UUIDs of the root providers that will be away; `time_limit` is for each solve.
    """
    bookings = [one for _, one in bookings_on(snapshot, hosts, period)]
    leases = open_leases_of(env, bookings)
    if not leases:
        return Clearance((), ())
    consumers = frozenset(one.consumer for one in bookings)
    view = with_hosts_away(snapshot, hosts, period)
    moving: list[PendingLease] = []
    fixed: list[BlockingLease] = []
    for lease in leases:
        planned = movable(env.store, snapshot, lease.decision_id)
        if planned is None or (
            not lease.proposed and planned.decision.period.start <= snapshot.taken_at
        ):
            fixed.append(BlockingLease(lease, _why_fixed(lease)))
        else:
            moving.append(planned)
    if fixed:
        return Clearance((), tuple(fixed))
    one_by_one, stuck = _one_by_one(env, view, moving, consumers, exclusive, time_limit)
    if stuck is None:
        return Clearance(tuple(one_by_one), ())
    together = _together(env, view, moving, exclusive, time_limit)
    if together is None:
        together = _with_ends(env, view, moving, exclusive, time_limit)
    if together is not None:
        return Clearance(together, ())
    lease, built = stuck
    return Clearance((), (BlockingLease(lease, _why(env, built)),))


def _why_fixed(lease: Lease) -> str:
    started = not lease.proposed and lease.state is not LeaseState.PENDING
    return f"it is {lease.state}" if started else "its hosts are fixed"


def _one_by_one(
    env: UseCaseEnvironment,
    view: Snapshot,
    moving: Sequence[PendingLease],
    consumers: frozenset[str],
    exclusive: Sequence[Ensemble],
    time_limit: Duration,
) -> tuple[list[LeaseMove], tuple[Lease, BuiltProblem] | None]:
    """Move leases one by one, the earliest first; return moves, and the first that cannot move."""
    moved: list[LeaseMove] = []
    for planned in moving:
        affected = frozenset(
            name
            for name, bookings in planned.member_places.bookings.items()
            if bookings[0].consumer in consumers
        )
        everyone = frozenset(planned.member_places.places)
        for anew in dict.fromkeys((affected, everyone)):
            built = _built(view, planned, anew, exclusive)
            built = with_fleet_room(built, view, env.store.flavors)
            try:
                found = solve_and_verify(env.solver, built, time_limit=time_limit, seed=0)
            except Busy:
                found = None
            if found is not None:
                moves = LeaseMove(
                    planned, MappingProxyType({n: found.places[n] for n in sorted(anew)})
                )
                moved.append(moves)
                view = with_bookings(view, planned.bookings(moves.places))
                break
        else:
            return [], (planned.lease, _built(view, planned, everyone, exclusive))
    return moved, None


def _built(
    view: Snapshot,
    planned: PendingLease,
    anew: frozenset[MemberName],
    exclusive: Sequence[Ensemble],
) -> BuiltProblem:
    """A lease's own problem, with some of its members placed anew."""
    decision = planned.decision
    remaining = Period(max(decision.period.start, view.taken_at), decision.period.end)
    request = request_for(
        planned.ensemble, planned.member_places, anew, remaining, decision.objective
    )
    return build(request, view, closed=closed_hosts(exclusive, view, planned.ensemble, remaining))


def _together(
    env: UseCaseEnvironment,
    view: Snapshot,
    moving: Sequence[PendingLease],
    exclusive: Sequence[Ensemble],
    time_limit: Duration,
    pool: PreemptionPool | None = None,
) -> tuple[LeaseMove, ...] | None:
    """Move all of them jointly with other movable leases of their period; None if impossible."""
    if any(role.decided_alone for one in moving for role in one.ensemble.roles):
        return None
    first = min(one.decision.period.start for one in moving)
    last = max(one.decision.period.end for one in moving)
    own = frozenset[str]().union(*(one.consumers for one in moving))
    planned = [*moving, *movable_in(env.store, view, Period(first, last), own)]
    released = frozenset[str]().union(*(one.consumers for one in planned))
    there = view if pool is None else pool.soon(view)
    bare = with_bookings(there, dict.fromkeys(released, ()))
    parties = [lease_party(there, one, released, exclusive, bare) for one in planned]
    full = None if pool is None else with_bookings(view, dict.fromkeys(released, ()))
    founds = solve_parties(
        env.store, env.solver, parties, bare, full, time_limit=time_limit, seed=0
    )
    if isinstance(founds, Verdict):
        return None
    moved = lease_moves(planned, founds)
    if pool is None:
        return moved
    instead = {who: some for one in moved for who, some in one.planned.bookings(one.places).items()}
    required = [required_places(one, view.taken_at) for one in moved]
    gone = displace_for(view, instead, required, pool)
    if gone is None or not placements_hold(view, gone[1], planned, founds, exclusive):
        return None
    return tuple(
        replace(one, displaced=end.displaced, evicted=end.evicted)
        for one, end in zip(moved, gone[0], strict=True)
    )


def _with_ends(
    env: UseCaseEnvironment,
    view: Snapshot,
    moving: Sequence[PendingLease],
    exclusive: Sequence[Ensemble],
    time_limit: Duration,
) -> tuple[LeaseMove, ...] | None:
    """As `_together`, with preemptible consumers displaced for moved leases."""
    pool = preemption_pool(view, env.limits.notice, frozenset())
    if not pool.candidates:
        return None

    def jointly(few: Mapping[str, PreemptionCandidate]) -> tuple[LeaseMove, ...] | None:
        some = replace(pool, candidates=few)
        return _together(env, view, moving, exclusive, time_limit, some)

    every = pool.candidates
    return with_least_priority(every, jointly(every), jointly)


def _why(env: UseCaseEnvironment, built: BuiltProblem) -> str:
    """The reason why a lease cannot move, such as `needs 4 hosts one-per-host, 3 left`."""
    oracle = Oracle(env.solver, env.countdown(_WHY))
    core = next(DeletionFilter(built, oracle).conflicts(), None)
    if core is None:
        return "no other places were found"
    turns = binding_classes(built, core, oracle)
    lacking = conflict_facts(built, core.elements, turns)
    policies = [one for one in core.elements if one.kind == POLICY]
    for one in policies or [one for one in core.elements if one.kind != CLOSED]:
        demand = demand_text(built, one, turns)
        counted = _COUNTED.fullmatch(demand) if one.kind == POLICY else None
        if counted is not None and lacking[0].needed is not None:
            return f"needs {counted[1]} {one.name}, {lacking[0].have} left"
        told = ", ".join(
            one.text if one.have is None else f"{one.text}: {one.have}" for one in lacking
        )
        return f"needs {demand}; {told}" if told else f"needs {demand}"
    return "no other places were found"


def lease_ends(
    env: UseCaseEnvironment, snapshot: Snapshot, hosts: Iterable[str], since: Instant
) -> list[Instant]:
    """The ends of leases on these hosts after `since`, ascending: starts of possible absences."""
    every = [one for _, one in bookings_on(snapshot, hosts, Period(since, FOREVER))]
    leases = open_leases_of(env, every)
    decisions = {one.decision_id for one in leases}
    ends = {
        one.period.end
        for one in every
        if one.decision in decisions or one.state is BookingState.RESERVED
    }
    return sorted(one for one in ends if since < one < FOREVER)
