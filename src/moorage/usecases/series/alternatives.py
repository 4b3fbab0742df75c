"""What a series that is refused could be instead: at another time of day, or from a later date on.

Each change is looked for as the changed request would be, occurrence by occurrence, so it fits
once it is asked for.
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
from moorage.usecases.decide.member_places import member_places
from moorage.usecases.decide.request import (
    DecisionHooks,
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
"""The part of the time for an explanation that each kind of change may take: one in so many."""


def without_refused_dates(
    every: Sequence[Slot], refused: Collection[OccurrenceRefusal]
) -> Iterator[SeriesAlternative]:
    """The series without the dates that do not fit; the others were found places for."""
    if len(refused) < len(every):
        yield SeriesAlternative(
            len(every) - len(refused), without=tuple(one.slot.index for one in refused)
        )


def other_starts(
    env: UseCaseEnvironment, wanted: OccurrencesRequest, refused: Collection[OccurrenceRefusal]
) -> Iterator[SeriesAlternative]:
    """Other first starts from which all occurrences fit, as many as were asked for.

    Args:
        env: for the solver, and the budget.
        wanted: what was asked for; nothing of it is kept any more.
        refused: those that do not fit; at least one.
    """
    numbers = {one.slot.index for one in refused}
    for way in (_other_clock, _later):
        start = way(_Trying(env, wanted), numbers)
        if start is not None:
            yield SeriesAlternative(len(wanted.slots), start=start)


class _Trying:
    """Looks for one occurrence after the other, while time lasts."""

    def __init__(self, env: UseCaseEnvironment, wanted: OccurrencesRequest) -> None:
        self.series = series = wanted.series
        self.every = wanted.slots
        self._within = wanted.within
        self._env = env
        store = env.store
        keepers = store.keepers()
        snapshot = store.snapshot()
        model = series.model
        self._sight = Observation(snapshot, member_places(snapshot, model), keepers.ensembles)
        self._last = env.stopwatch() + env.limits.explanation_budget / SECOND / _EACH
        self._known: dict[Instant, bool] = {}

    def slots_from(self, start: datetime) -> Sequence[Slot]:
        """As many occurrences from another first start; none where there may be none."""
        recurrence = replace(self.series.recurrence, start=start)
        limits, now = self._env.limits, self._sight.snapshot.taken_at
        extent = Extent(times=len(self.every))
        try:
            found = slots(limits, recurrence, self.series.terms, extent, after=0, now=now)
        except (InvalidDescription, LimitExceeded):
            return ()
        return found if found[0].period.start >= now else ()

    @property
    def late(self) -> bool:
        """Whether there is no time left to look."""
        return self._left() <= 0

    def _left(self) -> Duration:
        return int((self._last - self._env.stopwatch()) * SECOND)

    def fits(self, period: Period) -> bool:
        """Whether one occurrence fits, as far as was seen in time."""
        if period.start in self._known:
            return self._known[period.start]
        if self.late:
            return False
        terms, model = self.series.terms.moved(period), self.series.model
        promise = LeasePromise(
            "", terms.occupied, terms.expires_at, lead=terms.lead, priority=terms.priority
        )
        unread = DecisionHooks(reader=RefusalReader(detail=RefusalDetail.UNSTORED))
        proposal = Proposal(model, None, (unplaced(model),), promise=promise, allowed=unread)
        ask = DecisionOptions(objective=self.series.objective, seed=self.series.seed)
        try:
            result = SearchPlan(self._env, proposal, ask, self._left()).search(self._sight)
        except Busy:
            return False
        return self._known.setdefault(period.start, result.found is not None)

    def allowed(self, every: Sequence[Slot]) -> bool:
        """Whether the project may lease all of these."""
        series = self.series
        allowance = Allowance(self._env, series.project_id, every[0].period.start, self._within)
        for one in every:
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


def _other_clock(trying: _Trying, refused: Collection[int]) -> datetime | None:
    """The nearest other full hour, earlier or later on the same day, at which all fit."""
    first = trying.series.recurrence.start
    hours = sorted(range(_DAY), key=lambda hour: (abs(hour - first.hour), hour < first.hour))
    for hour in hours[1:]:
        start = first.replace(hour=hour)
        every = trying.slots_from(start)
        # Those that were refused are the likeliest to be again.
        likely = sorted(every, key=lambda one: one.index not in refused)
        if every and all(trying.fits(one.period) for one in likely) and trying.allowed(every):
            return start
    return None


def _later(trying: _Trying, refused: Collection[int]) -> datetime | None:
    """The first date of the calendar from which all fit; it comes after all that do not."""
    recurrence = trying.series.recurrence
    zone, clock = zone_of(recurrence.zone), recurrence.start.time()
    beyond = max(one.period.start for one in trying.every if one.index in refused)
    for day in dates(recurrence.every, recurrence.start.date()):
        start = datetime.combine(day, clock)
        if instant_of_local_time(start, zone) <= beyond:
            continue
        every = trying.slots_from(start)
        if not every or trying.late:
            return None
        unfit = [one.period.start for one in every if not trying.fits(one.period)]
        if not unfit and trying.allowed(every):
            return start
        beyond = max(unfit, default=beyond)
    return None
