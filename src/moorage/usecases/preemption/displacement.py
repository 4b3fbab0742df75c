"""The strategy that ends preemptible consumers early, and the preference for vacant hosts.

A placement is searched for as if all consumers that can be warned in time were gone, then with only
those of lower priorities gone, as long as there is an answer. Of these consumers, those are
displaced whose capacity the placement needs; see `victims`.

The search prefers hosts on which no consumer has to end: a member on a host without room beside
preemptible consumers costs more than the objective can gain, and less than any preferred policy. A
host on which consumers of the highest priority would have to end costs most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.changes import EndBookings
from moorage.engine.joint.build import build
from moorage.engine.joint.cost import preference_scale
from moorage.engine.joint.fleet_room import with_room_of
from moorage.engine.joint.problem import permitted_hosts
from moorage.engine.state.overlay import with_bookings, without_consumers
from moorage.policies.primitives import NeverOn, OnlyOn
from moorage.usecases.decide.member_places import place_of
from moorage.usecases.decide.search import rebooked
from moorage.usecases.decide.search_result import Concession
from moorage.usecases.decide.solution import recheck_placement
from moorage.usecases.preemption.eviction import warnings
from moorage.usecases.preemption.victims import (
    PreemptionCandidate,
    displaceable,
    displacements_of,
    last_end,
    victims,
    with_least_priority,
    without_candidates,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration, Instant
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem import Problem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.request import LeasePromise, Proposal
    from moorage.usecases.decide.search import SearchContext
    from moorage.usecases.decide.search_result import DisplacedConsumer, Observation, SearchResult
    from moorage.usecases.decide.solution import VerifiedPlacement
    from moorage.usecases.shared.environment import Environment


SPARING: Final = "sparing"
"""The policy name of the preference's primitives; no policy of an ensemble has it."""


def prefer_vacant_hosts(built: BuiltProblem, there: Sequence[Snapshot]) -> BuiltProblem:
    """The problem with a preference for hosts that have room for a member without displacement.

    What is feasible stays feasible. Each member is judged alone, also where several share a host.

    `built` is stated without the consumers that could be displaced. `there` is the fleet with all
    of these, then with some of them; displacing those outweighs everything posted for the views
    before.
    """
    bare = built.problem
    placed = np.flatnonzero(bare.fixed < 0).tolist()
    above = 1 + len(placed)
    unit = preference_scale(bare)
    posted: list[NeverOn] = []
    for view in there:
        full = build(built.request, view, closed=built.closed).problem
        grudged: dict[frozenset[int], list[MemberName]] = {}
        for m in placed:
            rows = np.flatnonzero(_open(bare, m) & ~_open(full, m))
            if len(rows):
                grudged.setdefault(frozenset(rows.tolist()), []).append(bare.members[m])
        posted += (
            NeverOn(policy=SPARING, members=tuple(members), weight=unit, hosts=hosts)
            for hosts, members in grudged.items()
        )
        unit *= above
    if not posted:
        return built
    stated = tuple(
        one if one.weight is None else replace(one, weight=above ** len(there) * one.weight)
        for one in bare.primitives
    )
    return replace(built, problem=replace(bare, primitives=(*stated, *posted)))


def _open(problem: Problem, member: int) -> NDArray[np.bool_]:
    """[H] The hosts that a member alone may be on."""
    found: NDArray[np.bool_] = problem.allowed[problem.role_of[member]].copy()
    name = problem.members[member]
    for one in problem.primitives:
        if isinstance(one, NeverOn | OnlyOn) and one.weight is None and name in one.members:
            found &= permitted_hosts(one, len(problem.hosts))
    return found


Candidates = Mapping[str, PreemptionCandidate]


@dataclass(frozen=True, eq=False)
class DisplacementConcession(Concession):
    """The displacement of preemptible consumers for a request."""

    displaced: tuple[DisplacedConsumer, ...] = ()
    evicted: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """The displaced consumers, with the providers that each is booked on."""

    def relied(self) -> Mapping[str, frozenset[str]]:
        """Displaced consumers, with the providers on which each must still be booked."""
        return self.evicted

    def ends(self, env: Environment, proposal: Proposal, decision: Decision) -> Iterator[Change]:
        """The new ends, with warnings; consumers displaced for an offer are not warned yet."""
        for end in sorted({one.end for one in self.displaced}):
            who = frozenset(one.consumer for one in self.displaced if one.end == end)
            yield EndBookings(who, end, decision.lease_id)
        if proposal.promise is None or not proposal.promise.offered:
            yield from warnings(env.store, self.displaced, decision)


