"""Alternatives of a refused stay or lease: shorter, preemptible, or later.

Each is verified by the search that the changed request would get, in which leases that have not
started may move.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from moorage.domain.explain import Conflict, Element, EnsembleChange, Relaxation
from moorage.domain.period import FOREVER, SECOND, Period, format_duration, format_instant
from moorage.domain.words import counted
from moorage.usecases.decide.request import LeasePromise
from moorage.usecases.preemption.lease_preemption import without_outranking
from moorage.usecases.refusals.obstacles import (
    STAY,
    Recipient,
    foreign_bookings,
    leases_of,
    planned_absences,
    time_explanation,
)
from moorage.usecases.relocation.movable_leases import movable_periods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from moorage.domain.explain import Explanation
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.solution import DecisionOptions
    from moorage.usecases.refusals.trial import Trial

TIME: Final = "time"
"""Subject of an `EnsembleChange` of a stay's time; its name is `stay`."""

_LATER: Final = 3
"""Later starts that are tried: the ends of the leases that end first."""
_SHARE: Final = 2
"""These alternatives may take 1/_SHARE of the time for an explanation."""


@dataclass(frozen=True, slots=True)
class StayAlternatives:
    """Alternatives of a stay, and the explanation if only time is in the way."""

    relaxations: tuple[Relaxation, ...]
    explanation: Explanation | None = None
    """Set if the stay fits until a lease begins: then that lease is the whole reason."""
    sure: bool = True
    """Whether every search was finished in time."""


def stay_alternatives(trial: Trial, built: BuiltProblem) -> StayAlternatives:
    """Changes of a stay's time that make it fit, if leases or planned absences are its obstacles.

    The trial is of the refused proposal, which is not a lease's.
    """
    env, snapshot = trial.env, trial.observation.snapshot
    if built.alternatives is not None:
        return StayAlternatives(())  # other times are searched for members without any
    there = list(foreign_bookings(built, snapshot))
    leases, away = leases_of(env, there), planned_absences(built, snapshot)
    if not (leases or away):
        return StayAlternatives(())
    trials = _StayTrials(trial)
    planned = _planned(built, snapshot)
    rough = env.limits.disclosure
    begins = {one.period.start for one in there} | {one.start for one in planned.values()}
    until = trials.longest({rough.since(one) for one in begins | away})
    sure = trials.sure
    found = tuple(trials.relaxations(until, leases))
    starting = [one for one in leases if rough.since(one.terms.occupied.start) == until]
    starting = starting or _starting(env, planned, until)
    if not (starting and sure):
        return StayAlternatives(found, sure=trials.sure)
    recipient = Recipient(rough, built.request.project_id, operator=trial.reader.operator)
    count = len(built.request.members) - len(built.request.fixed)
    elements = (
        *recipient.leases(starting, ends=False),
        Element(STAY, _requested_stay(trial.options, count)),
    )
    conflict = Conflict(elements, ("",) * len(elements), minimal=False)
    why = time_explanation(env, built, snapshot, (conflict,))
    return StayAlternatives(found, replace(why, relaxations=found), trials.sure)


def _planned(built: BuiltProblem, snapshot: Snapshot) -> Mapping[str, Period]:
    """Decision id -> period, of the movable leases in the request's period.

    Those on other hosts count too: a lease that moves may conflict with them.
    """
    times = movable_periods(snapshot, built.request.own_consumers)
    return {id_: one for id_, one in times.items() if one.overlaps(built.request.period)}


def _starting(
    env: DecideEnvironment, planned: Mapping[str, Period], at: Instant | None
) -> list[Lease]:
    """The leases of these that begin at `at`, after rounding for disclosure."""
    rough = env.limits.disclosure
    starting = [id_ for id_, one in planned.items() if rough.since(one.start) == at]
    decisions = [env.store.decision(id_) for id_ in starting]
    ids = sorted({one.lease_id for one in decisions if one.lease_id is not None})
    return [env.store.lease(one) for one in ids]


