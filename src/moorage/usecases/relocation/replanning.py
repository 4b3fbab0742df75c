"""Replanning: leases that have not begun move jointly so that a request fits.

The places of a planned lease are a witness and may change until it is bound (ADR-0008). A request
without room is solved again together with the planned leases of its period, each over its own
period (`engine.joint.windows`). No lease moves unless the request fits then; the leases' policies
hold in the new places, and one commit writes everything or nothing.

First only leases that overlap the request's period may move, then also those that overlap these,
and so on: a lease may need a place that another one leaves later. At most `movable_leases.MOST`
leases with `MOST_MEMBERS` members move for one request, the nearest in time first. A refusal is
explained with all leases in their present places.

Last, for a lease, the problem is solved as if preemptible consumers were gone; those in the way of
the request or of moved leases are displaced (see `displacements`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.period import Period
from moorage.engine.joint.build import build, build_on_terrain
from moorage.engine.joint.cost import satisfies
from moorage.engine.joint.fleet_room import with_joint_room, with_room_of
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.terrain import cut_terrain
from moorage.engine.joint.verify import WrongAnswer
from moorage.engine.joint.windows import (
    TimedProblem,
    join_problems,
    renamed_primitive,
    split_answer,
)
from moorage.engine.state.overlay import with_bookings, worsens_overage
from moorage.usecases.decide.closed_hosts import closed_hosts
from moorage.usecases.decide.member_places import place_of
from moorage.usecases.decide.solution import recheck_placement, request_for, verified_placement
from moorage.usecases.preemption.displacement import (
    SPARING,
    DisplacementConcession,
    prefer_vacant_hosts,
)
from moorage.usecases.preemption.pending_leases import without_leases
from moorage.usecases.relocation.displacements import RequiredPlaces, displace_for
from moorage.usecases.relocation.movable_leases import LeaseMove, movable_sets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration, Instant
    from moorage.domain.placement import Place
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem import Problem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.solution import VerifiedPlacement
    from moorage.usecases.ports import Solver, Store
    from moorage.usecases.preemption.pending_leases import PendingLease
    from moorage.usecases.relocation.displacements import PreemptionPool

_NOBODY: Final = frozenset[str]()
_NOTHING: Final[Mapping[str, tuple[Booking, ...]]] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class ReplanResult:
    """The placement of a request, and the leases that move for it."""

    placement: VerifiedPlacement
    moved: tuple[LeaseMove, ...]
    gone: DisplacementConcession = field(default_factory=DisplacementConcession)
    """The displacement for the request itself."""


@dataclass(frozen=True, eq=False)
class _JointPlacement:
    """An answer to the joint problem."""

    placement: VerifiedPlacement
    """The placement of the request."""
    moved: tuple[LeaseMove, ...]
    founds: Sequence[VerifiedPlacement]
    """The placements of all movable leases, `planned`."""
    planned: Sequence[PendingLease]

    def instead(self, staying: Mapping[str, tuple[Booking, ...]]) -> dict[str, tuple[Booking, ...]]:
        """Bookings of moved leases and staying members, by consumer."""
        every = dict(staying)
        for one in self.moved:
            every |= one.planned.bookings(one.places)
        return every


def replan(  # noqa: PLR0913 - what is asked, of whom, over what, and how long
    store: Store,
    solver: Solver,
    snapshot: Snapshot,
    built: BuiltProblem,
    exclusive: Sequence[Ensemble],
    staying: Mapping[str, tuple[Booking, ...]] = _NOTHING,
    *,
    time_limit: Duration,
    seed: int,
    pool: PreemptionPool | None = None,
) -> ReplanResult | Verdict:
    """The answer to a request that has none while planned leases keep their places.

    Args:
        store: reads leases.
        solver: solves the joint problem.
        snapshot: the whole fleet.
        built: the request's problem, stated with its staying members' new bookings.
        exclusive: the exclusive ensembles.
        staying: new bookings of the request's staying members, by consumer, where they differ from
            the present ones; other leases move out of their way as well.
        time_limit: for the joint problem.
        seed: the solver's.
        pool: preemptible consumers that may be displaced for the request and for moved leases;
            None for no displacement.

    Returns:
        `INFEASIBLE` if it is proved that no move helps; `UNKNOWN` if no answer was found.
    """
    if any(role.decided_alone for role in built.request.roles):
        return Verdict.INFEASIBLE
    request, vain = built.request, Verdict.INFEASIBLE
    there, full = snapshot, None
    for planned in movable_sets(store, snapshot, request.period, request.own_consumers):
        if pool is not None and full is None:
            there, full = pool.soon(snapshot), with_bookings(snapshot, staying)
        if staying and worsens_overage(without_leases(there, planned), staying):
            continue
        jointly = _jointly(
            store,
            solver,
            there,
            built,
            exclusive,
            staying,
            planned,
            full=full,
            time_limit=time_limit,
            seed=seed,
        )
        if isinstance(jointly, Verdict):
            vain = jointly
            continue
        found = (
            _judged(snapshot, built, jointly, staying)
            if pool is None
            else _with_ends(snapshot, built, jointly, staying, exclusive, pool)
        )
        if isinstance(found, ReplanResult):
            return found
        vain = found
    return vain


def _jointly(  # noqa: PLR0913, PLR0917 - see `replan`; and who may move
    store: Store,
    solver: Solver,
    snapshot: Snapshot,
    built: BuiltProblem,
    exclusive: Sequence[Ensemble],
    staying: Mapping[str, tuple[Booking, ...]],
    planned: Sequence[PendingLease],
    *,
    full: Snapshot | None,
    time_limit: Duration,
    seed: int,
) -> _JointPlacement | Verdict:
    """The joint placement of the request and movable leases; see `replan`.

    `full` is the fleet with displaceable consumers, if `snapshot` leaves them out.
    """
    view = with_bookings(snapshot, staying)
    released = built.request.released.union(*(one.consumers for one in planned))
    request = replace(built.request, released=released)
    # Terrains and time slots of all parties are cut from one fleet without the released consumers.
    bare = with_bookings(view, dict.fromkeys(released, ()))
    terrain = cut_terrain(bare, replace(request, released=_NOBODY))
    parties = [
        TimedProblem(build_on_terrain(request, terrain, closed=built.closed), MappingProxyType({})),
        *(lease_party(view, one, released, exclusive, bare) for one in planned),
    ]
    if full is not None:
        full = with_bookings(full, dict.fromkeys(released, ()))
    founds = solve_parties(store, solver, parties, bare, full, time_limit=time_limit, seed=seed)
    if isinstance(founds, Verdict):
        return founds
    first, *others = founds
    return _JointPlacement(first, lease_moves(planned, others), others, planned)


def solve_parties(  # noqa: PLR0913 - see `replan`
    store: Store,
    solver: Solver,
    parties: Sequence[TimedProblem],
    bare: Snapshot,
    full: Snapshot | None,
    *,
    time_limit: Duration,
    seed: int,
) -> Sequence[VerifiedPlacement] | Verdict:
    """The placements of all parties in one joint problem, or the verdict without an answer.

    `bare` is the fleet without the parties' present bookings; `full` has the consumers too that
    `bare` leaves out to be displaced, and hosts without displacement are preferred. `store` knows
    the flavors, for the mix of requests that is left room for.

    Raises:
        WrongAnswer: the solver's answer breaks the problem.
    """
    problem = with_joint_room(join_problems(parties, bare), parties, bare, store.flavors)
    if full is not None:
        problem = _prefer_untouched_hosts(problem, parties, full)
    outcome = solver.solve(problem, time_limit=time_limit, seed=seed)
    if outcome.verdict is not Verdict.FEASIBLE:
        return outcome.verdict
    assert outcome.hosts is not None
    if not satisfies(problem, outcome.hosts[None, :])[0]:
        raise WrongAnswer(("the joint answer breaks the joint problem",))
    answers = split_answer(parties, problem, outcome.hosts)
    return [
        verified_placement(one.built, outcome, rows)
        for one, rows in zip(parties, answers, strict=True)
    ]


def lease_moves(
    planned: Sequence[PendingLease], founds: Sequence[VerifiedPlacement]
) -> tuple[LeaseMove, ...]:
    """The moves of leases whose hosts change."""
    return tuple(
        LeaseMove(one, places)
        for one, found in zip(planned, founds, strict=True)
        if (places := moved_places(one, found))
    )


def _prefer_untouched_hosts(
    problem: Problem, parties: Sequence[TimedProblem], full: Snapshot
) -> Problem:
    """The problem with a preference for hosts without displacement above all others."""
    above = 1 + len(problem.members)
    grudged = (
        replace(renamed_primitive(one, number), weight=above)
        for number, each in enumerate(parties)
        for one in prefer_vacant_hosts(each.built, [full]).problem.primitives
        if one.policy == SPARING
    )
    return replace(problem, primitives=(*problem.primitives, *grudged))


def _judged(
    snapshot: Snapshot,
    built: BuiltProblem,
    jointly: _JointPlacement,
    staying: Mapping[str, tuple[Booking, ...]],
) -> ReplanResult | Verdict:
    """The answer, checked again on the fleet with all moves made."""
    instead = jointly.instead(staying)
    if staying and worsens_overage(snapshot, instead):
        return Verdict.UNKNOWN
    found = _checked(with_bookings(snapshot, instead), built, jointly)
    return Verdict.UNKNOWN if found is None else ReplanResult(found, jointly.moved)


def _with_ends(
    snapshot: Snapshot,
    built: BuiltProblem,
    jointly: _JointPlacement,
    staying: Mapping[str, tuple[Booking, ...]],
    exclusive: Sequence[Ensemble],
    pool: PreemptionPool,
) -> ReplanResult | Verdict:
    """The answer, reduced to the displacements it needs and checked again."""
    request = built.request
    stays = frozenset(staying)
    mine = RequiredPlaces(
        (
            *(jointly.placement.places[one] for one in request.members if one not in request.fixed),
            *(place_of(snapshot, some) for some in staying.values() if some),
        ),
        request.period,
        request.released | stays,
        request.own_consumers,
    )
    moving = (required_places(one, snapshot.taken_at) for one in jointly.moved)
    instead = jointly.instead(staying)
    gone = displace_for(snapshot, instead, (mine, *moving), pool)
    if gone is None:
        return Verdict.UNKNOWN
    (first, *others), then = gone
    ends = {who: then[who] for one in (first, *others) for who in one.evicted}
    if staying and worsens_overage(with_bookings(snapshot, ends), instead):
        return Verdict.UNKNOWN
    if not placements_hold(snapshot, then, jointly.planned, jointly.founds, exclusive):
        return Verdict.UNKNOWN
    found = _checked(with_bookings(snapshot, then), built, jointly)
    if found is None:
        return Verdict.UNKNOWN
    moved = tuple(
        replace(one, displaced=end.displaced, evicted=end.evicted)
        for one, end in zip(jointly.moved, others, strict=True)
    )
    return ReplanResult(found, moved, first)


def required_places(moved: LeaseMove, now: Instant) -> RequiredPlaces:
    """The new places of a lease that moves."""
    planned = moved.planned
    period = planned.decision.period
    return RequiredPlaces(
        tuple(moved.places.values()),
        Period(max(period.start, now), period.end),
        frozenset(planned.bookings(moved.places)),
        planned.consumers,
        planned.lease.proposed,
    )


def placements_hold(
    snapshot: Snapshot,
    then: Mapping[str, tuple[Booking, ...]],
    planned: Sequence[PendingLease],
    founds: Sequence[VerifiedPlacement],
    exclusive: Sequence[Ensemble],
) -> bool:
    """Whether the leases' placements hold with the bookings `then`, by consumer."""
    view = with_bookings(snapshot, then)
    for one, was in zip(planned, founds, strict=True):
        bare = with_bookings(snapshot, {**then, **dict.fromkeys(one.consumers, ())})
        if (
            recheck_placement(was, lease_party(view, one, one.consumers, exclusive, bare).built)
            is None
        ):
            return False
    return True


