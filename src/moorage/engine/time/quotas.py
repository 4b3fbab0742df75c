"""Checks a lease against its project's quota, over time.

Concurrent units are an occupancy like any other. So are unit-hours: a window that begins between
`start - window` and `end` overlaps a lease, and counts all of its hours (at most the window's
length). The unit-hours of the fullest window are then the highest level of these extended spans.
Levels change only at starts and ends, so only these instants are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.errors import QuotaExceeded
from moorage.domain.period import HOUR, SECOND, format_instant, say_duration
from moorage.domain.quotas import DURATIONS, UNLIMITED, QuotaName, QuotaUse, too_high

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from moorage.domain.period import Duration, Instant, Period
    from moorage.engine.time.occupancy import Ints


_HOUR: Final = HOUR // SECOND
_Limit: TypeAlias = "tuple[QuotaName, int, WeightedSpans, WeightedSpans]"
"""A limit over time: name, limit, the other leases' levels, the requested levels."""
_LIMITS_OVER_LEASES: Final = (QuotaName.UNITS, QuotaName.UNIT_HOURS, QuotaName.LEASES)


@dataclass(frozen=True, slots=True)
class QuotaTerms:
    """The quota of one project: its limits, and the window for unit-hours."""

    limit: Callable[[QuotaName], int]
    window: Duration

    @property
    def needs_leases(self) -> bool:
        """Whether the check needs the project's other leases."""
        return any(self.limit(name) != UNLIMITED for name in _LIMITS_OVER_LEASES)


@dataclass(frozen=True, slots=True)
class ProjectLeases:
    """The leases of a project: their uses, and the ends of those that have not ended."""

    uses: Sequence[QuotaUse]
    ends: Sequence[Instant]


NO_LEASES: Final = ProjectLeases((), ())


@dataclass(frozen=True, slots=True)
class LeaseUse:
    """A new or changed lease; `previous_period` is None for a new one."""

    period: Period
    uses: Sequence[QuotaUse]
    previous_period: Period | None = None
    previous_uses: Sequence[QuotaUse] = ()
    priority: int = 0
    """Of a new lease; a changed one keeps the priority that it was granted with."""


def quota_violation(
    ceiling: QuotaTerms, others: ProjectLeases, use: LeaseUse, now: Instant
) -> QuotaExceeded | None:
    """The limit that a lease exceeds beside the project's others, or None if it passes.

    A changed lease that uses no more than before passes, also where the project is over its quota.
    The error's usage has what the lease used before the change, as the usage of the quota has, and
    an instant where that is not its highest.
    """
    barred = _priority(ceiling, use) or _length(ceiling, use)
    if barred is not None:
        return barred
    pairs = list(_limits(ceiling, others.uses, use.uses))
    refused = (
        _horizon(ceiling, use, now)
        or _lease_count(ceiling, others, use)
        or _over_time(ceiling, pairs, use)
    )
    if refused is None:
        return None
    if refused.at is not None:
        every = (*others.uses, *use.previous_uses)
        if peak_use(ceiling, every, refused.name, now) == refused.counted(refused.used):
            refused = replace(refused, at=None)
    return refused.error(_remedy(ceiling, others, pairs, use, now))


def free_units(
    ceiling: QuotaTerms, others: ProjectLeases, period: Period, now: Instant
) -> int | None:
    """How many units one more lease over the period could have; None: no limit."""
    probe = LeaseUse(period, ())
    if (
        _length(ceiling, probe) is not None
        or _horizon(ceiling, probe, now) is not None
        or _lease_count(ceiling, others, probe) is not None
    ):
        return 0
    one = QuotaUse(1, period.start, period.end)
    most: int | None = None
    for _, limit, taken, requested in _limits(ceiling, others.uses, (one,)):
        if limit == UNLIMITED:
            continue
        points = _edges(taken, requested)
        own = requested.level_at(points)
        left = (limit - taken.level_at(points)[own > 0]).min() // own.max()
        most = max(int(left), 0) if most is None else max(min(most, int(left)), 0)
    return most


