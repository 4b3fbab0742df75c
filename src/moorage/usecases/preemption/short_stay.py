"""The strategy that places preemptible ensembles for a part of their stay, before leases begin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.period import DAY, HOUR
from moorage.engine.state.overlay import without_consumers
from moorage.usecases.decide.closed_hosts import foreign_occupant
from moorage.usecases.decide.search import brief
from moorage.usecases.decide.search_result import Concession
from moorage.usecases.decide.writes import hold_bookings
from moorage.usecases.preemption.eviction import early_end_warnings
from moorage.usecases.preemption.exclusive_leases import (
    closed_before_run,
    end_before_exclusive,
    exclusive_periods,
)
from moorage.usecases.preemption.victims import NotALease, by_end, required_end, total_demand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.request import ForcedEnd, Proposal
    from moorage.usecases.decide.search import SearchContext
    from moorage.usecases.decide.search_result import Observation, SearchResult
    from moorage.usecases.decide.solution import VerifiedPlacement
    from moorage.usecases.shared.environment import Environment

_RUNS: Final = (28 * DAY, 7 * DAY, DAY, 4 * HOUR)
"""Shorter stays to search for if the whole stay does not fit; the notice is the last."""


@dataclass(frozen=True, eq=False)
class MemberEarlyEnds(Concession):
    """The early ends of a preemptible ensemble's own members."""

    endings: Mapping[MemberName, ForcedEnd]

    def ends(self, env: Environment, proposal: Proposal, decision: Decision) -> Iterator[Change]:
        """The members' warnings; their early ends are in the bookings of the placement itself."""
        for member in proposal.ensemble.members:
            if member.name in self.endings:
                place, end = decision.places[member.name], self.endings[member.name]
                bookings = hold_bookings(member, place, decision, ending=end)
                yield from early_end_warnings(
                    env.store, proposal.ensemble, member.name, bookings, decision.created_at
                )


@dataclass(frozen=True, slots=True)
class ShortenStay:
    """The strategy for preemptible ensembles: members end before leases that need their hosts."""

    concedes: bool = False
    name: str = "shorten the stay"

    def attempts(
        self,
        context: SearchContext,
        observation: Observation,
        refused: Sequence[SearchResult],  # noqa: ARG002 - it states problems of its own
    ) -> Iterator[SearchResult]:
        """Search once for each shorter stay, the longest first; see `RoomMaker`."""
        proposal, notice = context.proposal, context.env.limits.notice
        if proposal.promise is not None or not context.options.preemptible:
            return
        for run in (*_RUNS, notice):
            if run >= notice:
                yield _for_a_while(context, observation, run)


def _for_a_while(context: SearchContext, observation: Observation, run: Duration) -> SearchResult:
    """The answer with room for the first `run` of the stay, and each member's necessary end."""
    snapshot, proposal = observation.snapshot, context.proposal
    request = context.request(proposal.selections[0], observation)
    stay = request.period
    closed = closed_before_run(
        context.env.store,
        observation.exclusive,
        snapshot,
        proposal.ensemble,
        stay,
        brief(stay, run),
    )
    stated, view = context.state_problem(request, observation, snapshot, run=run, closed=closed)
    if stated.clash:
        return stated
    found = context.search("short stay", run).answer(stated.built, context)
    return stated if found is None else _until(context, observation, stated, found, view)


def _until(
    context: SearchContext,
    observation: Observation,
    stated: SearchResult,
    found: VerifiedPlacement,
    view: Snapshot,
) -> SearchResult:
    """The answer with an end for each member whose place a lease needs later."""
    request, notice = found.built.request, context.env.limits.notice
    ensemble, store = context.proposal.ensemble, context.env.store
    others = [one for one in observation.exclusive if one.id != ensemble.id]

    @cache  # bookings of one decision are on many hosts
    def lease_of(decision: str) -> str | None:
        return store.decision(decision).lease_id

    alone = {
        role: tuple(exclusive_periods(lease_of, view, stranger, others, stated.period))
        for role in {name.role for name in request.members}
        for stranger in (foreign_occupant(ensemble, role),)
    }
    bare = without_consumers(view, request.released)
    places = {name: found.places[name] for name in request.members if name not in request.fixed}
    taken = total_demand(places.values())
    endings = {}
    try:
        for name, place in places.items():
            deadline.check()
            mine = {provider: taken[provider] for provider in place.allocations}
            rows = [view.row_of[provider] for provider in (place.host, *mine)]
            ends = (
                required_end(lease_of, bare, mine, stated.period, notice),
                end_before_exclusive(alone[name.role], rows, view.taken_at, notice),
            )
            if any(ends):
                endings[name] = min(filter(None, ends), key=by_end)
    except NotALease:
        return stated
    kept = MappingProxyType(endings)
    concessions = (MemberEarlyEnds(kept),) if endings else ()
    return replace(stated, placement=found, endings=kept, concessions=concessions)
