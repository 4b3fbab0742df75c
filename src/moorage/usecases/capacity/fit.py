"""How many more members of a placed ensemble fit, now or in a window.

The joint search counts, with all policies and all placed members staying. Leases that have not
started are moved if that lets one more member fit, as for a real request: the count is what
repeated `extend` requests reach.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy, InvalidDescription
from moorage.domain.leases import LeaseState
from moorage.domain.period import FOREVER, SECOND, Period, format_instant, from_now_on
from moorage.domain.requests import Objective
from moorage.domain.words import counted
from moorage.engine.explain.conflict_classes import binding_classes
from moorage.engine.explain.conflict_facts import conflict_facts
from moorage.engine.explain.conflicts import DeletionFilter, Oracle
from moorage.engine.explain.element_facts import demand_text
from moorage.engine.explain.elements import CLOSED, POLICY
from moorage.engine.joint.build import build, build_on_terrain
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.engine.joint.terrain import cut_terrain
from moorage.usecases.decide.closed_hosts import closed_hosts
from moorage.usecases.decide.max_additional import AdditionalMembers, count_additional
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import Proposal
from moorage.usecases.decide.search_plan import SearchPlan
from moorage.usecases.decide.search_result import Observation
from moorage.usecases.decide.solution import DecisionOptions, VerifiedPlacement, request_for
from moorage.usecases.decide.writes import current_decision, options_like
from moorage.usecases.ensembles.create import with_more_members
from moorage.usecases.refusals.obstacles import planned_absences
from moorage.usecases.relocation.movable_leases import movable_sets
from moorage.usecases.shared.access import own_ensemble
from moorage.usecases.shared.limits import time_limit_within
from moorage.usecases.shared.quotas import held_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.period import Duration, Instant
    from moorage.domain.placement import Place
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

_BEYOND: Final = 20
"""How many members beyond the count are searched for one by one with leases moving."""


@dataclass(frozen=True, slots=True)
class LimitingFactor:
    """What limits one more member: a policy, a role's demand, or a planned host absence."""

    policy: str | None
    role: str | None
    classes: tuple[str, ...]
    needs: str
    facts: tuple[tuple[str, int], ...]
    """Numbers of the fleet that conflict with it; for operators."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The number of further members or copies that fit; without `exact` a lower bound."""

    additional: int
    exact: bool
    step: int
    """See `AdditionalMembers`."""
    limited_by: tuple[LimitingFactor, ...]
    quota_allows: int | None
    """How many more the project's quotas allow; None: without limit, or not told."""
    window: Period
    snapshot: Snapshot


def fit_members(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    role_name: str,
    window: Period | None,
    *,
    time_limit: Duration | None = None,
) -> Fit:
    """How many more members of a role fit beside the placed ones.

    A window of None is that of the ensemble's present decision or lease. `time_limit` is for
    counting, and as much again for the limiting factors.

    Raises:
        NotFound: no such ensemble for this caller.
        InvalidDescription: the ensemble has no such role, or the window is in the past.
    """
    env = env.with_disclosure_for(operator=caller.operator)
    limit = time_limit_within(env.limits, time_limit)
    ensemble = own_ensemble(env.store, caller, ensemble_id)
    role = next((one for one in ensemble.roles if one.name == role_name), None)
    if role is None:
        raise InvalidDescription(f"no role {role_name}", path="fit.role")
    decision = current_decision(env.store, ensemble)
    snapshot = env.store.snapshot()
    exclusive = env.store.exclusive_ensembles(snapshot)
    member_places = locate_members(snapshot, ensemble)
    period = period_of(env, decision, window, snapshot.taken_at)
    objective = Objective.SPREAD if decision is None else decision.objective
    request = request_for(ensemble, member_places, frozenset(), period, objective)
    built = build(
        request, snapshot, closed=closed_hosts(exclusive.ensembles, snapshot, ensemble, period)
    )
    began = env.stopwatch()
    room = count_additional(
        env.solver, placement_as_is(built), (role,), most=env.limits.additional, time_limit=limit
    )
    moving = window is None and not _leased(env, decision)
    if moving and room.exact:
        observation = Observation(snapshot, member_places, exclusive.ensembles)
        room = with_leases_moving(env, ensemble, decision, role, room, observation, limit)
    count, known = room.count, frozenset(request.members)
    beyond = with_more_members(env.ids, ensemble, role.name, count + max(room.step, 1))
    more = tuple(one.name for one in beyond.members if one.name not in known)
    more = tuple(one for one in more if one not in request.absent)
    grown = build_on_terrain(
        replace(request, members=(*request.members, *more)), built.terrain, closed=built.closed
    )
    left = limit / SECOND * 2 - (env.stopwatch() - began)
    return Fit(
        additional=count,
        exact=room.exact
        and (moving or not leases_may_move(env, snapshot, period, request.own_consumers)),
        step=room.step,
        limited_by=limiting_factors(env, grown, snapshot, left) if room.exact else (),
        quota_allows=_quota(env, ensemble, role),
        window=period,
        snapshot=snapshot,
    )


def placement_as_is(built: BuiltProblem) -> VerifiedPlacement:
    """The present places as a verified placement; no member is placed."""
    return VerifiedPlacement(
        built=built,
        outcome=Outcome(Verdict.FEASIBLE, "none"),
        hosts=built.request.fixed,
        policies=(),
        inspected_hosts=frozenset(),
        places=MappingProxyType({}),
    )