def shorter(trial: Trial, built: BuiltProblem) -> StayAlternatives:
    """Shorter terms with which a lease fits: a shorter lead, a shorter cleaning, or an earlier end.

    Each is found by itself: the longest lead, the longest cleaning, and the latest end of the lease
    or of its extension.

    The trial is of the refused proposal of a lease.
    """
    promise, snapshot = trial.proposal.promise, trial.observation.snapshot
    if promise is None or not trial.reader.client_reads:
        return StayAlternatives(())
    trials = _StayTrials(trial)
    there = list(foreign_bookings(built, snapshot))
    planned = _planned(built, snapshot).values()
    begins = {one.period.start for one in there} | {one.start for one in planned}
    begins |= planned_absences(built, snapshot)
    now = snapshot.taken_at
    ends = {one.occupies_until(now) for one in there} | {one.end for one in planned}
    rough = trial.env.limits.disclosure
    ends, begins = {rough.until(one) for one in ends}, {rough.since(one) for one in begins}
    promise = replace(promise, outranks=0)
    return StayAlternatives(tuple(trials.shorter(promise, ends, begins)), sure=trials.sure)


def _requested_stay(options: DecisionOptions, count: int) -> str:
    """`3 open-ended servers`."""
    kind = "preemptible server" if options.preemptible else "server"
    if options.until is None:
        return counted(count, f"open-ended {kind}")
    return f"{counted(count, kind)} until {format_instant(options.until)}"


