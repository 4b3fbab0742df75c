"""Searches for one request: build the joint problem, reuse the last placement, or solve."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from moorage.domain.errors import Busy, InvalidDescription
from moorage.domain.period import FOREVER, SECOND, Period
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.cost import preference_scale
from moorage.engine.joint.fleet_room import with_fleet_room, with_room_of
from moorage.engine.joint.terrain import cut_terrain
from moorage.engine.state.overlay import with_bookings, worsens_overage
from moorage.policies.primitives import OnlyOn
from moorage.usecases.decide.closed_hosts import closed_hosts
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.decide.search_result import SearchResult
from moorage.usecases.decide.solution import (
    edges_before,
    placement_on_hosts,
    recheck_placement,
    request_for,
    solve_and_verify,
)
from moorage.usecases.shared.limits import check_stay

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.flavors import Flavor
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration, Instant
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import Proposal, SelectsMembers
    from moorage.usecases.decide.search_result import Observation
    from moorage.usecases.decide.solution import DecisionOptions, VerifiedPlacement
    from moorage.usecases.shared.environment import Environment
    from moorage.usecases.shared.limits import Limits


def staying_put(
    proposal: Proposal, request: EnsembleRequest, member_places: MemberPlaces, period: Period
) -> Mapping[MemberName, tuple[Booking, ...]]:
    """Fixed members whose bookings are rewritten, with the new bookings.

    Those are held members, and in a lease all members whose bookings have an end.
    """
    found: dict[MemberName, tuple[Booking, ...]] = {}
    for name in request.fixed:
        bookings, status = member_places.bookings[name], member_places.of(name)
        if status is MemberStatus.HELD:
            found[name] = tuple(_kept(one, period, member_places.at) for one in bookings)
        elif proposal.promise is not None and bookings[0].period.end != FOREVER:
            found[name] = tuple(
                replace(one, period=Period(one.period.start, period.end)) for one in bookings
            )
    return MappingProxyType(found)


def rebooked(
    stays: Mapping[MemberName, tuple[Booking, ...]], member_places: MemberPlaces
) -> dict[str, tuple[Booking, ...]]:
    """Consumer -> new bookings, for fixed members whose bookings change."""
    return {
        some[0].consumer: some
        for name, some in stays.items()
        if some != member_places.bookings[name]
    }


def _kept(booking: Booking, period: Period, now: Instant) -> Booking:
    """The booking moved to another period; an early end for a lease is kept."""
    begun = booking.period.start <= now and period.start <= now
    start = booking.period.start if begun else period.start
    if booking.declared_end is None:
        return replace(booking, period=Period(start, period.end))
    end = min(booking.period.end, period.end)
    return replace(booking, period=Period(start, end), declared_end=period.end)


STAYING: Final = "staying"
"""The policy name of the preference's primitives; no policy of an ensemble has it."""


def prefer_hosts(built: BuiltProblem, hosts: Mapping[MemberName, str]) -> BuiltProblem:
    """The problem with a preference of members for a host each, given by its UUID.

    A member elsewhere costs more than the objective can gain, and less than any preferred policy.
    What is feasible stays feasible.
    """
    bare = built.problem
    row_of = {uuid: row for row, uuid in enumerate(bare.hosts)}
    at: dict[int, list[MemberName]] = {}
    for number in np.flatnonzero(bare.fixed < 0).tolist():
        member = bare.members[number]
        row = row_of.get(hosts.get(member, ""))
        if row is not None:
            at.setdefault(row, []).append(member)
    if not at:
        return built
    above = 1 + sum(map(len, at.values()))
    unit = preference_scale(bare)
    stated = (
        one if one.weight is None else replace(one, weight=above * one.weight)
        for one in bare.primitives
    )
    posted = (
        OnlyOn(policy=STAYING, members=tuple(some), weight=unit, hosts=frozenset({row}))
        for row, some in at.items()
    )
    return replace(built, problem=replace(bare, primitives=(*stated, *posted)))


BUSY_HOST: Final = "contention"
"""Reason id of contended hosts; they are avoided if possible, but never a reason of a refusal."""

_PREFERRING: Final = SECOND
"""Time limit of a search with an additional preference."""


@dataclass(eq=False)
class Search:
    """Finds a placement for one problem at each attempt, and keeps the last one for the next."""

    env: Environment
    options: DecisionOptions
    known: Mapping[MemberName, str]
    """See `KnownHosts.places`."""
    placement: VerifiedPlacement | None = None
    broken: int = 0
    """How many placements no longer held on a newer snapshot."""

    def answer(
        self,
        built: BuiltProblem,
        context: SearchContext,
        prefer: Callable[[BuiltProblem], BuiltProblem] | None = None,
    ) -> VerifiedPlacement | None:
        """The last placement if it still holds, else a new one; None if there is none.

        `prefer` adds a preference to the problem; that is tried first, for `_PREFERRING` at most.
        """
        if self.placement is not None:
            self.placement = recheck_placement(self.placement, built)
            self.broken += self.placement is None
        elif self.known:
            self.placement, self.known = placement_on_hosts(self.known, built), MappingProxyType({})
        if self.placement is None and self.broken > 1 and context.busy:
            closed = {**built.closed, BUSY_HOST: context.busy}
            avoiding = build_on_terrain(built.request, built.terrain, closed=closed)
            avoiding = with_room_of(avoiding, built)
            self.placement = self._find(avoiding, context.time_limit, prefer)
        if self.placement is None:
            self.placement = self._find(built, context.time_limit, prefer)
        return self.placement

    def _find(
        self,
        built: BuiltProblem,
        time_limit: Duration,
        prefer: Callable[[BuiltProblem], BuiltProblem] | None,
    ) -> VerifiedPlacement | None:
        solver, seed = self.env.solver, self.options.seed
        if prefer is not None:
            limit = min(time_limit, _PREFERRING)
            try:
                return solve_and_verify(solver, prefer(built), time_limit=limit, seed=seed)
            except Busy:
                pass  # no placement in time: search without the preference
        return solve_and_verify(solver, built, time_limit=time_limit, seed=seed)


