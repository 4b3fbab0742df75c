"""Leases that have not begun and give up their places for one of a higher priority.

Only where a lease cannot be granted otherwise: with nobody displaced, with preemptible users ending
before it, and with planned leases moved. Then those are looked at which have less priority, lie
ahead, and begin no sooner than the notice. Who goes is the lightest set that is enough: as few as
possible of the highest priority among them, then of the next, then as few places as possible, then
the newest; `engine.least` proves it by asking the same search as every lease's.

What becomes of them is told in `outranked`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.ensembles import EnsembleChange
from moorage.domain.errors import Busy
from moorage.domain.explain import Relaxation, Window
from moorage.domain.period import SECOND, format_instant
from moorage.domain.quotas import MOST_PRIORITY
from moorage.domain.requests import Objective
from moorage.engine.least import least
from moorage.engine.overlay import exchanged
from moorage.engine.starts import Starts
from moorage.usecases.ahead import Ahead, soonest
from moorage.usecases.joint import request_for
from moorage.usecases.leases.outranked import Preempted, outranked, without
from moorage.usecases.looking import Looking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.joint import Ask
    from moorage.usecases.leases.outranked import Outranked
    from moorage.usecases.looking import Look, Sight
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Proposal

_SHARE: Final = 4
"""The part of the time for an explanation that may go into what is told: one in so many."""


def outranking(
    parts: Parts, proposal: Proposal, ask: Ask, look: Look, sight: Sight, time_limit: Duration
) -> Look | None:
    """An answer for which leases of less priority give up their places; None: there is none.

    Args:
        parts: the ports, and the notice.
        proposal: what has no answer otherwise.
        ask: how it is asked for.
        look: what was asked in vain.
        sight: what was seen then.
        time_limit: for the whole search; past it the set that was found is not proved the least.
    """
    trial = _trial(parts, proposal, ask, look, sight, proposal.outranks, time_limit)
    if trial is None:
        return None
    found = least(trial.weights(), trial.enough)
    if found.chosen is None:
        return None
    answer = trial.look(found.chosen)
    if answer is None or answer.found is None:
        return None
    chosen = [trial.there[one] for one in sorted(found.chosen)]
    told = _alternatives(parts, chosen, proposal, sight, answer)
    return replace(answer, preempted=told)


def sufficient(
    parts: Parts, proposal: Proposal, ask: Ask, look: Look, sight: Sight
) -> Relaxation | None:
    """The lowest priority with which a refused lease would be granted, as searches have shown."""
    promise = proposal.promise
    if promise is None or promise.offered or proposal.unasked:
        return None
    budget = parts.limits.explanation_budget // _SHARE
    trial = _trial(parts, proposal, ask, look, sight, MOST_PRIORITY, budget)
    if trial is None:
        return None
    found = least(trial.weights(), trial.enough)
    if found.chosen is None:
        return None
    chosen = [trial.there[one].lease for one in sorted(found.chosen)]
    highest = max(one.terms.priority for one in chosen)
    if highest < promise.priority:
        return None  # time has run out before, not now
    change = EnsembleChange("lease", "terms", "priority", promise.priority, highest + 1)
    return Relaxation(change, 4, result=_displacing(chosen, operator=proposal.operator))


def _displacing(leases: Sequence[Lease], *, operator: bool) -> str:
    """`displaces lease 1f2e… until …`; to a tenant how many."""
    if operator:
        return "displaces " + ", ".join(
            f"lease {one.id} until {format_instant(one.terms.period.end)}" for one in leases
        )
    return f"displaces {len(leases)} lease{'' if len(leases) == 1 else 's'}"


def _trial(  # noqa: PLR0913, PLR0917 - what has no answer, in what, and who may go for how long
    parts: Parts,
    proposal: Proposal,
    ask: Ask,
    look: Look,
    sight: Sight,
    below: int,
    time_limit: Duration,
) -> _Trial | None:
    notice = parts.limits.preemption_notice
    if not below or notice is None:
        return None
    since = sight.snapshot.taken_at + notice
    there = outranked(parts.store, sight.snapshot, look, below=below, since=since)
    until = parts.stopwatch() + time_limit / SECOND
    return _Trial(parts, proposal, ask, sight, there, until) if there else None


@dataclass(frozen=True, eq=False)
class _Trial:
    """Looks for answers while some leases are away."""

    parts: Parts
    proposal: Proposal
    ask: Ask
    sight: Sight
    there: Sequence[Outranked]
    until: float
    """On the stopwatch."""

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
        look = self.look(some)
        return None if look is None else look.found is not None

    def look(self, some: frozenset[int]) -> Look | None:
        """What a search comes to without these; None: to nothing in time."""
        left = int((self.until - self.parts.stopwatch()) * SECOND)
        if left <= 0:
            return None
        away = [self.there[one] for one in some]
        gone = {one.ensemble.id for one in away}
        sight = replace(
            self.sight,
            snapshot=without(self.sight.snapshot, away),
            keepers=tuple(one for one in self.sight.keepers if one.id not in gone),
        )
        try:
            return Looking(self.parts, self.proposal, self.ask, left).look(sight)
        except Busy:
            return None


def _alternatives(
    parts: Parts, chosen: Sequence[Outranked], proposal: Proposal, sight: Sight, answer: Look
) -> tuple[Preempted, ...]:
    """Those who give up their places, each with the next window in which it fits alone."""
    view = _afterwards(without(sight.snapshot, chosen), proposal, answer)
    gone = {one.ensemble.id for one in chosen}
    keepers = tuple(one for one in sight.keepers if one.id not in gone)
    budget = parts.limits.explanation_budget // _SHARE // len(chosen)
    return tuple(Preempted(one, _next(parts, one, view, keepers, budget)) for one in chosen)


def _afterwards(view: Snapshot, proposal: Proposal, answer: Look) -> Snapshot:
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
    for moved in answer.moved:
        instead |= moved.planned.bookings(moved.places)
    return exchanged(view, instead)


def _next(
    parts: Parts, one: Outranked, view: Snapshot, keepers: tuple[Ensemble, ...], budget: Duration
) -> Window | None:
    """The earliest window from its own on in which a lease fits, as things are then."""
    terms = one.lease.terms
    members = frozenset(member.name for member in one.ensemble.members)
    stand = replace(one.stand, places={}, bookings={}, status={})
    request = request_for(one.ensemble, stand, members, terms.occupied, Objective.SPREAD)
    length = terms.occupied.end - terms.occupied.start
    first = terms.occupied.start
    last = max(first, view.taken_at + parts.limits.horizon - length)
    ahead = Ahead(one.ensemble, request, view, keepers, seed=one.decision.solve.seed)
    try:
        sought = soonest(parts, ahead, Starts(first, last, length), time_limit=budget)
    except Busy:
        return None
    if sought.start is None:
        return None
    start = sought.start + terms.lead
    return Window(start, start + terms.period.end - terms.period.start, sought.proved)