def peak_use(ceiling: QuotaTerms, uses: Sequence[QuotaUse], name: QuotaName, now: Instant) -> int:
    """The highest use from now on: of units, or of unit-hours in a window that is not over."""
    units = name is QuotaName.UNITS
    levels = (
        WeightedSpans.of_units(uses) if units else WeightedSpans.of_windows(uses, ceiling.window)
    )
    since = now if units else now - ceiling.window
    points = np.concatenate(([since], levels.edges()))
    highest = int(levels.level_at(points[points >= since]).max())
    return highest if units else -(-highest // _HOUR)


# --- one limit each -----------------------------------------------------------------------------


def _priority(ceiling: QuotaTerms, use: LeaseUse) -> QuotaExceeded | None:
    limit = ceiling.limit(QuotaName.PRIORITY)
    if use.priority <= limit:
        return None
    return too_high(limit=limit, requested=use.priority)


def _length(ceiling: QuotaTerms, use: LeaseUse) -> QuotaExceeded | None:
    limit, length = ceiling.limit(QuotaName.MAX_LENGTH), use.period.end - use.period.start
    before = use.previous_period
    if length <= limit or (before is not None and length <= before.end - before.start):
        return None
    return _Exceeded(QuotaName.MAX_LENGTH, limit, 0, length).error(None)


def _horizon(ceiling: QuotaTerms, use: LeaseUse, now: Instant) -> _Exceeded | None:
    limit, distance = ceiling.limit(QuotaName.HORIZON), use.period.end - now
    before = use.previous_period
    if distance <= limit or (before is not None and use.period.end <= before.end):
        return None
    return _Exceeded(QuotaName.HORIZON, limit, 0, distance)


def _lease_count(ceiling: QuotaTerms, others: ProjectLeases, use: LeaseUse) -> _Exceeded | None:
    limit, used = ceiling.limit(QuotaName.LEASES), len(others.ends)
    if use.previous_period is not None or used < limit:
        return None
    return _Exceeded(QuotaName.LEASES, limit, used, 1)


def _over_time(ceiling: QuotaTerms, pairs: Sequence[_Limit], use: LeaseUse) -> _Exceeded | None:
    for (name, limit, taken, requested), before in zip(
        pairs, _profiles(ceiling, use.previous_uses), strict=True
    ):
        worst = _worst(limit, taken, requested, before)
        if worst is not None:
            used, requested_more, at = worst
            return _Exceeded(name, limit, used, requested_more, at)
    return None


# --- when the request would pass ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Remedy:
    """The first start with which a lease passes, and the first instant to request it."""

    start: Instant
    is_later: bool
    """Whether that start is later than the requested one."""
    asked_from: Instant | None
    """None: now (only with a later start)."""


def _remedy(
    ceiling: QuotaTerms,
    others: ProjectLeases,
    pairs: Sequence[_Limit],
    use: LeaseUse,
    now: Instant,
) -> _Remedy | None:
    """When a refused lease would pass; None: never, unless other leases change.

    Limits over time depend on the start; the number of leases and the horizon depend on when the
    request is made, which is not after the start.
    """
    since = now
    if _lease_count(ceiling, others, use) is not None:
        limit = ceiling.limit(QuotaName.LEASES)
        if not limit:
            return None
        since = sorted(others.ends)[len(others.ends) - limit]
    first = use.period.start
    delay = max(since - first, 0)
    if delay or _over_time(ceiling, pairs, use) is not None:
        movable = not use.previous_uses or use.previous_uses[0].start > now
        later = _first_shift(pairs, delay) if movable else None
        if later is None:
            return None
        delay = later
    limit, end = ceiling.limit(QuotaName.HORIZON), use.period.end + delay
    if use.previous_period is None or end > use.previous_period.end:
        since = max(since, end - limit)
    if since > first + delay:
        return None
    return _Remedy(first + delay, delay > 0, None if delay and since <= now else since)


# --- over time ----------------------------------------------------------------------------------


def _profiles(ceiling: QuotaTerms, uses: Sequence[QuotaUse]) -> tuple[WeightedSpans, WeightedSpans]:
    return WeightedSpans.of_units(uses), WeightedSpans.of_windows(uses, ceiling.window)


def _limits(
    ceiling: QuotaTerms, others: Sequence[QuotaUse], own: Sequence[QuotaUse]
) -> Iterator[_Limit]:
    """The limits over time: units and unit-hours."""
    names = (QuotaName.UNITS, QuotaName.UNIT_HOURS)
    each = zip(names, _profiles(ceiling, others), _profiles(ceiling, own), strict=True)
    for name, taken, requested in each:
        limit = ceiling.limit(name)
        if name is QuotaName.UNIT_HOURS and limit != UNLIMITED:
            limit *= _HOUR
        yield name, limit, taken, requested


def _edges(*levels: WeightedSpans) -> Ints:
    return np.unique(np.concatenate([one.edges() for one in levels]))


def _worst(
    limit: int, taken: WeightedSpans, requested: WeightedSpans, before: WeightedSpans
) -> tuple[int, int, Instant] | None:
    """(level before, level added, instant) where the limit is exceeded most; None if nowhere.

    Only instants count at which more is requested than before.
    """
    points = _edges(taken, requested, before)
    others, own, earlier = (one.level_at(points) for one in (taken, requested, before))
    total = np.where(own > earlier, others + own, 0)
    if not len(points) or int(total.max()) <= limit:
        return None
    worst = int(total.argmax())
    used = int(others[worst] + earlier[worst])
    return used, int(total[worst]) - used, int(points[worst])


def _first_shift(pairs: Sequence[_Limit], least: Duration) -> Duration | None:
    """The least delay, from `least` on, with which the requested levels pass; None: there is none.

    A requested segment that overlaps one in which others use too much must begin at its end or
    later. Each step is the least that is necessary, so the result is the least delay.
    """
    meetings: list[tuple[int, int, tuple[Ints, Ints]]] = []
    for _, limit, taken, requested in pairs:
        for start, end, level in requested.segments():
            if level > limit:
                return None
            meetings.append((start, end, taken.runs(limit - level)))
    delay = least
    while True:
        needed = max(
            (_delay_past(start, end, runs, delay) for start, end, runs in meetings), default=0
        )
        if needed <= delay:
            return delay
        delay = needed


def _delay_past(start: int, end: int, runs: tuple[Ints, Ints], delay: int) -> int:
    """The delay that moves a segment past the first run that it overlaps at this delay."""
    starts, ends = runs
    first = int(np.searchsorted(ends, start + delay, side="right"))
    if first < len(ends) and starts[first] < end + delay:
        return int(ends[first]) - start
    return delay


# --- error texts --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Exceeded:
    """An exceeded limit, in its own units."""

    name: QuotaName
    limit: int
    used: int
    requested: int
    at: Instant | None = None
    """When so much is used, or a window begins in which it is; None: from now on, or at most."""

    def counted(self, amount: int) -> int:
        """An amount in the units of the quota: of unit-hours, which are summed in seconds."""
        return -(-amount // _HOUR) if self.name is QuotaName.UNIT_HOURS else amount

    def error(self, when: _Remedy | None) -> QuotaExceeded:
        """The error with its text."""
        name, limit, used, requested = self.name, self.limit, self.used, self.requested
        if name in DURATIONS:
            said = f"{name} limit {say_duration(limit)} requested {_whole_seconds(requested)}"
            limit, requested = limit // SECOND, -(-requested // SECOND)
        else:
            limit, used, requested = map(self.counted, (limit, used, requested))
            window = "in the window from " if name is QuotaName.UNIT_HOURS else "at "
            when_used = "" if self.at is None else f" ({window}{format_instant(self.at)})"
            said = f"{name} limit {limit} used {used}{when_used} requested {requested}"
        when_asked = when is not None and not when.is_later
        return QuotaExceeded(
            name,
            f"{said}   {_remedy_text(when)}",
            limit=limit,
            used=used,
            requested=requested,
            passes_at=None if when is None else when.asked_from if when_asked else when.start,
            when_asked=when_asked,
            asked_from=None if when is None or when_asked else when.asked_from,
        )


def _remedy_text(when: _Remedy | None) -> str:
    if when is None:
        return "never passes"
    if not when.is_later:
        return f"passes when asked for at {_whole_instant(when.asked_from or when.start)}"
    later = (
        ""
        if when.asked_from is None
        else f", asked for at {_whole_instant(when.asked_from)} or later"
    )
    return f"passes at {_whole_instant(when.start)}{later}"


def _whole_instant(instant: Instant) -> str:
    """An instant as text, rounded up to a whole second."""
    return format_instant(-(-instant // SECOND) * SECOND)


def _whole_seconds(length: Duration) -> str:
    """A duration as text, rounded up to whole seconds."""
    return say_duration(-(-length // SECOND) * SECOND)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSpans:
    """Spans with weights; the level at an instant is the sum of the weights there."""

    start: Ints
    end: Ints
    weight: Ints

    @classmethod
    def of_units(cls, uses: Sequence[QuotaUse]) -> WeightedSpans:
        """Spans of leased units."""
        table = np.array([(u.start, u.end, u.units) for u in uses], np.int64).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2])

    @classmethod
    def of_windows(cls, uses: Sequence[QuotaUse], window: Duration) -> WeightedSpans:
        """Spans whose level at t is the unit-seconds in the window from t; seconds rounded up."""
        plain = cls.of_units(uses)
        seconds = -(-np.minimum(plain.end - plain.start, window) // SECOND)
        return cls(plain.start - window, plain.end, plain.weight * seconds)

    def level_at(self, points: Ints) -> Ints:
        """The level at each instant."""
        return _sums(self.start, self.weight, points) - _sums(self.end, self.weight, points)

    def edges(self) -> Ints:
        """The instants at which the level changes, ascending."""
        return np.unique(np.concatenate((self.start, self.end)))

    def segments(self) -> Iterator[tuple[int, int, int]]:
        """`(start, end, level)` of each segment with a level above 0."""
        points = self.edges()
        for start, end, level in zip(
            points[:-1], points[1:], self.level_at(points[:-1]), strict=True
        ):
            if level > 0:
                yield int(start), int(end), int(level)

    def runs(self, above: int) -> tuple[Ints, Ints]:
        """Starts and ends of the segments in which the level is above `above`."""
        points = self.edges()
        high = np.concatenate(([False], self.level_at(points) > above, [False]))
        turns = np.flatnonzero(high[1:] != high[:-1])
        return points[turns[0::2]], points[np.minimum(turns[1::2], len(points) - 1)]


def _sums(edges: Ints, weights: Ints, points: Ints) -> Ints:
    """The summed weights of the edges at or before each point."""
    order = np.argsort(edges, kind="stable")
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(weights[order])))
    found: Ints = sums[np.searchsorted(edges[order], points, side="right")]
    return found
