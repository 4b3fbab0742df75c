"""Alternatives of a refused series: another time of day, or a later first date.

Each alternative is searched for occurrence by occurrence, as the changed request would be, so it
fits if it is requested.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from moorage.domain.errors import Busy, InvalidDescription, LimitExceeded
from moorage.domain.leases import Lease, LeaseState
from moorage.domain.period import SECOND
from moorage.domain.recurrence import dates, instant_of_local_time
from moorage.usecases.decide.loop import unplaced
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import (
    LeasePromise,
    Proposal,
    RefusalDetail,
    RefusalReader,
)
from moorage.usecases.decide.search_plan import SearchPlan
from moorage.usecases.decide.search_result import Observation
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.series.requests import Extent, SeriesAlternative
from moorage.usecases.series.slots import slots, zone_of
from moorage.usecases.shared.quotas import Allowance

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.series import Slot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.series.requests import OccurrenceRefusal, OccurrencesRequest

_DAY = 24
_EACH = 2
"""Divisor of the explanation budget: each kind of alternative may use half of it."""


def without_refused_dates(
    all_slots: Sequence[Slot], refused: Collection[OccurrenceRefusal]
) -> Iterator[SeriesAlternative]:
    """The alternative without the dates that do not fit; places were found for the others."""
    if len(refused) < len(all_slots):
        yield SeriesAlternative(
            len(all_slots) - len(refused), without=tuple(one.slot.index for one in refused)
        )


def other_starts(
    env: UseCaseEnvironment, occurrences: OccurrencesRequest, refused: Collection[OccurrenceRefusal]
) -> Iterator[SeriesAlternative]:
    """Alternatives with another first start, for which as many occurrences fit as requested.

    None of the request's occurrences is held any more, and at least one is `refused`.
    """
    numbers = {one.slot.index for one in refused}
    for find_start in (_other_clock, _later):
        start = find_start(_StartTrials(env, occurrences), numbers)
        if start is not None:
            yield SeriesAlternative(len(occurrences.slots), start=start)


class _StartTrials:
    """Searches for single occurrences, within a time budget."""

    def __init__(self, env: UseCaseEnvironment, occurrences: OccurrencesRequest) -> None:
        self.series = series = occurrences.series
        self.all_slots = occurrences.slots
        self._within = occurrences.within
        self._env = env
        store = env.store
        snapshot = store.snapshot()
        exclusive = store.exclusive_ensembles(snapshot)
        model = series.model
        self._observation = Observation(
            snapshot, locate_members(snapshot, model), exclusive.ensembles
        )
        self._deadline = env.stopwatch() + env.limits.explanation_budget / SECOND / _EACH
        self._known: dict[Instant, bool] = {}

    def slots_from(self, start: datetime) -> Sequence[Slot]:
        """As many occurrences from another first start; empty if calendar or limits forbid it."""
        recurrence = replace(self.series.recurrence, start=start)
        limits, now = self._env.limits, self._observation.snapshot.taken_at
        extent = Extent(times=len(self.all_slots))
        try:
            found = slots(limits, recurrence, self.series.terms, extent, after=0, now=now)
        except (InvalidDescription, LimitExceeded):
            return ()
        return found if found[0].period.start >= now else ()

    @property
    def out_of_time(self) -> bool:
        """Whether the time budget is used up."""
        return self._left() <= 0

    def _left(self) -> Duration:
        return int((self._deadline - self._env.stopwatch()) * SECOND)

    def fits(self, period: Period) -> bool:
        """Whether an occurrence fits; False also if time ran out."""
        if period.start in self._known:
            return self._known[period.start]
        if self.out_of_time:
            return False
        terms, model = self.series.terms.moved(period), self.series.model
        promise = LeasePromise(
            "", terms.occupied, terms.expires_at, lead=terms.lead, priority=terms.priority
        )
        unread = RefusalReader(detail=RefusalDetail.UNSTORED)
        proposal = Proposal(model, None, (unplaced(model),), promise=promise, reader=unread)
        options = DecisionOptions(objective=self.series.objective, seed=self.series.seed)
        try:
            result = SearchPlan(self._env, proposal, options, self._left()).search(
                self._observation
            )
        except Busy:
            return False
        return self._known.setdefault(period.start, result.placement is not None)

    def allowed(self, all_slots: Sequence[Slot]) -> bool:
        """Whether the project's quotas allow all of these occurrences."""
        series = self.series
        allowance = Allowance(self._env, series.project_id, all_slots[0].period.start, self._within)
        for one in all_slots:
            lease = Lease(
                id=series.id,
                project_id=series.project_id,
                user_id=series.user_id,
                name=series.name,
                ensemble_id="",
                decision_id="",
                terms=series.terms.moved(one.period),
                state=LeaseState.PENDING,
                reservations=(),
                units=len(series.model.members),
            )
            if allowance.refusal(lease) is not None:
                return False
            allowance.take(lease)
        return True


def _other_clock(trials: _StartTrials, refused: Collection[int]) -> datetime | None:
    """The start on the same day, at the nearest other hour, for which all occurrences fit."""
    first = trials.series.recurrence.start
    hours = sorted(range(_DAY), key=lambda hour: (abs(hour - first.hour), hour < first.hour))
    for hour in hours[1:]:
        start = first.replace(hour=hour)
        all_slots = trials.slots_from(start)
        # Refused occurrences first, as they are the most likely not to fit again.
        likely = sorted(all_slots, key=lambda one: one.index not in refused)
        if (
            all_slots
            and all(trials.fits(one.period) for one in likely)
            and trials.allowed(all_slots)
        ):
            return start
    return None


def _later(trials: _StartTrials, refused: Collection[int]) -> datetime | None:
    """The first date of the calendar from which all occurrences fit, after all refused ones."""
    recurrence = trials.series.recurrence
    zone, clock = zone_of(recurrence.zone), recurrence.start.time()
    beyond = max(one.period.start for one in trials.all_slots if one.index in refused)
    for day in dates(recurrence.every, recurrence.start.date()):
        start = datetime.combine(day, clock)
        if instant_of_local_time(start, zone) <= beyond:
            continue
        all_slots = trials.slots_from(start)
        if not all_slots or trials.out_of_time:
            return None
        unfit = [one.period.start for one in all_slots if not trials.fits(one.period)]
        if not unfit and trials.allowed(all_slots):
            return start
        beyond = max(unfit, default=beyond)
    return None
