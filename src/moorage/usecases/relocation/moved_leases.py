"""The strategies that make room by moving leases that have not begun, also with displacement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from moorage.engine.joint.problem import Verdict
from moorage.usecases.decide.search import rebooked
from moorage.usecases.preemption.displacement import (
    may_displace,
    with_fewest,
)
from moorage.usecases.preemption.victims import last_end
from moorage.usecases.relocation.displacements import preemption_pool
from moorage.usecases.relocation.replanning import ReplanResult, replan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.usecases.decide.search import SearchContext
    from moorage.usecases.decide.search_result import Observation, SearchResult
    from moorage.usecases.preemption.victims import PreemptionCandidate
    from moorage.usecases.relocation.displacements import PreemptionPool


@dataclass(frozen=True, slots=True)
class MoveLeases:
    """The strategy that moves leases that have not begun."""

    concedes: bool = True
    name: str = "move leases"

    def attempts(
        self,
        context: SearchContext,
        observation: Observation,
        refused: Sequence[SearchResult],
    ) -> Iterator[SearchResult]:
        """Search once for each refused problem; see `RoomMaker`."""
        for one in refused:
            yield _moving(context, observation, one)


@dataclass(frozen=True, slots=True)
class MoveLeasesAndEndPreemptible:
    """The strategy that moves leases and also displaces preemptible consumers."""

    concedes: bool = True
    name: str = "move leases and end preemptible servers"

    def attempts(
        self,
        context: SearchContext,
        observation: Observation,
        refused: Sequence[SearchResult],
    ) -> Iterator[SearchResult]:
        """Search once for each refused problem; see `RoomMaker`."""
        promise, notice = context.proposal.promise, context.env.limits.notice
        if promise is None or not may_displace(promise, notice):
            return
        for one in refused:
            request = one.built.request
            if last_end(observation.snapshot.taken_at, request.period.start, notice) is None:
                continue
            pool = preemption_pool(observation.snapshot, notice, request.own_consumers)
            if pool.candidates:
                search = partial(_with_ends, context, observation, one, pool)
                best = _moving(context, observation, one, pool)
                yield with_fewest(pool.candidates, best, search)


def _with_ends(
    context: SearchContext,
    observation: Observation,
    refused: SearchResult,
    pool: PreemptionPool,
    few: Mapping[str, PreemptionCandidate],
) -> SearchResult:
    return _moving(context, observation, refused, replace(pool, candidates=few))


def _moving(
    context: SearchContext,
    observation: Observation,
    refused: SearchResult,
    pool: PreemptionPool | None = None,
) -> SearchResult:
    """The answer with other leases moved; the refusal if there is none."""
    found = replan(
        context.env.store,
        context.env.solver,
        observation.snapshot,
        refused.built,
        observation.exclusive,
        rebooked(refused.staying, observation.member_places),
        time_limit=context.time_limit,
        seed=context.options.seed,
        pool=pool,
    )
    aided = replace(refused, plain=False)
    if not isinstance(found, ReplanResult):
        return replace(aided, unsure=found is not Verdict.INFEASIBLE)
    ends = (found.gone,) if found.gone.displaced else ()
    return replace(
        aided,
        built=found.placement.built,
        placement=found.placement,
        concessions=(*ends, *found.moved),
    )