def period_of(
    env: UseCaseEnvironment, decision: Decision | None, window: Period | None, now: Instant
) -> Period:
    """The period to count for.

    Raises:
        InvalidDescription: the window is in the past.
    """
    if window is not None:
        if window.end <= now:
            raise InvalidDescription("the window lies in the past", path="fit.window.end")
        return Period(from_now_on(window.start, now), window.end)
    if decision is None:
        return Period(now)
    if _leased(env, decision):
        return Period(max(decision.period.start, now), max(decision.period.end, now + 1))
    return Period(now, decision.period.end if decision.period.end > now else FOREVER)


def _leased(env: UseCaseEnvironment, decision: Decision | None) -> bool:
    """Whether the decision is that of an open lease."""
    if decision is None or decision.lease_id is None:
        return False
    return env.store.lease(decision.lease_id).state is not LeaseState.CLOSED


def leases_may_move(
    env: UseCaseEnvironment, snapshot: Snapshot, period: Period, own: frozenset[str] = frozenset()
) -> bool:
    """Whether leases that have not begun could move for more members in the period.

    Leases of the consumers in `own` stay.
    """
    return any(movable_sets(env.store, snapshot, period, own))


def with_leases_moving(  # noqa: PLR0913, PLR0917 - what one more member would be asked for with
    env: UseCaseEnvironment,
    ensemble: Ensemble,
    decision: Decision | None,
    role: Role,
    room: AdditionalMembers,
    observation: Observation,
    time_limit: Duration,
) -> AdditionalMembers:
    """Count further members that fit if other leases move, with the search that places members."""
    options = DecisionOptions() if decision is None else options_like(decision)
    present = frozenset(one.name for one in ensemble.members)
    count, step = room.count, max(room.step, 1)
    ends = env.stopwatch() + time_limit / SECOND
    for _ in range(_BEYOND):
        grown = with_more_members(env.ids, ensemble, role.name, count + step)
        fresh = frozenset(one.name for one in grown.members) - present
        proposal = Proposal(
            grown, ensemble.generation, (lambda _, fresh=fresh: fresh,), before=ensemble
        )
        try:
            result = SearchPlan(env, proposal, options, time_limit).search(observation)
        except Busy:
            return _with_moves(room, count, exact=False)
        if result.placement is None:
            return _with_moves(room, count, exact=True)
        count += step
        if env.stopwatch() > ends:
            break
    return _with_moves(room, count, exact=False)


def _with_moves(room: AdditionalMembers, count: int, *, exact: bool) -> AdditionalMembers:
    """The count with leases moving; if it is beyond `room`, they perhaps fit at once only."""
    step = room.step
    if count > room.count:
        step = count if step > 1 else 0
    return AdditionalMembers(count, exact, step)


def _quota(env: UseCaseEnvironment, ensemble: Ensemble, role: Role) -> int | None:
    """How many more members the limits and quotas of the project allow.

    None for a role of another project, whose quota counts and is not told.
    """
    project = ensemble.project_id
    if ensemble.project_of(role.name) != project:
        return None
    held = held_limit(env, project) - env.store.held(project)
    return max(min(env.limits.members - len(ensemble.members), held), 0)


def limiting_factors(
    env: UseCaseEnvironment,
    built: BuiltProblem,
    snapshot: Snapshot,
    seconds: float,
    taken: Sequence[Place] = (),
) -> tuple[LimitingFactor, ...]:
    """The limiting factors of an infeasible request, as far as they are found in time.

    `seconds` is the time for the whole search; `taken` are further places that are taken.
    """
    if seconds <= 0:
        return ()
    oracle = Oracle(env.solver, env.countdown(seconds))
    core = next(DeletionFilter(built, oracle).conflicts(), None)
    if core is None:
        return ()
    turns = binding_classes(built, core, oracle)
    lacking = conflict_facts(built, core.elements, turns)
    facts = tuple((one.text, one.have) for one in lacking if one.have is not None)
    return _away(env, built, snapshot, oracle, taken) + tuple(
        LimitingFactor(
            policy=one.name if one.kind == POLICY else None,
            role=None if one.kind in {POLICY, CLOSED} else one.name,
            classes=tuple(sorted(turns.get(one.name, ()))) if one.kind == "resources" else (),
            needs=one.name if one.kind == CLOSED else demand_text(built, one, turns),
            facts=facts,
        )
        for one in core.elements
    )


def _away(
    env: UseCaseEnvironment,
    built: BuiltProblem,
    snapshot: Snapshot,
    oracle: Oracle,
    taken: Sequence[Place],
) -> tuple[LimitingFactor, ...]:
    """The planned absence of hosts, if one more member fits until it begins; else empty."""
    request = built.request
    first = min(planned_absences(built, snapshot), default=None)
    if first is None:
        return ()
    until = replace(request, period=Period(request.period.start, first))
    terrain = cut_terrain(snapshot, until).with_places(taken)
    if oracle.feasible(build_on_terrain(until, terrain, closed=built.closed).problem) is not True:
        return ()
    states = [snapshot.state(row) for row in snapshot.hosts.tolist()]
    going = [one for one in states if any(away.start == first for away in one.down)]
    rough = env.limits.disclosure
    hosts = counted(len(going), "host") if rough.exact else f"{rough.count_text(len(going))} hosts"
    since = format_instant(rough.since(first))
    return (LimitingFactor(None, None, (), f"{hosts} planned to be away from {since}", ()),)
