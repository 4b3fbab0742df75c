"""Grant a series, or an extension of one: all of its occurrences, or refuse it with the reasons."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from moorage.domain.errors import (
    Busy,
    ConcurrentUpdate,
    DuplicateName,
    HoldExpired,
    InvalidDescription,
    SeriesInfeasible,
    WrongState,
)
from moorage.domain.lease_actions import read_actions
from moorage.domain.leases import Terms
from moorage.domain.period import DAY, EARLIEST, LATEST, Period, format_instant, to_datetime
from moorage.domain.quotas import QuotaName
from moorage.domain.recurrence import Recurrence, local_time_at
from moorage.domain.series import Series, SeriesState, SkippedOccurrence
from moorage.usecases.ensembles.create import described_ensemble
from moorage.usecases.leases.create import check_leasable
from moorage.usecases.leases.shaping import (
    check_margins,
    check_members,
    checked_lead,
    checked_start,
)
from moorage.usecases.offers.expiry import give_up_offer
from moorage.usecases.refusals.explanation import answer_once
from moorage.usecases.series.alternatives import other_starts, without_refused_dates
from moorage.usecases.series.kept_occurrences import OccurrenceHolds
from moorage.usecases.series.queries import own_series, series_with_leases, status
from moorage.usecases.series.requests import (
    Extension,
    OccurrenceRefusal,
    OccurrencesRequest,
    SeriesRequest,
    SeriesResult,
)
from moorage.usecases.series.single_request import abandoned_offers, exclusive_series
from moorage.usecases.series.slots import slots, zone_of
from moorage.usecases.shared.access import check_generation, made_by_request
from moorage.usecases.shared.limits import time_limit_within
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.shared.quotas import check_stored, quota_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.period import Instant
    from moorage.domain.series import Slot
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller
    from moorage.usecases.series.requests import SeriesAlternative

__all__ = ["Extension", "SeriesRequest", "create_series", "extend_series"]

_TRIES = 2
"""How often a series is tried if holds of its first occurrences lapse before the last is held."""
_LONGEST_NAME = 255
_FIRST_YEAR, _LAST_YEAR = (to_datetime(one).year for one in (EARLIEST, LATEST - 366 * DAY))


def create_series(
    env: UseCaseEnvironment,
    caller: Caller,
    request: SeriesRequest,
    identity: RequestIdentity,
) -> SeriesResult:
    """Grant every occurrence of a series as a lease, all in one transaction, or none.

    With `as_many_as_fit` the occurrences that fit are granted, and the series lists the others. A
    repeat of the request with the same id returns the series that it was granted.

    Raises:
        InvalidDescription: an unknown zone, no occurrence, overlapping occurrences, a first start
            in the past, or as for a lease.
        LimitExceeded: too many occurrences, or as for a lease.
        QuotaExceeded: the project's quota would be exceeded.
        SeriesInfeasible: not all occurrences fit, or none does; the error has the refused ones,
            their reasons, and alternatives.
        DuplicateName: another request used the same id.
        CheckRefused: the operator's check of leases refuses one.
        Busy: time ran out, there were too many conflicting commits, the check did not answer, or
            another request is creating the same series.
    """
    made_before = partial(_made_before, env, identity)

    def answer() -> SeriesResult:
        series, all_slots = _described(env, caller, request, identity)
        check_stored(env, series.project_id, QuotaName.SERIES)
        within = quota_limits(env.limits, any_priority=request.any_priority)
        occurrences = OccurrencesRequest(
            series, all_slots, within, as_many_as_fit=request.as_many_as_fit
        )
        with exclusive_series(env, series.id):
            return made_before() or _SeriesGrant(env, caller, occurrences).made()

    races = (DuplicateName, SeriesInfeasible)
    return answer_once(env, caller, identity, made_before, answer, races)


def extend_series(
    env: UseCaseEnvironment,
    caller: Caller,
    series_id: str,
    request: Extension,
    generation: int | None,
) -> SeriesResult:
    """Grant occurrences after the last one of a series: all of them, or none.

    Raises:
        NotFound: no such series for this caller.
        StaleGeneration: the series has another generation.
        WrongState: all of its leases are closed.
        MoorageError: as `create_series`.
    """
    with exclusive_series(env, series_id):
        return _extended(env, caller, series_id, request, generation)


def _extended(
    env: UseCaseEnvironment,
    caller: Caller,
    series_id: str,
    request: Extension,
    generation: int | None,
) -> SeriesResult:
    store = env.store
    series = own_series(store, caller, series_id)
    check_generation(series, generation)
    if status(store, series) is SeriesState.CLOSED:
        raise WrongState("the series is closed: all of its leases are")
    all_slots = slots(
        env.limits,
        series.recurrence,
        series.terms,
        request.extent,
        after=series.reach,
        now=store.now(),
    )
    if all_slots[0].period.start < store.now():
        start = format_instant(all_slots[0].period.start)
        raise InvalidDescription(f"the next occurrence, at {start}, lies in the past")
    within = quota_limits(env.limits, any_priority=request.any_priority)
    occurrences = OccurrencesRequest(
        series, all_slots, within, series.generation, request.as_many_as_fit
    )
    return _SeriesGrant(env, caller, occurrences).made()


class _SeriesGrant:
    """One request for occurrences: holds each, then grants them."""

    def __init__(
        self, env: UseCaseEnvironment, caller: Caller, occurrences: OccurrencesRequest
    ) -> None:
        self._env = env
        self._caller = caller
        self._occurrences = occurrences

    def made(self) -> SeriesResult:
        """The series with its leases; see `SeriesResult`."""
        for _ in range(_TRIES):
            try:
                return self._made()
            except HoldExpired:
                continue
        raise Busy("holds of occurrences lapsed before all were decided; retry, or request fewer")

    def _made(self) -> SeriesResult:
        env, store, occurrences = self._env, self._env.store, self._occurrences
        # Withdraw offers left by an interrupted request, which would be in the way of this one.
        for one in abandoned_offers(env, occurrences.series.id):
            give_up_offer(env, one.id)
        self._check_unchanged()
        holds = OccurrenceHolds(env, self._caller, occurrences)
        leases = holds.kept()
        if holds.refused and not (occurrences.as_many_as_fit and leases):
            raise self._refusal(holds.refused)
        now = store.now()
        series = replace(
            occurrences.series,
            reach=occurrences.slots[-1].index,
            left_out=(*occurrences.series.left_out, *_left_out(holds.refused)),
            created_at=occurrences.series.created_at or now,
            updated_at=now,
        )
        if not holds.written:
            return SeriesResult(series, leases, store.snapshot())
        holds.grant(series)
        return series_with_leases(store, store.series(series.id))

    def _check_unchanged(self) -> None:
        """Check that no other request has created or extended the series meanwhile.

        Raises:
            DuplicateName: the series exists now.
            ConcurrentUpdate: the series has changed.
        """
        series, generation = self._occurrences.series, self._occurrences.generation
        stored = if_stored(self._env.store.series, series.id)
        if stored is None:
            return
        if generation is None:
            raise DuplicateName("series", series.id)
        if stored.generation != generation:
            raise ConcurrentUpdate("the series has changed meanwhile", subject=series.id)

    def _refusal(self, refused: Sequence[OccurrenceRefusal]) -> SeriesInfeasible:
        count, of = len(refused), len(self._occurrences.slots)
        verb = "does" if count == 1 else "do"
        told = f"{count} of {of} occurrences {verb} not fit"
        return SeriesInfeasible(
            told, of=of, refused=tuple(refused), instead=tuple(self._instead(refused))
        )

    def _instead(self, refused: Sequence[OccurrenceRefusal]) -> Iterable[SeriesAlternative]:
        occurrences = self._occurrences
        yield from without_refused_dates(occurrences.slots, refused)
        if occurrences.generation is None and all(one.explanation for one in refused):
            yield from other_starts(self._env, occurrences, refused)


def _left_out(refused: Iterable[OccurrenceRefusal]) -> Iterable[SkippedOccurrence]:
    for one in refused:
        period = one.slot.period
        known = one.explanation.id if one.explanation is not None and one.stored else None
        yield SkippedOccurrence(one.slot.index, period.start, period.end, one.why, known)


def _described(
    env: UseCaseEnvironment, caller: Caller, request: SeriesRequest, identity: RequestIdentity
) -> tuple[Series, Sequence[Slot]]:
    """The series to store, and its occurrences."""
    store, limits = env.store, env.limits
    now = store.now()
    recurrence, terms = _calendar(request, now)
    check_margins(limits, lead=terms.lead, cleaning=terms.cleaning)
    all_slots = list(slots(limits, recurrence, terms, request.extent, after=0, now=now))
    all_slots[0] = replace(all_slots[0], period=terms.period)
    checked_lead(terms, now)
    if request.time_limit is not None:
        time_limit_within(limits, request.time_limit)
    if len(request.name) + len(f"-{limits.occurrences}") > _LONGEST_NAME:
        raise InvalidDescription("the name is too long for names of its leases", path="series.name")
    model = described_ensemble(env, caller, request.description)
    check_leasable(model)
    check_members(limits, model)
    series = Series(
        id=identity.id,
        project_id=caller.project_id,
        user_id=caller.user_id,
        name=request.name,
        recurrence=recurrence,
        terms=terms,
        model=model,
        reach=0,
        actions=read_actions(request.actions),
        objective=request.objective,
        seed=request.seed,
        time_limit=request.time_limit,
        digest=identity.digest,
    )
    return series, all_slots


def _calendar(request: SeriesRequest, now: Instant) -> tuple[Recurrence, Terms]:
    """The calendar of the series, and the terms of its first occurrence.

    Raises:
        InvalidDescription: an unknown zone, no duration, a year out of range, or as for a lease.
    """
    zone = zone_of(request.zone)
    if request.duration <= 0:
        raise InvalidDescription("the duration must be greater than 0", path="series.duration")
    wall = local_time_at(now, zone) if request.start is None else request.start
    if not _FIRST_YEAR < wall.year < _LAST_YEAR:
        raise InvalidDescription(
            f"the start is out of range: {wall.isoformat()}", path="series.start"
        )
    if wall.tzinfo is not None:
        wall = wall.astimezone(zone).replace(tzinfo=None, fold=0)
    recurrence = Recurrence(wall, request.zone, request.every)
    start = next(recurrence.starts(zone))
    period = Period(start, start + request.duration)
    terms = Terms(
        period,
        request.lead,
        request.cleaning,
        request.expiry,
        request.priority,
        request.before_start,
    )
    try:
        return recurrence, checked_start(terms, now)
    except InvalidDescription as error:
        raise InvalidDescription(error.message, path="series.start") from None


def _made_before(env: UseCaseEnvironment, identity: RequestIdentity) -> SeriesResult | None:
    known = made_by_request("series", identity, env.store.series)
    if known is None:
        return None
    return series_with_leases(env.store, known)
