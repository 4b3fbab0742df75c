"""The arithmetic of quotas: what leases of a project count for over time, as columns.

Concurrent units are an occupancy like any other. Unit-hours are one as well: a window touches a
lease that it overlaps, so a lease is touched by every window that begins from `start - window` on
and before `end`, and with all of its hours (or the window's length, where the lease is longer).
What one window can hold is then the highest level of these stretched spans. Levels change at
starts and ends alone, so looking there is looking at all of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.errors import QuotaExceeded
from moorage.domain.period import HOUR, SECOND, format_instant, say_duration
from moorage.domain.quotas import DURATIONS, UNLIMITED, QuotaName, QuotaUse, too_high
from moorage.engine.time.weighted_levels import Levels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from moorage.domain.period import Duration, Instant, Period
    from moorage.engine.time.occupancy import Ints

_HOUR: Final = HOUR // SECOND
_Pair: TypeAlias = "tuple[QuotaName, int, Levels, Levels]"
"""A limit over time: its name, how high it is, what others take, what is wanted."""
_BESIDE_OTHERS: Final = (QuotaName.UNITS, QuotaName.UNIT_HOURS, QuotaName.LEASES)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What holds for one project."""

    limit: Callable[[QuotaName], int]
    window: Duration

    @property
    def counts(self) -> bool:
        """Whether it matters what else the project has leased."""
        return any(self.limit(name) != UNLIMITED for name in _BESIDE_OTHERS)


@dataclass(frozen=True, slots=True)
class Lessee:
    """What a project has leased: what that counts for, and when leases end that have not."""

    uses: Sequence[QuotaUse]
    ends: Sequence[Instant]


NOBODY: Final = Lessee((), ())


@dataclass(frozen=True, slots=True)
class Asked:
    """A lease as it becomes; `before` is what it was, None of a new one."""

    period: Period
    uses: Sequence[QuotaUse]
    before: Period | None = None
    used: Sequence[QuotaUse] = ()
    priority: int = 0
    """Of a new lease; one that is there has the priority that it was granted with."""


def judge(ceiling: Ceiling, others: Lessee, asked: Asked, now: Instant) -> QuotaExceeded | None:
    """Whether a project may have this lease beside its others, or why not.

    What takes no more than it did passes, also where the project is over its quota.
    """
    barred = _priority(ceiling, asked) or _length(ceiling, asked)
    if barred is not None:
        return barred
    pairs = list(_pairs(ceiling, others.uses, asked.uses))
    refused = (
        _horizon(ceiling, asked, now)
        or _stack(ceiling, others, asked)
        or _over_time(ceiling, pairs, asked)
    )
    if refused is None:
        return None
    return refused.told(_when(ceiling, others, pairs, asked, now))


def room(ceiling: Ceiling, others: Lessee, period: Period, now: Instant) -> int | None:
    """How many places one more lease over the period could have; None: as many as one likes."""
    probe = Asked(period, ())
    if (
        _length(ceiling, probe) is not None
        or _horizon(ceiling, probe, now) is not None
        or _stack(ceiling, others, probe) is not None
    ):
        return 0
    one = QuotaUse(1, period.start, period.end)
    most: int | None = None
    for _, limit, taken, wanted in _pairs(ceiling, others.uses, (one,)):
        if limit == UNLIMITED:
            continue
        points = _points(taken, wanted)
        own = wanted.at(points)
        left = (limit - taken.at(points)[own > 0]).min() // own.max()
        most = max(int(left), 0) if most is None else max(min(most, int(left)), 0)
    return most


