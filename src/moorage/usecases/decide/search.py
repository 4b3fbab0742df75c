"""Searches for one request: states problems, reuses answers, rebooks members that stay."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from moorage.domain.errors import Busy, InvalidDescription
from moorage.domain.period import FOREVER, SECOND, Period
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.terrain import cut_terrain
from moorage.engine.state.overlay import with_bookings, worsens_overage
from moorage.usecases.decide.closed_hosts import closed_hosts
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.decide.search_result import SearchResult
from moorage.usecases.decide.solution import (
    placement_on_hosts,
    recheck_placement,
    request_for,
    solve_and_verify,
)
from moorage.usecases.shared.limits import check_stay

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import MemberName
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
    proposal: Proposal, request: EnsembleRequest, stand: MemberPlaces, period: Period
) -> Mapping[MemberName, tuple[Booking, ...]]:
    """Members that stay put and are written anew: those held; in a lease, all who end with it."""
    found: dict[MemberName, tuple[Booking, ...]] = {}
    for name in request.fixed:
        bookings, status = stand.bookings[name], stand.of(name)
        if status is MemberStatus.HELD:
            found[name] = tuple(_kept(one, period, stand.at) for one in bookings)
        elif proposal.promise is not None and bookings[0].period.end != FOREVER:
            found[name] = tuple(
                replace(one, period=Period(one.period.start, period.end)) for one in bookings
            )
    return MappingProxyType(found)


def rebooked(
    stays: Mapping[MemberName, tuple[Booking, ...]], stand: MemberPlaces
) -> dict[str, tuple[Booking, ...]]:
    """What members that stay put are booked for afterwards, by consumer; only what differs."""
    return {some[0].consumer: some for name, some in stays.items() if some != stand.bookings[name]}


def _kept(booking: Booking, period: Period, now: Instant) -> Booking:
    """A hold for another period; one that ends before its time ends there still."""
    begun = booking.period.start <= now and period.start <= now
    start = booking.period.start if begun else period.start
    if booking.declared_end is None:
        return replace(booking, period=Period(start, period.end))
    end = min(booking.period.end, period.end)
    return replace(booking, period=Period(start, end), declared_end=period.end)


BUSY_HOST: Final = "contention"
"""Reason id of hosts that others are busy with; such hosts are only avoided, never refused."""

_PREFERRING: Final = SECOND
"""How long an answer is looked for by a further preference: the best is not proved."""


@dataclass(eq=False)
class Search:
    """Looks for answers to one problem as the ledger changes, and keeps the last one."""

    env: Environment
    ask: DecisionOptions
    known: Mapping[MemberName, str]
    """See `Known.places`."""
    found: VerifiedPlacement | None = None
    broken: int = 0
    """How many answers no longer held."""

    def answer(
        self,
        built: BuiltProblem,
        context: SearchContext,
        prefer: Callable[[BuiltProblem], BuiltProblem] | None = None,
    ) -> VerifiedPlacement | None:
        """The last answer if it still holds, or else a new one; None if there is none.

        Args:
            built: the problem.
            context: the time limit, and the hosts on which others were quicker.
            prefer: adds a preference to the problem, which is tried first and for a moment only.
        """
        if self.found is not None:
            self.found = recheck_placement(self.found, built)
            self.broken += self.found is None
        elif self.known:
            self.found, self.known = placement_on_hosts(self.known, built), MappingProxyType({})
        if self.found is None and self.broken > 1 and context.busy:
            closed = {**built.closed, BUSY_HOST: context.busy}
            avoiding = build_on_terrain(built.request, built.terrain, closed=closed)
            self.found = self._find(avoiding, context.time_limit, prefer)
        if self.found is None:
            self.found = self._find(built, context.time_limit, prefer)
        return self.found

    def _find(
        self,
        built: BuiltProblem,
        time_limit: Duration,
        prefer: Callable[[BuiltProblem], BuiltProblem] | None,
    ) -> VerifiedPlacement | None:
        solver, seed = self.env.solver, self.ask.seed
        if prefer is not None:
            limit = min(time_limit, _PREFERRING)
            try:
                return solve_and_verify(solver, prefer(built), time_limit=limit, seed=seed)
            except Busy:
                pass  # the preference was too much to ask
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
    ask: DecisionOptions
    time_limit: Duration
    """For each search."""
    search_for: SearchFunction
    """Searches for another proposal by all strategies."""
    busy: frozenset[str] = frozenset()
    """Hosts on which others were quicker."""
    _searches: dict[Hashable, Search] = field(default_factory=dict)

    def search(self, *key: Hashable) -> Search:
        """The search of that name, with its last answer."""
        if key not in self._searches:
            self._searches[key] = Search(self.env, self.ask, self.proposal.known.places)
        return self._searches[key]

    def period(self, observation: Observation) -> Period:
        """When the places are kept.

        Raises:
            InvalidDescription, LimitExceeded: see `requested_period`.
        """
        return requested_period(
            self.env.limits, self.proposal, self.ask, observation.snapshot.taken_at
        )

    def request(self, anew: SelectsMembers, observation: Observation) -> EnsembleRequest:
        """The joint request that places these members, all others staying where they are."""
        proposal, stand, period = self.proposal, observation.stand, self.period(observation)
        ahead = Period(max(period.start, stand.at), period.end)
        request = request_for(proposal.ensemble, stand, anew(stand), ahead, self.ask.objective)
        return replace(
            request,
            roles=proposal.roles or request.roles,
            own_consumers=request.own_consumers | proposal.freed,
            released=request.released | proposal.freed,
            restated=proposal.restated,
        )

    def stated(
        self,
        request: EnsembleRequest,
        observation: Observation,
        fleet: Snapshot,
        *,
        run: Duration | None = None,
        closed: Mapping[str, frozenset[str]] | None = None,
    ) -> tuple[SearchResult, Snapshot]:
        """The problem of a request, as a result without an answer, and the fleet it is stated on.

        Args:
            request: see `request`.
            observation: where members stand, and who keeps others out.
            fleet: the fleet, perhaps without some who could make way.
            run: room counts for so long only, and company all the time; None: for all of it.
            closed: hosts on which nothing is placed, where that is other than as usual.
        """
        period = self.period(observation)
        staying = staying_put(self.proposal, request, observation.stand, period)
        instead = rebooked(staying, observation.stand)
        view = with_bookings(fleet, instead)
        if closed is None:
            closed = closed_hosts(
                observation.keepers, observation.snapshot, self.proposal.ensemble, request.period
            )
        built = _built(request, view, run, {**self.proposal.known.barred, **closed})
        clash = bool(instead) and worsens_overage(fleet, instead)
        return SearchResult(built, None, period, staying, clash=clash), view


def requested_period(
    limits: Limits, proposal: Proposal, ask: DecisionOptions, now: Instant
) -> Period:
    """When the places are kept.

    Raises:
        InvalidDescription: a stay that is over already.
        LimitExceeded: one that ends beyond the horizon, unless it is carried on.
    """
    if proposal.promise is not None:
        return proposal.promise.period
    until = FOREVER if ask.until is None else ask.until
    if until <= now:
        raise InvalidDescription("the end of the stay lies in the past", path="until")
    if not ask.as_before:
        check_stay(limits, until, now)
    return Period(now, until)


def _built(
    request: EnsembleRequest,
    view: Snapshot,
    run: Duration | None,
    closed: Mapping[str, frozenset[str]],
) -> BuiltProblem:
    """The problem; with `run`, room counts for so long only, and company all the time."""
    terrain = cut_terrain(view, request)
    if run is not None and (shorter := brief(request.period, run)) != request.period:
        first = cut_terrain(view, replace(request, period=shorter))
        terrain = replace(first, occupants_of=terrain.occupants_of)
    return build_on_terrain(request, terrain, closed=closed)


def brief(stay: Period, run: Duration) -> Period:
    """The first part of a stay, at most `run` long."""
    return Period(stay.start, min(stay.start + run, stay.end))
