"""The arithmetic of quotas: what leases of a project count for over time, as columns.

Concurrent units are an occupancy like any other. Unit-hours are one as well: a window touches a
lease that it overlaps, so a lease is touched by every window that begins from `start - window` on
and before `end`, and with all of its hours (or the window's length, where the lease is longer).
What one window can hold is then the highest level of these stretched spans. Levels change at
starts and ends alone, so looking there is looking at all of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.errors import QuotaExceeded
from moorage.domain.period import HOUR, SECOND, format_instant, say_duration
from moorage.domain.quotas import DURATIONS, UNLIMITED, QuotaName, Use, too_high

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from moorage.domain.period import Duration, Instant, Period
    from moorage.engine.timeline import Ints

_HOUR: Final = HOUR // SECOND
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

    uses: Sequence[Use]
    ends: Sequence[Instant]


NOBODY: Final = Lessee((), ())


@dataclass(frozen=True, slots=True)
class Asked:
    """A lease as it becomes; `before` is what it was, None of a new one."""

    period: Period
    uses: Sequence[Use]
    before: Period | None = None
    used: Sequence[Use] = ()
    priority: int = 0
    """Of a new lease; one that is there has the priority that it was granted with."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Spans with weights, as columns, and how much of them there is at an instant."""

    start: Ints
    end: Ints
    weight: Ints

    @classmethod
    def of_units(cls, uses: Sequence[Use]) -> Levels:
        """Places over time."""
        table = np.array([(u.start, u.end, u.units) for u in uses], np.int64).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2])

    @classmethod
    def of_windows(cls, uses: Sequence[Use], window: Duration) -> Levels:
        """Unit-seconds that a window has which begins at an instant, parts of seconds as whole."""
        plain = cls.of_units(uses)
        seconds = -(-np.minimum(plain.end - plain.start, window) // SECOND)
        return cls(plain.start - window, plain.end, plain.weight * seconds)

    def at(self, points: Ints) -> Ints:
        """The level at each point."""
        return _sums(self.start, self.weight, points) - _sums(self.end, self.weight, points)

    def edges(self) -> Ints:
        """Where the level changes."""
        return np.unique(np.concatenate((self.start, self.end)))

    def segments(self) -> Iterator[tuple[int, int, int]]:
        """`(start, end, level)` of each stretch that has one."""
        points = self.edges()
        for start, end, level in zip(points[:-1], points[1:], self.at(points[:-1]), strict=True):
            if level > 0:
                yield int(start), int(end), int(level)

    def runs(self, above: int) -> tuple[Ints, Ints]:
        """Starts and ends of the stretches in which the level is above this."""
        points = self.edges()
        high = np.concatenate(([False], self.at(points) > above, [False]))
        turns = np.flatnonzero(high[1:] != high[:-1])
        return points[turns[0::2]], points[np.minimum(turns[1::2], len(points) - 1)]


def _sums(edges: Ints, weights: Ints, points: Ints) -> Ints:
    """The weights of the edges that lie at each point or before."""
    order = np.argsort(edges, kind="stable")
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(weights[order])))
    found: Ints = sums[np.searchsorted(edges[order], points, side="right")]
    return found


def judge(ceiling: Ceiling, others: Lessee, asked: Asked, now: Instant) -> QuotaExceeded | None:
    """Whether a project may have this lease beside its others, or why not.

    What takes no more than it did passes, also where the project is over its quota.
    """
    found = (
        _priority(ceiling, asked)
        or _length(ceiling, asked)
        or _horizon(ceiling, asked, now)
        or _stack(ceiling, others, asked)
    )
    if found is not None:
        return found
    pairs = list(_pairs(ceiling, others.uses, asked.uses))
    for (name, limit, taken, wanted), before in zip(
        pairs, _profiles(ceiling, asked.used), strict=True
    ):
        worst = _worst(limit, taken, wanted, before)
        if worst is None:
            continue
        movable = not asked.used or asked.used[0].start > now
        later = _first_shift(pairs) if movable else None
        start = None if later is None else asked.period.start + later
        return _refusal(name, limit, *worst, passes_at=start)
    return None


