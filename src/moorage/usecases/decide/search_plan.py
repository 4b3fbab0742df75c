"""The order of searches for a request: unaided, then by each strategy; and the fleet it may use.

A lease's terms say which stays may use its capacity before it starts (`Terms.before_start`). For
all other stays its places count as booked from now on. Consumers that were there when the lease was
granted keep their ends, and this does not apply between leases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from moorage.domain import search_progress
from moorage.domain.bookings import Binding, BookingState
from moorage.domain.errors import ProviderConflict
from moorage.domain.leases import Yielding
from moorage.domain.period import Period
from moorage.engine.state.overlay import with_bookings
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.decide.search import SearchContext, prefer_hosts
from moorage.usecases.decide.search_result import Observation, SearchResult, refusal_to_explain
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.errors import CapacityExceeded, ConstraintViolated
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.request import LeasePromise, Proposal
    from moorage.usecases.decide.solution import DecisionOptions
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.environment import Environment


def fleet_visible_to(
    store: Store, snapshot: Snapshot, options: DecisionOptions, promise: LeasePromise | None
) -> Snapshot:
    """The fleet without the places of leases that exclude this request before they start."""
    if promise is not None or not (options.preemptible or options.until is not None):
        return snapshot
    whom = Yielding.PREEMPTIBLE if options.preemptible else Yielding.BOUNDED
    shut = [one for one in store.exclusive_until_start() if whom not in one.terms.before_start]
    places = (place for one in shut for place in _places(store, snapshot, one))
    return with_bookings(snapshot, {some[0].consumer: some for some in places})


def _places(store: Store, snapshot: Snapshot, lease: Lease) -> Iterator[tuple[Booking, ...]]:
    """The bookings of each place of a lease, with their start set to now."""
    now = snapshot.taken_at
    ensemble = if_stored(store.ensemble, lease.ensemble_id)
    for member in () if ensemble is None else ensemble.members:
        kept = tuple(
            replace(one, period=Period(now, one.period.end), binding=Binding.BOUND)
            for one in bookings_of(snapshot, member.uuid)
            if one.state is BookingState.RESERVED and one.period.start > now
        )
        if kept:
            yield kept


@dataclass(frozen=True, slots=True)
class PlaceUnaided:
    """The first strategy: place the members without any change to other bookings."""

    concedes: bool = False
    name: str = "unaided"

    def attempts(
        self,
        context: SearchContext,
        observation: Observation,
        refused: Sequence[SearchResult],  # noqa: ARG002 - it is the first
    ) -> Iterator[SearchResult]:
        """See `RoomMaker`: one search for each of the proposal's selections of members."""
        for number, anew in enumerate(context.proposal.selections):
            request = context.request(anew, observation)
            stated, _ = context.state_problem(request, observation, observation.snapshot)
            stated = context.unsolved = replace(stated, plain=True)
            if stated.clash:
                yield stated
                continue
            stay = context.proposal.known_hosts.preferred
            prefer = partial(prefer_hosts, hosts=stay) if stay else None
            found = context.search("unaided", number).answer(stated.built, context, prefer)
            yield replace(stated, placement=found)


class SearchPlan:
    """Runs the searches of all strategies for one proposal, keeping results between attempts."""

    def __init__(
        self,
        env: DecideEnvironment,
        proposal: Proposal,
        options: DecisionOptions,
        time_limit: Duration,
    ) -> None:
        self._strategies = env.strategies
        self._context = SearchContext(
            env, proposal, options, time_limit, partial(search_once, env, options)
        )

    def allow(self, time_limit: Duration) -> None:
        """Set the time limit of further searches."""
        self._context.time_limit = time_limit

    @property
    def unsolved(self) -> SearchResult | None:
        """The problem of the unchanged request, as it was stated last; None: it was not yet."""
        return self._context.unsolved

    def search(
        self, observation: Observation, *, without_concessions: bool = False
    ) -> SearchResult:
        """The first placement that a strategy finds; without `placement`, the refused problem.

        `without_concessions` leaves out the strategies with concessions. The refused problem is
        chosen by `refusal_to_explain`.
        """
        context = self._context
        observation = visible(context.env, context.proposal, context.options, observation)
        refused: list[SearchResult] = []
        unsure = False
        # Leases that would move are solved together with the request, member by member, and so are
        # servers that would give way: for members that may be several things nobody is asked.
        alone = any(role.alternatives for role in context.proposal.ensemble.roles)
        for maker in self._strategies.room_makers[: 1 if alone else None]:
            if without_concessions and maker.concedes:
                continue
            for result in maker.attempts(context, observation, tuple(refused)):
                if result.placement is not None:
                    return replace(result, strategy=maker.name)
                if result.plain:
                    refused.append(result)
                unsure = unsure or result.unsure
        assert refused, "the first strategy asks nobody"
        return replace(refusal_to_explain(refused), unsure=unsure)

    def learn(
        self,
        overtaken: ProviderConflict | CapacityExceeded | ConstraintViolated,
        snapshot: Snapshot,
    ) -> None:
        """Mark the host of a conflict as contended, so that later searches avoid it."""
        provider = (
            overtaken.subject if isinstance(overtaken, ProviderConflict) else overtaken.provider
        )
        row = snapshot.row_of.get(provider)
        if row is not None:
            self._context.busy |= {snapshot.uuids[int(snapshot.root[row])]}


def search_once(
    env: DecideEnvironment,
    options: DecisionOptions,
    proposal: Proposal,
    observation: Observation,
    time_limit: Duration,
) -> SearchResult:
    """Run one search for a proposal with all strategies, such as one for another project's lease.

    Its progress is not that of the decision under way.
    """
    with search_progress.listening(None):
        return SearchPlan(env, proposal, options, time_limit).search(observation)


def visible(
    env: Environment, proposal: Proposal, options: DecisionOptions, observation: Observation
) -> Observation:
    """The observation without capacity that the request may not use."""
    snapshot = fleet_visible_to(env.store, observation.snapshot, options, proposal.promise)
    if snapshot is observation.snapshot:
        return observation
    return replace(observation, snapshot=snapshot)
