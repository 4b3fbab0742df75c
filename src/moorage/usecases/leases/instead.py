"""What a stay that is refused could be instead: shorter, preemptible, or later.

Each change is looked for as the changed request would be, so it fits once it is asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import EnsembleChange
from moorage.domain.errors import Busy
from moorage.domain.explain import Conflict, Element, Relaxation
from moorage.domain.period import FOREVER, SECOND, Period, format_duration, format_instant
from moorage.domain.words import counted
from moorage.usecases.leases.obstacles import (
    STAY,
    beginning,
    departures,
    in_vain,
    leases_of,
    others,
)
from moorage.usecases.looking import Looking
from moorage.usecases.proposal import Promise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.bookings import Booking
    from moorage.domain.explain import Explanation
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.engine.build import Built
    from moorage.usecases.joint import Ask
    from moorage.usecases.looking import Sight
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Proposal

TIME: Final = "time"
"""The subject of a change of when a stay is; its name is `stay`, its field says what of it."""

_LATER: Final = 3
"""Starts that are tried: after the leases that end first."""
_SHARE: Final = 2
"""The part of the time for an explanation that may go into this: one in so many."""


@dataclass(frozen=True, slots=True)
class Instead:
    """What would do, and whether time alone is in the way."""

    relaxations: tuple[Relaxation, ...]
    explanation: Explanation | None
    """Given where the stay fits until a lease begins: that is the whole reason then."""


def instead(parts: Parts, proposal: Proposal, ask: Ask, built: Built, sight: Sight) -> Instead:
    """Changes of a stay's time that make it fit, where leases are in its way.

    Args:
        parts: for the solver, and to look up leases.
        proposal: what was refused; no lease's.
        ask: how it was asked for.
        built: the problem that has no answer.
        sight: what it was made from.
    """
    there = list(others(built, sight.snapshot))
    leases, away = leases_of(parts, there), departures(built, sight.snapshot)
    if not (leases or away):
        return Instead((), None)
    trying = _Trying(parts, proposal, ask, sight)
    until = trying.longest({one.period.start for one in there} | away)
    sure = trying.sure
    found = tuple(trying.relaxations(until, leases))
    starting = [one for one in leases if one.terms.occupied.start == until]
    if not (starting and sure):
        return Instead(found, None)
    elements = (
        *beginning(starting, built.request.project_id, operator=proposal.operator),
        Element(STAY, _wanted(ask, len(built.request.members) - len(built.request.fixed))),
    )
    conflict = Conflict(elements, ("",) * len(elements), minimal=False)
    told = in_vain(parts, built, sight.snapshot, (conflict,))
    return Instead(found, replace(told, relaxations=found))


def shorter(
    parts: Parts, proposal: Proposal, ask: Ask, built: Built, sight: Sight
) -> tuple[Relaxation, ...]:
    """What of a lease could be shorter so that it fits: its lead, its cleaning, or itself.

    Each alone: the longest lead and cleaning, and the latest end of the lease or its extension.

    Args:
        parts: for the solver.
        proposal: what was refused; a lease's.
        ask: how it was asked for.
        built: the problem that has no answer.
        sight: what it was made from.
    """
    promise = proposal.promise
    if promise is None or proposal.unasked:
        return ()
    trying = _Trying(parts, proposal, ask, sight)
    there = list(others(built, sight.snapshot))
    away = departures(built, sight.snapshot)
    return tuple(trying.shorter(promise, there, {one.period.start for one in there} | away))


def _wanted(ask: Ask, count: int) -> str:
    """`3 open-ended servers`."""
    kind = "preemptible server" if ask.preemptible else "server"
    if ask.until is None:
        return counted(count, f"open-ended {kind}")
    return f"{counted(count, kind)} until {format_instant(ask.until)}"


class _Trying:
    """Looks for one changed request after the other, while time lasts."""

    def __init__(self, parts: Parts, proposal: Proposal, ask: Ask, sight: Sight) -> None:
        self._parts = parts
        self._proposal = proposal
        self._ask = ask
        self._sight = sight
        self.sure = True
        """Whether each question so far was answered in time."""
        self._last = parts.stopwatch() + parts.limits.explanation_budget / SECOND / _SHARE

    def longest(self, begins: set[Instant]) -> Instant | None:
        """The latest beginning of others' bookings, or absence, up to which the stay fits."""
        now, end = self._sight.snapshot.taken_at, self._ask.until or FOREVER
        soonest = now + self._parts.limits.notice
        starts = sorted(one for one in begins if soonest <= one < end)
        if not starts or not self._until(starts[0]):
            return None
        # A stay that fits is fit to be shorter: the first that does not fit parts them.
        beyond = bisect_left(starts, True, lo=1, key=lambda start: not self._until(start))  # noqa: FBT003
        return starts[beyond - 1]

    def shorter(
        self, promise: Promise, there: list[Booking], begins: set[Instant]
    ) -> Iterator[Relaxation]:
        """The parts of a lease that fits where one of them is shorter."""
        if not self._sight.stand.places:  # the lead and cleaning of one that is there stay
            for field, has, fits in (
                ("lead", promise.lead, self._longest_lead(promise, there)),
                ("cleaning", promise.cleaning, self._longest_cleaning(promise, begins)),
            ):
                if fits is not None:
                    yield _relaxation(field, format_duration(has), format_duration(fits), 1)
        end = self._latest_end(promise, begins)
        if end is not None:
            before, after = promise.period.end - promise.cleaning, end - promise.cleaning
            yield _relaxation("end", format_instant(before), format_instant(after), 1)

    def _longest_lead(self, promise: Promise, there: list[Booking]) -> Duration | None:
        """The longest lead, beginning as others end, with which a lease's places are to be had."""
        now, period = self._sight.snapshot.taken_at, promise.period
        start = period.start + promise.lead
        ends = sorted({u for o in there if period.start < (u := o.occupies_until(now)) <= start})

        def fits(since: Instant) -> bool:
            less = replace(promise, period=Period(since, period.end), lead=start - since)
            return self._promised(less)

        if not ends or not fits(ends[-1]):
            return None
        return start - ends[bisect_left(ends, True, hi=len(ends) - 1, key=fits)]  # noqa: FBT003

    def _longest_cleaning(self, promise: Promise, begins: set[Instant]) -> Duration | None:
        """The longest cleaning, ending as others begin, with which places are to be had."""
        period = promise.period
        end = period.end - promise.cleaning
        starts = sorted(one for one in begins if end <= one < period.end)

        def fits(until: Instant) -> bool:
            less = replace(promise, period=Period(period.start, until), cleaning=until - end)
            return self._promised(less)

        if not starts or not fits(starts[0]):
            return None
        beyond = bisect_left(starts, True, lo=1, key=lambda until: not fits(until))  # noqa: FBT003
        return starts[beyond - 1] - end

    def _latest_end(self, promise: Promise, begins: set[Instant]) -> Instant | None:
        """The latest beginning of others' bookings up to which a lease's places are to be had.

        Of a lease that is to last longer: beyond the end that it has.
        """
        period = promise.period
        start = period.start + promise.lead
        least = max(start, self._sight.snapshot.taken_at) + promise.cleaning
        has = max((one.period.end for one in self._own()), default=least)
        if has < period.end:
            least = max(least, has)
        ends = sorted(one for one in begins if least < one < period.end)
        if not ends or not self._to(promise, ends[0]):
            return None
        beyond = bisect_left(ends, True, lo=1, key=lambda end: not self._to(promise, end))  # noqa: FBT003
        return ends[beyond - 1]

    def _own(self) -> Iterator[Booking]:
        for some in self._sight.stand.bookings.values():
            yield from some

    def _to(self, promise: Promise, end: Instant) -> bool:
        """Whether the lease fits with this end of its cleaning."""
        period = Period(promise.period.start, end)
        expires_at = min(promise.expires_at, end - promise.cleaning)
        return self._promised(replace(promise, period=period, expires_at=expires_at))

    def _promised(self, less: Promise) -> bool:
        # A lease may have others make room for it, and so may the shorter one.
        return self._fits(self._ask, replace(self._proposal, promise=less), plainly=False)

    def relaxations(self, until: Instant | None, leases: list[Lease]) -> Iterator[Relaxation]:
        """The changes that help, the smallest first."""
        ask, now = self._ask, self._sight.snapshot.taken_at
        if until is not None:
            before = None if ask.until is None else format_instant(ask.until)
            yield _relaxation("until", before, format_instant(until), 1)
        if not ask.preemptible and self._fits(replace(ask, preemptible=True), self._proposal):
            yield _relaxation("preemptible", False, True, 2)  # noqa: FBT003 - before and after
        start = self._start(leases)
        if start is not None:
            after = format_instant(start)
            yield _relaxation("start", format_instant(now), after, 3, "fits then")

    def _until(self, until: Instant) -> bool:
        return self._fits(replace(self._ask, until=until), self._proposal)

    def _start(self, leases: list[Lease]) -> Instant | None:
        """The end of a lease after which the whole stay fits; for members that stand nowhere."""
        if self._sight.stand.places:
            return None
        end = self._ask.until or FOREVER
        now = self._sight.snapshot.taken_at
        ends = sorted({one.terms.occupied.end for one in leases})
        for start in [one for one in ends if now < one < end][:_LATER]:
            later = Promise("", Period(start, end), start)
            if self._fits(self._ask, replace(self._proposal, promise=later)):
                return start
        return None

    def _fits(self, ask: Ask, proposal: Proposal, *, plainly: bool = True) -> bool:
        """Whether there is an answer; plainly: one for which nobody has to move or end early."""
        left = int((self._last - self._parts.stopwatch()) * SECOND)
        if left > 0:
            looking = Looking(self._parts, proposal, ask, left)
            try:
                return looking.look(self._sight, plainly=plainly).found is not None
            except Busy:
                pass  # neither an answer nor a proof in time
        self.sure = False
        return False


def _relaxation(
    field: str, before: object, after: object, cost: int, result: str = "fits now"
) -> Relaxation:
    return Relaxation(EnsembleChange(TIME, "stay", field, before, after), cost, result=result)