def _checked(
    view: Snapshot, built: BuiltProblem, jointly: _JointPlacement
) -> VerifiedPlacement | None:
    """The answer, checked on this fleet; None if it does not hold."""
    there = with_room_of(build(built.request, view, closed=built.closed), built)
    found = recheck_placement(jointly.placement, there)
    if found is None:
        return None
    timed = replace(found.outcome, wall_ms=jointly.placement.outcome.wall_ms)
    return replace(found, outcome=timed)


def moved_places(planned: PendingLease, found: VerifiedPlacement) -> Mapping[MemberName, Place]:
    """The new places of members whose host changes."""
    return MappingProxyType(
        {
            name: found.places[name]
            for name in found.built.request.members
            if found.hosts[name] != planned.member_places.places[name].host
        }
    )


def lease_party(
    snapshot: Snapshot,
    planned: PendingLease,
    released: frozenset[str],
    exclusive: Sequence[Ensemble],
    bare: Snapshot | None = None,
) -> TimedProblem:
    """A lease's own problem on the fleet without the released consumers, `bare`."""
    if bare is None:
        bare = with_bookings(snapshot, dict.fromkeys(released, ()))
    period = planned.decision.period
    remaining = Period(max(period.start, snapshot.taken_at), period.end)
    everyone = frozenset(planned.member_places.places)
    objective = planned.decision.objective
    request = replace(
        request_for(planned.ensemble, planned.member_places, everyone, remaining, objective),
        released=released,
    )
    closed = closed_hosts(exclusive, snapshot, planned.ensemble, remaining)
    terrain = cut_terrain(bare, replace(request, released=_NOBODY))
    built = build_on_terrain(request, terrain, closed=closed)
    stood = {name: place.host for name, place in planned.member_places.places.items()}
    return TimedProblem(built, MappingProxyType(stood))