class _StayTrials:
    """Searches for changed requests one after the other, within a time limit."""

    def __init__(self, trial: Trial) -> None:
        self._trial = replace(trial, proposal=without_outranking(trial.proposal))
        self._placed = bool(trial.observation.member_places.places)
        self._now = trial.observation.snapshot.taken_at
        env = trial.env
        self.sure = True
        """Whether every search so far was finished in time."""
        self._deadline = env.stopwatch() + env.limits.explanation_budget / SECOND / _SHARE

    def longest(self, begins: set[Instant]) -> Instant | None:
        """The latest of these instants up to which the stay fits; None: none.

        They are starts of other bookings and of planned absences.
        """
        env, end = self._trial.env, self._trial.options.until or FOREVER
        soonest = self._now + env.limits.notice
        starts = sorted(one for one in begins if soonest <= one < end)
        last = self._deadline
        # First without concessions, which is fast; then by all strategies in the remaining time.
        fit = _reached(starts, 0, partial(self._until, without_concessions=True))
        self._deadline -= (last - env.stopwatch()) / _SHARE
        fit = _reached(starts, fit, self._until)
        self._deadline = last
        return starts[fit - 1] if fit else None

    def shorter(
        self, promise: LeasePromise, ends: set[Instant], begins: set[Instant]
    ) -> Iterator[Relaxation]:
        """The relaxations of a lease to a shorter lead, a shorter cleaning, or an earlier end."""
        if not self._placed:  # lead and cleaning of a placed lease do not change
            for field, has, fits in (
                ("lead", promise.lead, self._longest_lead(promise, ends)),
                ("cleaning", promise.cleaning, self._longest_cleaning(promise, begins)),
            ):
                if fits is not None:
                    yield _relaxation(field, format_duration(has), format_duration(fits), 1)
        end = self._latest_end(promise, begins)
        if end is not None:
            before, after = promise.period.end - promise.cleaning, end - promise.cleaning
            yield _relaxation("end", format_instant(before), format_instant(after), 1)

    def _longest_lead(self, promise: LeasePromise, leave: set[Instant]) -> Duration | None:
        """The longest lead, beginning at an end of other bookings, with which a lease fits."""
        period = promise.period
        start = period.start + promise.lead
        ends = sorted(one for one in leave if period.start < one <= start)

        def fits(since: Instant) -> bool:
            less = replace(promise, period=Period(since, period.end), lead=start - since)
            return self._fits(self._trial.with_promise(less))

        if not ends or not fits(ends[-1]):
            return None
        return start - ends[bisect_left(ends, True, hi=len(ends) - 1, key=fits)]  # noqa: FBT003

    def _longest_cleaning(self, promise: LeasePromise, begins: set[Instant]) -> Duration | None:
        """The longest cleaning, ending at a start of other bookings, with which a lease fits."""
        period = promise.period
        end = period.end - promise.cleaning
        starts = sorted(one for one in begins if end <= one < period.end)

        def fits(until: Instant) -> bool:
            less = replace(promise, period=Period(period.start, until), cleaning=until - end)
            return self._fits(self._trial.with_promise(less))

        reached = _reached(starts, 0, fits)
        return starts[reached - 1] - end if reached else None

    def _latest_end(self, promise: LeasePromise, begins: set[Instant]) -> Instant | None:
        """The latest start of other bookings up to which a lease fits.

        For a lease that is extended, it is later than the lease's present end.
        """
        period = promise.period
        start = period.start + promise.lead
        least = max(start, self._now) + promise.cleaning
        own = self._trial.observation.member_places.bookings.values()
        has = max((one.period.end for some in own for one in some), default=least)
        if has < period.end:
            least = max(least, has)
        ends = sorted(one for one in begins if least < one < period.end)

        def fits(end: Instant) -> bool:
            expires_at = min(promise.expires_at, end - promise.cleaning)
            less = replace(promise, period=Period(period.start, end), expires_at=expires_at)
            return self._fits(self._trial.with_promise(less))

        reached = _reached(ends, 0, fits)
        return ends[reached - 1] if reached else None

    def relaxations(self, until: Instant | None, leases: list[Lease]) -> Iterator[Relaxation]:
        """The changes of the stay that make it fit, the smallest first."""
        options = self._trial.options
        if until is not None:
            before = None if options.until is None else format_instant(options.until)
            yield _relaxation("until", before, format_instant(until), 1)
        preemptible = replace(self._trial, options=replace(options, preemptible=True))
        if not options.preemptible and self._fits(preemptible):
            yield _relaxation("preemptible", False, True, 2)  # noqa: FBT003 - before and after
        start = self._start(leases)
        if start is not None:
            after = format_instant(start)
            yield _relaxation("start", format_instant(self._now), after, 3, "fits then")

    def _until(self, until: Instant, *, without_concessions: bool = False) -> bool:
        options = replace(self._trial.options, until=until)
        trial = replace(self._trial, options=options)
        return self._fits(trial, without_concessions=without_concessions)

    def _start(self, leases: list[Lease]) -> Instant | None:
        """The first end of a lease after which the whole stay fits; only if no member is placed."""
        if self._placed:
            return None
        end = self._trial.options.until or FOREVER
        rough = self._trial.env.limits.disclosure
        ends = sorted({rough.until(one.terms.occupied.end) for one in leases})
        for start in [one for one in ends if self._now < one < end][:_LATER]:
            # Tried like an offer, which displaces no server: a later stay may not displace any.
            later = LeasePromise("", Period(start, end), FOREVER, offered=True)
            if self._fits(self._trial.with_promise(later)):
                return start
        return None

    def _fits(self, trial: Trial, *, without_concessions: bool = False) -> bool:
        """Whether a placement is found; if there is no answer in time, `sure` is lost."""
        left = self._deadline - trial.env.stopwatch()
        granted = trial.granted(left, without_concessions=without_concessions)
        self.sure = self.sure and granted is not None
        return granted is True


def _reached(starts: Sequence[Instant], known: int, fits: Callable[[Instant], bool]) -> int:
    """How many of the instants a stay can reach; it reaches the first `known` of them.

    If it fits until an instant, it fits until every earlier one.
    """
    if known == len(starts) or not fits(starts[known]):
        return known
    return bisect_left(starts, True, lo=known + 1, key=lambda start: not fits(start))  # noqa: FBT003


def _relaxation(
    field: str, before: object, after: object, cost: int, result: str = "fits now"
) -> Relaxation:
    return Relaxation(EnsembleChange(TIME, "stay", field, before, after), cost, result=result)
