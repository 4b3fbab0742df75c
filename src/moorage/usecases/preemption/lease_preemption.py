"""Preemption of leases that have not begun, for a lease of a higher priority.

It is tried last: after a search without displacement, with preemptible servers ended, and with
planned leases moved. Candidates are leases of a lower priority that begin no sooner than the
preemption notice. The lightest sufficient set is chosen: the fewest leases of the highest priority
among them, then of the next, then the fewest places, then the newest leases.
`engine.explain.min_hitting_set` proves it minimal; it asks the search that every lease uses.

The module `preempted_leases` writes their end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.errors import Busy
from moorage.domain.period import SECOND
from moorage.engine.explain.min_hitting_set import minimum_set
from moorage.engine.state.overlay import with_bookings
from moorage.usecases.decide.search_result import refusal_to_explain
from moorage.usecases.preemption.pending_leases import without_leases
from moorage.usecases.preemption.preempted_leases import (
    PreemptedLease,
    outrankable_leases,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Window
    from moorage.domain.period import Duration
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.request import Proposal
    from moorage.usecases.decide.search import SearchContext, SearchFunction
    from moorage.usecases.decide.search_result import Observation, SearchResult
    from moorage.usecases.preemption.pending_leases import PendingLease
    from moorage.usecases.shared.environment import Environment

SHARE: Final = 4
"""Divisor of the explanation budget: a quarter may be spent on the leases' next windows."""


class NextWindow(Protocol):
    """Finds the next window in which a preempted lease fits."""

    def __call__(
        self,
        env: Environment,
        lease: PendingLease,
        view: Snapshot,
        exclusive: tuple[Ensemble, ...],
        budget: Duration,
    ) -> Window | None:
        """The window; None if none was found within the budget."""


@dataclass(frozen=True, slots=True)
class PreemptLeases:
    """The strategy that takes the places of leases of lower priority."""

    next_window: NextWindow
    """Finds the next window of each preempted lease, for its notice."""
    concedes: bool = True
    name: str = "preempt leases"

    def attempts(
        self,
        context: SearchContext,
        observation: Observation,
        refused: Sequence[SearchResult],
    ) -> Iterator[SearchResult]:
        """Yield the answer without the lightest sufficient set of leases; see `RoomMaker`."""
        env, promise = context.env, context.proposal.promise
        if promise is None or not promise.outranks or env.limits.preemption_notice is None:
            return
        in_vain = replace(refusal_to_explain(refused), plain=False, unsure=True)
        removal = removal_of_leases(
            env,
            context.proposal,
            context.search_for,
            in_vain,
            observation,
            promise.outranks,
            context.time_limit,
        )
        found = None if removal is None else removal.lightest()
        result = None if removal is None or found is None else removal.search(found)
        if removal is None or found is None or result is None or result.placement is None:
            yield in_vain
            return
        chosen = [removal.there[one] for one in sorted(found)]
        told = self._alternatives(env, chosen, context.proposal, observation, result)
        yield replace(result, concessions=(*result.concessions, *told))

    def _alternatives(
        self,
        env: Environment,
        chosen: Sequence[PendingLease],
        proposal: Proposal,
        observation: Observation,
        answer: SearchResult,
    ) -> tuple[PreemptedLease, ...]:
        """The preempted leases, each with the next window in which it fits on its own."""
        view = _afterwards(without_leases(observation.snapshot, chosen), proposal, answer)
        gone = {one.ensemble.id for one in chosen}
        exclusive = tuple(one for one in observation.exclusive if one.id not in gone)
        budget = env.limits.explanation_budget // SHARE // len(chosen)
        return tuple(
            PreemptedLease(one, self.next_window(env, one, view, exclusive, budget))
            for one in chosen
        )


def without_outranking(proposal: Proposal) -> Proposal:
    """The proposal without the right to preempt leases."""
    if proposal.promise is None:
        return proposal
    return replace(proposal, promise=replace(proposal.promise, outranks=0))


def removal_of_leases(  # noqa: PLR0913, PLR0917 - what has no answer, in what, and for how long
    env: Environment,
    proposal: Proposal,
    search_for: SearchFunction,
    refused: SearchResult,
    observation: Observation,
    below: int,
    time_limit: Duration,
) -> RemovalOfLeases | None:
    """The removal search over leases that may be preempted for a refused proposal, or None.

    Only leases of a lower priority than `below` may be preempted. `search_for` searches for a
    proposal with all strategies. `time_limit` is for the whole search; a set found until then may
    not be proved minimal.
    """
    notice = env.limits.preemption_notice
    if not below or notice is None:
        return None
    since = observation.snapshot.taken_at + notice
    there = outrankable_leases(env.store, observation.snapshot, refused, below=below, since=since)
    until = env.stopwatch() + time_limit / SECOND
    if not there:
        return None
    return RemovalOfLeases(env, proposal, search_for, observation, there, until)


@dataclass(frozen=True, eq=False)
class RemovalOfLeases:
    """Searches for answers without sets of leases."""

    env: Environment
    proposal: Proposal
    search_for: SearchFunction
    observation: Observation
    there: Sequence[PendingLease]
    until: float
    """The search's deadline on the stopwatch, in seconds."""

    def lightest(self) -> frozenset[int] | None:
        """The lightest set of leases, as indexes, without which there is an answer, or None."""
        return minimum_set(self.weights(), self.enough).items

    def weights(self) -> list[int]:
        """Weights whose sums order sets: by priority from the highest, by places, by age."""
        leases = [one.lease for one in self.there]
        size = len(leases)
        by_age = sorted(range(size), key=lambda i: (-leases[i].created_at, leases[i].id))
        units = size + sum(one.units for one in leases).bit_length()
        levels = sorted({one.terms.priority for one in leases})
        digit = size.bit_length()
        return [
            (1 << (units + digit * levels.index(one.terms.priority)))
            + (one.units << size)
            + (1 << by_age.index(i))
            for i, one in enumerate(leases)
        ]

    def enough(self, some: frozenset[int]) -> bool | None:
        """Whether there is an answer without these leases; None if time ran out."""
        result = self.search(some)
        return None if result is None else result.placement is not None

    def search(self, some: frozenset[int]) -> SearchResult | None:
        """The search's result without these leases; None if time ran out."""
        left = int((self.until - self.env.stopwatch()) * SECOND)
        if left <= 0:
            return None
        away = [self.there[one] for one in some]
        gone = {one.ensemble.id for one in away}
        seen = replace(
            self.observation,
            snapshot=without_leases(self.observation.snapshot, away),
            exclusive=tuple(one for one in self.observation.exclusive if one.id not in gone),
        )
        try:
            return self.search_for(without_outranking(self.proposal), seen, left)
        except Busy:
            return None


def _afterwards(view: Snapshot, proposal: Proposal, answer: SearchResult) -> Snapshot:
    """The fleet with the new lease's places, and with the consumers it moves or displaces."""
    found = answer.placement
    assert found is not None, "only an answer has places"
    uuid_of = {one.name: one.uuid for one in proposal.ensemble.members}
    request = found.built.request
    instead = {some[0].consumer: some for some in answer.staying.values()}
    for name in request.members:
        if name not in request.fixed:
            instead[uuid_of[name]] = tuple(
                Booking(uuid_of[name], provider, amounts, answer.period, BookingState.RESERVED)
                for provider, amounts in found.places[name].allocations.items()
            )
    for one in answer.concessions:
        gone = {each.consumer for each in one.displaced}
        booked = one.bookings(view).items()
        instead |= {consumer: some for consumer, some in booked if consumer not in gone}
    return with_bookings(view, instead)
