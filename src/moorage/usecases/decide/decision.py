"""Make a decision from a verified placement: its places, its hold, and the quota check."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain import deadline
from moorage.domain.changes import BoundHeld
from moorage.domain.decision_records import DecisionRecord, places_digest
from moorage.domain.decisions import Decision, DecisionState, DecisionStep, Solve, decision_after
from moorage.domain.quotas import too_much_held, too_much_held_by
from moorage.domain.tickets import ticket_flavor
from moorage.engine.joint.room_taken import room_taken
from moorage.usecases.decide.max_additional import count_additional, roles_of_set
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.decide.solution import HoldEnd
from moorage.usecases.shared.instances import decided_instance
from moorage.usecases.shared.quotas import held_limit

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration, Instant
    from moorage.domain.placement import Place
    from moorage.domain.request_mix import RoomTaken
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import Proposal, RequestIdentity
    from moorage.usecases.decide.search_result import SearchResult
    from moorage.usecases.decide.solution import DecisionOptions, VerifiedPlacement
    from moorage.usecases.shared.environment import Environment


@dataclass(frozen=True, slots=True)
class DecisionBasis:
    """The snapshot, the verified placement and the former decision that a decision is made from."""

    snapshot: Snapshot
    member_places: MemberPlaces
    placement: VerifiedPlacement
    before: Decision | None
    """The newest decision about the ensemble, in any state."""
    result: SearchResult
    """The search result that contains `placement`."""


def decision_for(
    env: Environment,
    proposal: Proposal,
    options: DecisionOptions,
    answer: DecisionBasis,
    identity: RequestIdentity,
    hold: Duration,
) -> Decision:
    """The decision with the places of a verified placement."""
    snapshot, member_places, found = answer.snapshot, answer.member_places, answer.placement
    request, outcome = found.built.request, found.outcome
    ensemble = proposal.ensemble
    held = _to_hold(ensemble, members_placed(request), member_places)
    more = _additional(env, found, options)
    # The hold begins when the placement is found, not when the request came in.
    now = env.store.now()
    if proposal.promise is not None:
        expires_at = proposal.promise.expires_at
    else:
        expires_at = _hold_end(options, answer.before, now, now + hold)
    return Decision(
        id=identity.id,
        ensemble_id=ensemble.id,
        project_id=ensemble.project_id,
        ensemble_generation=0 if proposal.generation is None else proposal.generation + 1,
        state=_first_state(
            held.total() > 0 or _keeps(proposal, answer.before, now),
            MemberStatus.BUILDING in member_places.status.values(),
        ),
        period=answer.result.period,
        expires_at=expires_at,
        hold=expires_at - now,
        objective=options.objective,
        first_choices=options.first_choices,
        solve=Solve(
            solver=outcome.solver,
            value=outcome.value,
            bound=outcome.bound,
            proven=outcome.proven,
            wall_ms=outcome.wall_ms,
            seed=options.seed,
            ended=outcome.ended,
            room=_room_taken(found),
        ),
        places=MappingProxyType(
            {
                name: _kept(member_places.places[name], answer.before, ensemble.member(name))
                if name in request.fixed
                else _new(found.places[name], proposal, ensemble.member(name))
                for name in request.members
            }
        ),
        policies=found.policies,
        revision=snapshot.revision,
        **more,
        digest=identity.digest,
        created_at=now,
        updated_at=now,
        preemptible=options.preemptible,
        priority=options.priority if proposal.promise is None else proposal.promise.priority,
        lease_id=None if proposal.promise is None else proposal.promise.lease_id,
        ticket=_ticket(proposal, answer.before, identity.id, now),
        endings=MappingProxyType({name: one.end for name, one in answer.result.endings.items()}),
        away=tuple(n for n, one in sorted(answer.result.endings.items()) if one.yields_to is None),
    )


def decision_record(
    decision: Decision,
    answer: DecisionBasis,
    options: DecisionOptions,
    time_limit: Duration,
    attempts: int,
) -> DecisionRecord:
    """What the decision was made from, and what it takes to make it again."""
    found, result = answer.placement, answer.result
    built = found.built
    return DecisionRecord(
        taken_at=answer.snapshot.taken_at,
        time_limit=time_limit,
        hold=options.hold,
        until=options.until,
        additional=options.additional,
        strategy=result.strategy,
        attempts=attempts,
        displaced=len(result.displaced),
        considered=built.considered,
        rejected=built.rejected,
        placed=len(decision.places) - len(built.request.fixed),
        scatter=found.outcome.scatter,
        places=places_digest(found.hosts),
        instance=decided_instance(built),
    )


def _room_taken(found: VerifiedPlacement) -> RoomTaken | None:
    """What the placement took from the room for others."""
    problem, request = found.built.problem, found.built.request
    if problem.room is None:
        return None
    parts = None if found.built.alternatives is None else found.built.alternatives.parts
    number = {name: role for role, name in enumerate(problem.roles)}
    row_of = found.built.terrain.row_of

    def role_of(name: MemberName) -> int:
        return number[name.role if parts is None else parts[name][found.places[name].choice].role]

    return room_taken(
        problem,
        (
            (role_of(name), row_of[found.hosts[name]])
            for name in request.members
            if name not in request.fixed
        ),
    )


def _new(place: Place, proposal: Proposal, member: Member) -> Place:
    """The place of a member that is placed now.

    Roles of the request's own have no alternatives: a member placed by them stays what it was.
    """
    return replace(place, choice=member.choice) if proposal.roles else place


def _kept(place: Place, before: Decision | None, member: Member) -> Place:
    """A placed member's place, from its former decision if the allocations are the same.

    Bookings do not record their request groups; the decision does.
    """
    known = None if before is None else before.places.get(member.name)
    same = known is not None and known.allocations == place.allocations
    return known if known is not None and same else replace(place, choice=member.choice)


def inherited_end(
    options: DecisionOptions, before: Decision | None, now: Instant
) -> Instant | None:
    """The end of the former decision's hold, if the new decision shall keep it.

    None if the former decision is no longer held.
    """
    goes_on = options.as_before or (
        options.hold is None and options.hold_end is not HoldEnd.DEFAULT
    )
    if not goes_on or before is None or before.state_at(now) is not DecisionState.HELD:
        return None
    return before.expires_at


def _hold_end(
    options: DecisionOptions, before: Decision | None, now: Instant, fresh: Instant
) -> Instant:
    present = inherited_end(options, before, now)
    if present is None:
        return fresh
    return max(present, fresh) if options.hold_end is HoldEnd.AT_LEAST_PRESENT else present


def _keeps(proposal: Proposal, before: Decision | None, now: Instant) -> bool:
    """Whether a lease's decision was held before: then it stays held even without held places.

    Places that servers leave return to it.
    """
    if proposal.promise is None or before is None:
        return False
    return before.state_at(now) is DecisionState.HELD


def _ticket(proposal: Proposal, before: Decision | None, decision_id: str, now: Instant) -> str:
    """The ticket of the decision: that of the held one that it replaces, else one of its own.

    Servers of a decision that is over request classes of its ticket for life; they must not meet
    the places that a later decision holds. Nor may the flavors of a ticket be of another size than
    the places: a role that asks for something else has a new ticket.
    """
    if proposal.promise is not None:
        return ""
    if proposal.before is not None and _asks_for_others(proposal.before, proposal.ensemble):
        return decision_id
    held = before is not None and before.state_at(now) is DecisionState.HELD
    return before.ticket if before is not None and held and before.ticket else decision_id


def _asks_for_others(before: Ensemble, after: Ensemble) -> bool:
    """Whether servers of a role would be created with another flavor of a ticket than before."""
    there = {one.name: one for one in before.roles if one.of_nova}
    ticket = before.id
    return any(
        ticket_flavor("", there[one.name], ticket) != ticket_flavor("", one, ticket)
        for one in after.roles
        if one.name in there
    )


def _first_state(held: bool, building: bool) -> DecisionState:  # noqa: FBT001 - two facts
    """The initial state: held, or confirmed or closed if no place is held."""
    if held:
        return DecisionState.HELD
    confirmed = decision_after(DecisionState.HELD, DecisionStep.CONFIRM)
    return confirmed if building else decision_after(confirmed, DecisionStep.CLOSE)


_COMMITTING: Final = 1.0
"""Seconds of the time limit that counting additional members leaves over."""
_SHARE: Final = 5
"""Counting additional members may take 1/_SHARE of the time limit, all roles together."""


def _additional(
    env: Environment, found: VerifiedPlacement, options: DecisionOptions
) -> dict[str, Any]:
    """The decision's fields `max_additional`, `steps` and `at_least`."""
    limits = env.limits
    roles = {role.name: role for role in found.built.request.roles}
    with deadline.leaving(_COMMITTING):
        rooms = {
            name: count_additional(
                env.solver,
                found,
                [roles[one] for one in roles_of_set(name)],
                most=limits.additional,
                time_limit=limits.time_limit // (_SHARE * len(options.additional)),
            )
            for name in options.additional
        }
    return {
        "max_additional": MappingProxyType({name: room.count for name, room in rooms.items()}),
        "steps": MappingProxyType({name: room.step for name, room in rooms.items()}),
        "at_least": frozenset(name for name, room in rooms.items() if not room.exact),
    }