class SearchFunction(Protocol):
    """A function that searches for a proposal with all strategies."""

    def __call__(
        self, proposal: Proposal, observation: Observation, time_limit: Duration
    ) -> SearchResult:
        """The search result.

        Raises:
            Busy: time ran out before an answer or a proof.
        """


@dataclass(eq=False)
class SearchContext:
    """One request with the results and conflicts of earlier attempts."""

    env: Environment
    proposal: Proposal
    options: DecisionOptions
    time_limit: Duration
    """For each search."""
    search_for: SearchFunction
    """Searches for another proposal by all strategies."""
    busy: frozenset[str] = frozenset()
    """UUIDs of contended hosts: concurrent commits on them caused conflicts."""
    unsolved: SearchResult | None = None
    """The problem of the unchanged request, as it was stated last."""
    _searches: dict[Hashable, Search] = field(default_factory=dict)

    def search(self, *key: Hashable) -> Search:
        """The search with this key, with its last placement."""
        if key not in self._searches:
            self._searches[key] = Search(self.env, self.options, self.proposal.known_hosts.places)
        return self._searches[key]

    def period(self, observation: Observation) -> Period:
        """The period for which the places are booked.

        Raises:
            InvalidDescription, LimitExceeded: see `requested_period`.
        """
        return requested_period(
            self.env.limits, self.proposal, self.options, observation.snapshot.taken_at
        )

    def request(self, anew: SelectsMembers, observation: Observation) -> EnsembleRequest:
        """The joint request that places the members `anew` selects, with all others fixed."""
        proposal, member_places, period = (
            self.proposal,
            observation.member_places,
            self.period(observation),
        )
        remaining = Period(max(period.start, member_places.at), period.end)
        request = request_for(
            proposal.ensemble,
            member_places,
            anew(member_places),
            remaining,
            self.options.objective,
            first_choices=self.options.first_choices,
        )
        return replace(
            request,
            roles=proposal.roles or request.roles,
            own_consumers=request.own_consumers | proposal.freed,
            released=request.released | proposal.freed,
            restated=proposal.restated,
            former_edges=edges_before(
                proposal.before or proposal.ensemble, proposal.ensemble, member_places
            ),
        )

    def state_problem(
        self,
        request: EnsembleRequest,
        observation: Observation,
        fleet: Snapshot,
        *,
        run: Duration | None = None,
        closed: Mapping[str, frozenset[str]] | None = None,
    ) -> tuple[SearchResult, Snapshot]:
        """The problem of a request, as a result without a placement; and the fleet it is built on.

        Args:
            request: see `request`.
            observation: the members' places and the exclusive ensembles.
            fleet: the fleet, possibly without consumers that could be displaced.
            run: check capacity only for so long, but policies for the whole period; None: both
                for the whole period.
            closed: hosts on which nothing may be placed; None: `closed_hosts`.
        """
        period = self.period(observation)
        staying = staying_put(self.proposal, request, observation.member_places, period)
        instead = rebooked(staying, observation.member_places)
        view = with_bookings(fleet, instead)
        if closed is None:
            closed = closed_hosts(
                observation.exclusive, observation.snapshot, self.proposal.ensemble, request.period
            )
        barred = {**self.proposal.known_hosts.barred, **closed}
        built = _built(request, view, run, barred, self.env.store.flavors)
        clash = bool(instead) and worsens_overage(fleet, instead)
        return SearchResult(built, None, period, staying, clash=clash), view


def requested_period(
    limits: Limits, proposal: Proposal, options: DecisionOptions, now: Instant
) -> Period:
    """The period for which the places of a proposal are booked.

    Raises:
        InvalidDescription: the end of the stay is past.
        LimitExceeded: the stay ends beyond the horizon, unless it is an existing one.
    """
    if proposal.promise is not None:
        return proposal.promise.period
    until = FOREVER if options.until is None else options.until
    if until <= now:
        raise InvalidDescription("the end of the stay lies in the past", path="until")
    if not options.as_before:
        check_stay(limits, until, now)
    return Period(now, until)


def _built(
    request: EnsembleRequest,
    view: Snapshot,
    run: Duration | None,
    closed: Mapping[str, frozenset[str]],
    flavors: Callable[[], Iterable[Flavor]],
) -> BuiltProblem:
    """The problem; with `run`, capacity is checked for so long, occupants for the whole period."""
    terrain = cut_terrain(view, request)
    if run is not None and (shorter := brief(request.period, run)) != request.period:
        first = cut_terrain(view, replace(request, period=shorter))
        terrain = replace(first, occupants_of=terrain.occupants_of, occupied=terrain.occupied)
    built = build_on_terrain(request, terrain, closed=closed)
    return with_fleet_room(built, view, flavors)


def brief(stay: Period, run: Duration) -> Period:
    """The first part of a stay, at most `run` long."""
    return Period(stay.start, min(stay.start + run, stay.end))
