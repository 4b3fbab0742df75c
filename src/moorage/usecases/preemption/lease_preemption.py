"""Room by leases that have not begun and give up their places for one of a higher priority.

Only where a lease cannot be granted otherwise: with nobody displaced, with preemptible users ending
before it, and with planned leases moved. Then those are looked at which have less priority, lie
ahead, and begin no sooner than the notice. Who goes is the lightest set that is enough: as few as
possible of the highest priority among them, then of the next, then as few places as possible, then
the newest; `engine.explain.min_hitting_set` proves it by asking the same search as every lease's.

`preempted_leases` says what becomes of them.
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
from moorage.usecases.preemption.preempted_leases import (
    PreemptedLease,
    outrankable_leases,
    without_leases,
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
    from moorage.usecases.preemption.preempted_leases import OutrankableLease
    from moorage.usecases.shared.environment import Environment

SHARE: Final = 4
"""The part of the time for an explanation that may go into what is told: one in so many."""


class NextWindow(Protocol):
    """Finds the next window in which a lease fits that gives up its places."""

    def __call__(
        self,
        env: Environment,
        lease: OutrankableLease,
        view: Snapshot,
        keepers: tuple[Ensemble, ...],
        budget: Duration,
    ) -> Window | None:
        """The window; None: none was found within the budget."""


@dataclass(frozen=True, slots=True)
class PreemptLeases:
    """The strategy by which leases of less priority give up their places for a lease."""

    next_window: NextWindow
    """Says when those fit next."""
    concedes: bool = True

    def attempts(
        self,
        context: SearchContext,
        observation: Observation,
        refused: Sequence[SearchResult],
    ) -> Iterator[SearchResult]:
        """See `RoomMaker`: the answer without the lightest set of leases that is enough."""
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
        if removal is None or found is None or result is None or result.found is None:
            yield in_vain
            return
        chosen = [removal.there[one] for one in sorted(found)]
        told = self._alternatives(env, chosen, context.proposal, observation, result)
        yield replace(result, concessions=(*result.concessions, *told))

    def _alternatives(
        self,
        env: Environment,
        chosen: Sequence[OutrankableLease],
        proposal: Proposal,
        observation: Observation,
        answer: SearchResult,
    ) -> tuple[PreemptedLease, ...]:
        """The preempted leases, each with the next window in which it fits alone."""
        view = _afterwards(without_leases(observation.snapshot, chosen), proposal, answer)
        gone = {one.ensemble.id for one in chosen}
        keepers = tuple(one for one in observation.keepers if one.id not in gone)
        budget = env.limits.explanation_budget // SHARE // len(chosen)
        return tuple(
            PreemptedLease(one, self.next_window(env, one, view, keepers, budget)) for one in chosen
        )


def without_outranking(proposal: Proposal) -> Proposal:
    """The same proposal, for which no other lease may give up its places."""
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
    """The leases that may give up their places for what was refused; None: there are none.

    Args:
        env: the ports, and the notice.
        proposal: what has no answer otherwise.
        search_for: searches for a proposal by all strategies.
        refused: what was asked in vain.
        observation: what was seen then.
        below: only leases of a lower priority than this.
        time_limit: for the whole search; past it the set that was found is not proved the least.
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
    """Looks for answers while some leases are away."""

    env: Environment
    proposal: Proposal
    search_for: SearchFunction
    observation: Observation
    there: Sequence[OutrankableLease]
    until: float
    """On the stopwatch."""

    def lightest(self) -> frozenset[int] | None:
        """The lightest set, by numbers, without which there is an answer; None: there is none."""
        return minimum_set(self.weights(), self.enough).items

    def weights(self) -> list[int]:
        """Sums of these order sets: by priority from the highest, then by places, then by age."""
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
        """Whether there is an answer without these; None: time has run out before."""
        result = self.search(some)
        return None if result is None else result.found is not None

    def search(self, some: frozenset[int]) -> SearchResult | None:
        """What a search comes to without these; None: to nothing in time."""
        left = int((self.until - self.env.stopwatch()) * SECOND)
        if left <= 0:
            return None
        away = [self.there[one] for one in some]
        gone = {one.ensemble.id for one in away}
        seen = replace(
            self.observation,
            snapshot=without_leases(self.observation.snapshot, away),
            keepers=tuple(one for one in self.observation.keepers if one.id not in gone),
        )
        try:
            return self.search_for(without_outranking(self.proposal), seen, left)
        except Busy:
            return None


def _afterwards(view: Snapshot, proposal: Proposal, answer: SearchResult) -> Snapshot:
    """The fleet with the places that the new lease has, and those that others move to."""
    found = answer.found
    assert found is not None, "only an answer has places"
    uuid_of = {one.name: one.uuid for one in proposal.ensemble.members}
    request = found.built.request
    instead = {some[0].consumer: some for some in answer.staying.values()}
    for name in request.members:
        if name not in request.fixed:
            instead[uuid_of[name]] = tuple(
                Booking(uuid_of[name], provider, amounts, answer.period, BookingState.RESERVED)
                for provider, amounts in found.place(name).allocations.items()
            )
    for one in answer.concessions:
        gone = {each.consumer for each in one.displaced}
        booked = one.bookings(view).items()
        instead |= {consumer: some for consumer, some in booked if consumer not in gone}
    return with_bookings(view, instead)