def room(ceiling: Ceiling, others: Lessee, period: Period, now: Instant) -> int | None:
    """How many places one more lease over the period could have; None: as many as one likes."""
    probe = Asked(period, ())
    bare = (
        _length(ceiling, probe) or _horizon(ceiling, probe, now) or _stack(ceiling, others, probe)
    )
    if bare is not None:
        return 0
    one = Use(1, period.start, period.end)
    most: int | None = None
    for _, limit, taken, wanted in _pairs(ceiling, others.uses, (one,)):
        if limit == UNLIMITED:
            continue
        points = _points(taken, wanted)
        own = wanted.at(points)
        left = (limit - taken.at(points)[own > 0]).min() // own.max()
        most = max(int(left), 0) if most is None else max(min(most, int(left)), 0)
    return most


def peak(ceiling: Ceiling, uses: Sequence[Use], name: QuotaName, now: Instant) -> int:
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
    return _refusal(QuotaName.MAX_LENGTH, limit, 0, length)


def _horizon(ceiling: Ceiling, asked: Asked, now: Instant) -> QuotaExceeded | None:
    limit, ahead = ceiling.limit(QuotaName.HORIZON), asked.period.end - now
    before = asked.before
    if ahead <= limit or (before is not None and asked.period.end <= before.end):
        return None
    then = asked.period.end - limit
    passes = then if then <= asked.period.start else None
    return _refusal(QuotaName.HORIZON, limit, 0, ahead, passes_at=passes, when_asked=True)


def _stack(ceiling: Ceiling, others: Lessee, asked: Asked) -> QuotaExceeded | None:
    limit, used = ceiling.limit(QuotaName.LEASES), len(others.ends)
    if asked.before is not None or used < limit:
        return None
    passes = sorted(others.ends)[used - limit] if limit else None
    return _refusal(QuotaName.LEASES, limit, used, 1, passes_at=passes, when_asked=True)


# --- over time ----------------------------------------------------------------------------------


def _profiles(ceiling: Ceiling, uses: Sequence[Use]) -> tuple[Levels, Levels]:
    return Levels.of_units(uses), Levels.of_windows(uses, ceiling.window)


def _pairs(
    ceiling: Ceiling, others: Sequence[Use], own: Sequence[Use]
) -> Iterator[tuple[QuotaName, int, Levels, Levels]]:
    """For each limit over time: its name, how high it is, what others take, what is wanted."""
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


def _first_shift(pairs: Sequence[tuple[QuotaName, int, Levels, Levels]]) -> Duration | None:
    """The least delay after which all that is wanted passes every limit; None: there is none.

    A stretch of what is wanted that meets one in which others take too much must begin when that
    ends, or later: each step is the least that is necessary, so what is found is the least.
    """
    meetings: list[tuple[int, int, tuple[Ints, Ints]]] = []
    for _, limit, taken, wanted in pairs:
        for start, end, level in wanted.segments():
            if level > limit:
                return None
            meetings.append((start, end, taken.runs(limit - level)))
    delay = 0
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


def _refusal(
    name: QuotaName,
    limit: int,
    used: int,
    requested: int,
    *,
    passes_at: Instant | None = None,
    when_asked: bool = False,
) -> QuotaExceeded:
    if name in DURATIONS:
        said = f"{name} limit {say_duration(limit)} requested {_up(requested)}"
        limit, requested = limit // SECOND, -(-requested // SECOND)
    else:
        if name is QuotaName.UNIT_HOURS:
            limit, used, requested = limit // _HOUR, -(-used // _HOUR), -(-requested // _HOUR)
        said = f"{name} limit {limit} used {used} requested {requested}"
    if passes_at is None:
        when = "never passes"
    elif when_asked:
        when = f"passes when asked for at {format_instant(passes_at)}"
    else:
        when = f"passes at {format_instant(passes_at)}"
    return QuotaExceeded(
        name,
        f"{said}   {when}",
        limit=limit,
        used=used,
        requested=requested,
        passes_at=passes_at,
        when_asked=when_asked,
    )


def _up(length: Duration) -> str:
    """A duration in whole seconds, no shorter than it is."""
    return say_duration(-(-length // SECOND) * SECOND)