def members_placed(request: EnsembleRequest) -> frozenset[MemberName]:
    """The members that a request places, and does not leave where they are."""
    return frozenset(name for name in request.members if name not in request.fixed)


def _to_hold(
    ensemble: Ensemble, placed: frozenset[MemberName], member_places: MemberPlaces
) -> Counter[str]:
    """Project -> places that the decision holds: of members `placed` now, and those held before."""
    held = {name for name, status in member_places.status.items() if status is MemberStatus.HELD}
    return Counter(ensemble.project_of(name.role) for name in placed | held)


def held_quota_conditions(
    env: Environment, decision: Decision, ensemble: Ensemble, answer: DecisionBasis
) -> tuple[Change, ...]:
    """The commit's condition that each project stays within its limit of held places.

    A lease's places do not count for this limit.
    """
    if decision.lease_id is not None:
        return ()
    limit, owner = env.limits.held_members, decision.project_id
    placed = members_placed(answer.placement.built.request)
    released = _held(ensemble, answer.member_places)
    return tuple(
        BoundHeld(project, limit, count - released[project], disclosed=project == owner)
        for project, count in _to_hold(ensemble, placed, answer.member_places).items()
    )


def _held(ensemble: Ensemble, member_places: MemberPlaces) -> Counter[str]:
    """Project -> its places that are held now."""
    return Counter(
        ensemble.project_of(name.role)
        for name, status in member_places.status.items()
        if status is MemberStatus.HELD
    )


def check_held_quota(
    env: Environment,
    ensemble: Ensemble,
    placed: frozenset[MemberName],
    member_places: MemberPlaces,
) -> None:
    """Check what `held_quota_conditions` would, of a request that is not written, or not yet.

    Raises:
        QuotaExceeded: the project would hold too many places.
        OtherQuotaExceeded: another project of the ensemble would.
    """
    released = _held(ensemble, member_places)
    for project, count in _to_hold(ensemble, placed, member_places).items():
        limit, used = held_limit(env, project), env.store.held(project)
        requested = count - released[project]
        if requested > 0 and used + requested > limit:
            if project != ensemble.project_id:
                raise too_much_held_by(project, requested=requested)
            raise too_much_held(limit=limit, used=used, requested=requested)
