"""How many whole ensembles of a template or flavor fit."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import Member
from moorage.domain.errors import Busy, InvalidDescription
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.domain.placement import Place
from moorage.domain.requests import Objective
from moorage.engine.explain.conflicts import any_placement
from moorage.engine.joint.build import build, build_on_terrain
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.engine.joint.windows import TimedProblem, join_problems
from moorage.usecases.capacity.fit import (
    Fit,
    leases_may_move,
    limiting_factors,
    period_of,
    placement_as_is,
    with_leases_moving,
)
from moorage.usecases.decide.closed_hosts import closed_hosts
from moorage.usecases.decide.max_additional import AdditionalMembers, count_additional
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.search_result import Observation
from moorage.usecases.decide.solution import request_for, solve_and_verify
from moorage.usecases.ensembles.create import described_ensemble
from moorage.usecases.shared.access import own_ensemble
from moorage.usecases.shared.limits import time_limit_within
from moorage.usecases.shared.quotas import held_limit, quota_allows

if TYPE_CHECKING:
    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration, Period
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

_MEMBERS: Final = 5_000
"""Limit of members of all copies together."""


def fit_described(
    env: UseCaseEnvironment,
    caller: Caller,
    description: EnsembleDescription,
    window: Period | None,
    *,
    time_limit: Duration | None = None,
) -> Fit:
    """How many ensembles of a description fit; see `fit_copies`.

    Raises:
        UnknownName, InvalidDescription, UnknownPolicy, Contradiction: as for an ensemble.
        Busy: time ran out before it was known whether one fits.
    """
    ensemble = described_ensemble(env, caller, description)
    told = env.with_disclosure_for(operator=caller.operator)
    return fit_copies(told, ensemble, window, time_limit=time_limit)


def fit_more(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    window: Period | None,
    *,
    time_limit: Duration | None = None,
) -> Fit:
    """How many more ensembles like a stored one fit beside it; see `fit_copies`.

    Raises:
        NotFound: no such ensemble for this caller.
        InvalidDescription, Busy: as for `fit_copies`.
    """
    stored = own_ensemble(env.store, caller, ensemble_id)
    fresh = tuple(Member(one.name, env.ids.uuid()) for one in stored.members)
    another = replace(stored, id=env.ids.uuid(), members=fresh, salt=env.ids.salt())
    return fit_copies(env, another, window, time_limit=time_limit)


def fit_copies(
    env: UseCaseEnvironment,
    ensemble: Ensemble,
    window: Period | None,
    *,
    time_limit: Duration | None,
) -> Fit:
    """How many ensembles like this one fit at the same time, each with its own policies.

    The ensemble has no places. A window of None is from now on, without an end. `time_limit` is for
    counting, and as much again for the limiting factors.

    Raises:
        InvalidDescription: the ensemble has no members, or the window is in the past.
        Busy: time ran out before it was known whether one fits.
    """
    limit = time_limit_within(env.limits, time_limit)
    snapshot = env.store.snapshot()
    exclusive = env.store.exclusive_ensembles(snapshot)
    if not ensemble.members:
        raise InvalidDescription("there is nothing to place: no role has members", path="fit")
    period = period_of(env, None, window, snapshot.taken_at)
    member_places = locate_members(snapshot, ensemble)
    everyone = frozenset(one.name for one in ensemble.members)
    request = request_for(ensemble, member_places, everyone, period, Objective.PACK)
    closed = closed_hosts(exclusive.ensembles, snapshot, ensemble, period)
    built = build(request, snapshot, closed=closed)
    began, taken = env.stopwatch(), list[Place]()
    single = len(ensemble.members) == 1 and not ensemble.policies
    moving = single and window is None
    if single:
        # Copies of a single member without policies are members of one ensemble without policies.
        alone = replace(request, members=())
        none = build(alone, snapshot, closed=closed)
        room = count_additional(
            env.solver,
            placement_as_is(none),
            (ensemble.roles[0],),
            most=env.limits.additional,
            time_limit=limit,
        )
        if moving and room.exact:
            observation = Observation(snapshot, member_places, exclusive.ensembles)
            bare, role = replace(ensemble, members=()), ensemble.roles[0]
            room = with_leases_moving(env, bare, None, role, room, observation, limit)
        name = ensemble.roles[0].name
        more = tuple(MemberName(name, i) for i in range(room.count + 1))
        next_one = build_on_terrain(replace(request, members=more), built.terrain, closed=closed)
    else:
        copies = _Copies(env, built, snapshot, ensemble, limit)
        room = copies.count()
        next_one, taken = copies.refused, copies.taken
    left = limit / SECOND * 2 - (env.stopwatch() - began)
    return Fit(
        additional=room.count,
        exact=room.exact and (moving or not leases_may_move(env, snapshot, period)),
        step=room.step,
        limited_by=limiting_factors(env, next_one, snapshot, left, taken) if room.exact else (),
        quota_allows=_quota_of_copies(env, ensemble, period),
        window=period,
        snapshot=snapshot,
    )


def _quota_of_copies(env: UseCaseEnvironment, ensemble: Ensemble, period: Period) -> int | None:
    """How many copies quotas allow: of held places, or of leases if the period has an end."""
    if period.open_ended:
        held = held_limit(env, ensemble.project_id) - env.store.held(ensemble.project_id)
        return max(held // len(ensemble.members), 0)
    leased = quota_allows(env, ensemble.project_id, period)
    return None if leased is None else leased // len(ensemble.members)


class _Copies:
    """Places one copy after another; if the next one has no room, solves all jointly."""

    def __init__(
        self,
        env: UseCaseEnvironment,
        built: BuiltProblem,
        snapshot: Snapshot,
        ensemble: Ensemble,
        limit: Duration,
    ) -> None:
        self._env = env
        self._built = built
        self._snapshot = snapshot
        self._ensemble = ensemble
        self._ends = env.stopwatch() + limit / SECOND
        self.refused = built
        """The problem of the copy that did not fit beside the others."""
        self.taken: list[Place] = []
        """The places of the copies that fit."""

    def count(self) -> AdditionalMembers:
        """The number of copies that fit."""
        number, most = (
            0,
            min(self._env.limits.additional, _MEMBERS // len(self._built.request.members)),
        )
        try:
            while number < most:
                found = solve_and_verify(
                    self._env.solver, self.refused, time_limit=self._left(), seed=number
                )
                if found is None:
                    return self._jointly(number)
                number += 1
                places = list(found.places.values())
                self.taken += places
                terrain = self.refused.terrain.with_places(places)
                self.refused = build_on_terrain(
                    self._built.request, terrain, closed=self._built.closed
                )
        except Busy:
            if not number:
                raise
        return AdditionalMembers(number, exact=False)

    def _jointly(self, number: int) -> AdditionalMembers:
        """Count copies beyond `number` that fit if all are placed jointly."""
        on_trees = self._built.problem.proof is not None
        if self._ensemble.keeps_others_out or on_trees or self._built.alternatives is not None:
            # Exclusive ensembles, devices and alternatives are not expressed in the joint problem.
            return AdditionalMembers(number, exact=number == 0)
        if number == 0:
            return AdditionalMembers(0, exact=True)
        party = TimedProblem(self._built, MappingProxyType({}))
        while (number + 1) * len(self._built.request.members) <= _MEMBERS:
            problem = any_placement(join_problems([party] * (number + 1), self._snapshot))
            try:
                outcome = solve(self._env.solver, problem, time_limit=self._left(), seed=number)
            except Busy:
                break
            if outcome.verdict is Verdict.INFEASIBLE:
                return AdditionalMembers(number, exact=True)
            if outcome.verdict is not Verdict.FEASIBLE:
                break
            number += 1
        return AdditionalMembers(number, exact=False)

    def _left(self) -> Duration:
        left = self._ends - self._env.stopwatch()
        if left <= 0:
            raise Busy("time ran out while counting", retry_after=5)
        return max(int(left * SECOND), 1)