def peak(ceiling: Ceiling, uses: Sequence[QuotaUse], name: QuotaName, now: Instant) -> int:
    """The highest use from now on: of places, or of unit-hours in a window that is not over."""
    units = name is QuotaName.UNITS
    levels = Levels.of_units(uses) if units else Levels.of_windows(uses, ceiling.window)
    since = now if units else now - ceiling.window
    points = np.concatenate(([since], levels.edges()))
    highest = int(levels.at(points[points >= since]).max())
    return highest if units else -(-highest // _HOUR)


# --- one limit each -----------------------------------------------------------------------------


def _priority(ceiling: Ceiling, asked: Asked) -> QuotaExceeded | None:
    limit = ceiling.limit(QuotaName.PRIORITY)
    if asked.priority <= limit:
        return None
    return too_high(limit=limit, requested=asked.priority)


def _length(ceiling: Ceiling, asked: Asked) -> QuotaExceeded | None:
    limit, length = ceiling.limit(QuotaName.MAX_LENGTH), asked.period.end - asked.period.start
    before = asked.before
    if length <= limit or (before is not None and length <= before.end - before.start):
        return None
    return _Passed(QuotaName.MAX_LENGTH, limit, 0, length).told(None)


def _horizon(ceiling: Ceiling, asked: Asked, now: Instant) -> _Passed | None:
    limit, ahead = ceiling.limit(QuotaName.HORIZON), asked.period.end - now
    before = asked.before
    if ahead <= limit or (before is not None and asked.period.end <= before.end):
        return None
    return _Passed(QuotaName.HORIZON, limit, 0, ahead)


def _stack(ceiling: Ceiling, others: Lessee, asked: Asked) -> _Passed | None:
    limit, used = ceiling.limit(QuotaName.LEASES), len(others.ends)
    if asked.before is not None or used < limit:
        return None
    return _Passed(QuotaName.LEASES, limit, used, 1)


def _over_time(ceiling: Ceiling, pairs: Sequence[_Pair], asked: Asked) -> _Passed | None:
    for (name, limit, taken, wanted), before in zip(
        pairs, _profiles(ceiling, asked.used), strict=True
    ):
        worst = _worst(limit, taken, wanted, before)
        if worst is not None:
            return _Passed(name, limit, *worst)
    return None


# --- when it would pass -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _When:
    """The first start with which a lease passes every limit, and since when it may be asked for."""

    start: Instant
    moved: bool
    """Whether that is another start than the one asked for."""
    asked: Instant | None
    """None: at once, which only another start does."""


def _when(
    ceiling: Ceiling, others: Lessee, pairs: Sequence[_Pair], asked: Asked, now: Instant
) -> _When | None:
    """When a lease that is refused would pass; None: never as long as nothing else changes.

    Limits over time hold for the start, whenever it is asked for; the others hold for when it is
    asked for, which is not after its start.
    """
    since = now
    if _stack(ceiling, others, asked) is not None:
        limit = ceiling.limit(QuotaName.LEASES)
        if not limit:
            return None
        since = sorted(others.ends)[len(others.ends) - limit]
    first = asked.period.start
    delay = max(since - first, 0)
    if delay or _over_time(ceiling, pairs, asked) is not None:
        movable = not asked.used or asked.used[0].start > now
        later = _first_shift(pairs, delay) if movable else None
        if later is None:
            return None
        delay = later
    limit, end = ceiling.limit(QuotaName.HORIZON), asked.period.end + delay
    if asked.before is None or end > asked.before.end:
        since = max(since, end - limit)
    if since > first + delay:
        return None
    return _When(first + delay, delay > 0, None if delay and since <= now else since)


# --- over time ----------------------------------------------------------------------------------


def _profiles(ceiling: Ceiling, uses: Sequence[QuotaUse]) -> tuple[Levels, Levels]:
    return Levels.of_units(uses), Levels.of_windows(uses, ceiling.window)


def _pairs(
    ceiling: Ceiling, others: Sequence[QuotaUse], own: Sequence[QuotaUse]
) -> Iterator[_Pair]:
    """Each limit over time."""
    names = (QuotaName.UNITS, QuotaName.UNIT_HOURS)
    each = zip(names, _profiles(ceiling, others), _profiles(ceiling, own), strict=True)
    for name, taken, wanted in each:
        limit = ceiling.limit(name)
        if name is QuotaName.UNIT_HOURS and limit != UNLIMITED:
            limit *= _HOUR
        yield name, limit, taken, wanted


def _points(*levels: Levels) -> Ints:
    return np.unique(np.concatenate([one.edges() for one in levels]))


def _worst(limit: int, taken: Levels, wanted: Levels, before: Levels) -> tuple[int, int] | None:
    """What others take and what is wanted where the limit is passed most, and not as it was."""
    points = _points(taken, wanted, before)
    others, own = taken.at(points), wanted.at(points)
    total = np.where(own > before.at(points), others + own, 0)
    if not len(points) or int(total.max()) <= limit:
        return None
    worst = int(total.argmax())
    return int(others[worst]), int(own[worst])


def _first_shift(pairs: Sequence[_Pair], least: Duration) -> Duration | None:
    """The first delay from `least` on with which all that is wanted passes; None: there is none.

    A stretch of what is wanted that meets one in which others take too much must begin when that
    ends, or later: each step is the least that is necessary, so what is found is the least.
    """
    meetings: list[tuple[int, int, tuple[Ints, Ints]]] = []
    for _, limit, taken, wanted in pairs:
        for start, end, level in wanted.segments():
            if level > limit:
                return None
            meetings.append((start, end, taken.runs(limit - level)))
    delay = least
    while True:
        needed = max((_past(start, end, runs, delay) for start, end, runs in meetings), default=0)
        if needed <= delay:
            return delay
        delay = needed


def _past(start: int, end: int, runs: tuple[Ints, Ints], delay: int) -> int:
    """The delay after which a stretch is past the first run that it meets at this delay."""
    starts, ends = runs
    first = int(np.searchsorted(ends, start + delay, side="right"))
    if first < len(ends) and starts[first] < end + delay:
        return int(ends[first]) - start
    return delay


# --- words --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Passed:
    """A limit that is passed, in its own units."""

    name: QuotaName
    limit: int
    used: int
    requested: int

    def told(self, when: _When | None) -> QuotaExceeded:
        """The refusal."""
        name, limit, used, requested = self.name, self.limit, self.used, self.requested
        if name in DURATIONS:
            said = f"{name} limit {say_duration(limit)} requested {_up(requested)}"
            limit, requested = limit // SECOND, -(-requested // SECOND)
        else:
            if name is QuotaName.UNIT_HOURS:
                limit, used, requested = limit // _HOUR, -(-used // _HOUR), -(-requested // _HOUR)
            said = f"{name} limit {limit} used {used} requested {requested}"
        when_asked = when is not None and not when.moved
        return QuotaExceeded(
            name,
            f"{said}   {_passes(when)}",
            limit=limit,
            used=used,
            requested=requested,
            passes_at=None if when is None else when.asked if when_asked else when.start,
            when_asked=when_asked,
            asked_from=None if when is None or when_asked else when.asked,
        )


def _passes(when: _When | None) -> str:
    if when is None:
        return "never passes"
    if not when.moved:
        return f"passes when asked for at {format_instant(when.asked or when.start)}"
    later = "" if when.asked is None else f", asked for at {format_instant(when.asked)} or later"
    return f"passes at {format_instant(when.start)}{later}"


def _up(length: Duration) -> str:
    """A duration in whole seconds, no shorter than it is."""
    return say_duration(-(-length // SECOND) * SECOND)