def displacement(
    candidates: Candidates, out: frozenset[str], end: Instant
) -> DisplacementConcession:
    """The displacement of the chosen victims `out`, which end at `end` at the latest."""
    return DisplacementConcession(
        displacements_of(candidates, out, end),
        {one: candidates[one].providers for one in sorted(out)},
    )


def may_displace(promise: LeasePromise, notice: Duration) -> bool:
    """Whether preemptible consumers may be displaced for the promise.

    For an offer only if none of them has to end before the offer expires.
    """
    return not promise.offered or promise.period.start - 2 * notice >= promise.expires_at


def with_fewest(
    candidates: Candidates,
    best: SearchResult,
    search: Callable[[Candidates], SearchResult],
) -> SearchResult:
    """The answer that displaces only consumers of the lowest priorities, or `best`."""

    def answer(few: Candidates) -> SearchResult | None:
        found = search(few)
        return None if found.placement is None else found

    first = None if best.placement is None else best
    return with_least_priority(candidates, first, answer) or best


@dataclass(frozen=True, slots=True)
class EndPreemptible:
    """The strategy that ends preemptible consumers before a lease begins."""

    concedes: bool = True
    name: str = "end preemptible servers"

    def attempts(
        self,
        context: SearchContext,
        observation: Observation,
        refused: Sequence[SearchResult],  # noqa: ARG002 - it states problems of its own
    ) -> Iterator[SearchResult]:
        """Search once for each selection of members that may be placed anew; see `RoomMaker`."""
        proposal, notice = context.proposal, context.env.limits.notice
        if proposal.promise is None or not may_displace(proposal.promise, notice):
            return
        for number, anew in enumerate(proposal.selections):
            request = context.request(anew, observation)
            snapshot, own = observation.snapshot, request.own_consumers
            candidates = displaceable(snapshot, request.period, notice, own)
            if candidates:
                search = partial(_displacing, context, observation, request, number)
                yield with_fewest(candidates, search(candidates), search)


def _displacing(
    context: SearchContext,
    observation: Observation,
    request: EnsembleRequest,
    number: int,
    candidates: Candidates,
) -> SearchResult:
    """The answer without these candidates, reduced to the displacements that it needs."""
    snapshot = observation.snapshot
    fleet = without_candidates(snapshot, candidates.keys())
    stated, _ = context.state_problem(request, observation, fleet)
    if stated.clash:
        return stated
    there = with_bookings(snapshot, rebooked(stated.staying, observation.member_places))
    views = _spared_views(there, candidates)

    def prefer(built: BuiltProblem) -> BuiltProblem:
        return prefer_vacant_hosts(built, views)

    search = context.search("preemption", number)
    found = search.answer(stated.built, context, prefer)
    if found is None:
        return stated
    return _judged(stated, found, there, candidates, context.env.limits.notice)


def _spared_views(there: Snapshot, candidates: Candidates) -> tuple[Snapshot, ...]:
    """The fleet with all candidates, and with only those of the highest priority."""
    highest = max(one.priority for one in candidates.values())
    lower = [name for name, one in candidates.items() if one.priority < highest]
    return (there, without_candidates(there, lower)) if lower else (there,)


def _judged(
    stated: SearchResult,
    found: VerifiedPlacement,
    view: Snapshot,
    candidates: Candidates,
    notice: Duration,
) -> SearchResult:
    """The answer checked again with only its victims gone; `stated`, a refusal, if it fails."""
    request = found.built.request
    stays = stated.staying.keys() & request.fixed.keys()
    leaving = request.released | {stated.staying[name][0].consumer for name in stays}
    places = [
        found.places[name] if name not in request.fixed else place_of(view, stated.staying[name])
        for name in request.members
        if name not in request.fixed or name in stays
    ]
    out = victims(without_consumers(view, leaving), places, candidates, request.period)
    if out is None:
        return stated
    judged = _without(found, view, out)
    if judged is None:
        # A policy depends on the other consumers of a host: displace all candidates on the hosts
        # whose occupants the check has read.
        rows = {row for host in found.inspected_hosts for row in view.at_host(view.row_of[host])}
        out |= {
            one.consumer
            for one in candidates.values()
            if not rows.isdisjoint(view.row_of[uuid] for uuid in one.providers)
        }
        judged = _without(found, view, out)
    end = last_end(view.taken_at, request.period.start, notice)
    if judged is None or end is None:
        return stated
    concessions = (displacement(candidates, out, end),) if out else ()
    return replace(stated, built=judged.built, placement=judged, concessions=concessions)


def _without(
    found: VerifiedPlacement, view: Snapshot, out: frozenset[str]
) -> VerifiedPlacement | None:
    """The answer, checked again with these consumers gone and all others there."""
    built = found.built
    bare = without_candidates(view, out)
    anew = build(built.request, bare, closed=built.closed)
    return recheck_placement(found, with_room_of(anew, built))
