"""Step functions of time, many at once, as columns of values.

For example one function per inventory. A function has a row where it begins and one at every
change. The operations here (sums, minima, sliding minima) cost by the number of changes, not by
instants x owners. See `tallies` for step functions as columns of changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from moorage.domain.period import Duration, Instant, Period
    from moorage.engine.time.occupancy import Spans

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """One step function: its value is `value[i]` from `at[i]` until `at[i + 1]`."""

    at: Ints
    """[k] ascending; the first is where the function begins."""
    value: Ints
    """[k]"""

    def values_at(self, instants: Ints) -> Ints:
        """The values at `instants`, none of which is before the function begins."""
        found: Ints = self.value[np.searchsorted(self.at, instants, side="right") - 1]
        return found

    def minimum_over(self, starts: Ints, ends: Ints) -> Ints:
        """The least value in each half-open `[starts[i], ends[i])`."""
        first = np.searchsorted(self.at, starts, side="right") - 1
        last = np.searchsorted(self.at, ends, side="left") - 1
        return range_minimum(self.value, first, last)


@dataclass(frozen=True, slots=True, eq=False)
class StepFunctions:
    """One step function for each of `count` owners: rows by owner, then instant.

    Every owner has a row at the common start.
    """

    count: int
    owner: Ints
    at: Ints
    value: Ints

    @property
    def start(self) -> Instant:
        """The common start of the functions."""
        return int(self.at[0]) if len(self.at) else 0

    def mapped(self, change: Callable[[Ints, Ints], Ints]) -> StepFunctions:
        """Functions with the values `change(owners, values)`, row by row."""
        return StepFunctions(
            self.count, self.owner, self.at, change(self.owner, self.value)
        ).simplified()

    def simplified(self) -> StepFunctions:
        """The same functions without rows at which the value does not change."""
        keep = np.r_[
            True,
            (self.owner[1:] != self.owner[:-1]) | (self.value[1:] != self.value[:-1]),
        ][: len(self.owner)]
        if keep.all():
            return self
        return StepFunctions(self.count, self.owner[keep], self.at[keep], self.value[keep])

    def grouped(self, group: Ints, count: int) -> StepFunctions:
        """The sums of owners by group; `group` [owners] is the group of each owner."""
        change = np.diff(self.value, prepend=0)
        first = _first_rows(self.owner)
        change[first] = self.value[first]
        return _cumulative(count, group[self.owner], self.at, change, self.start)

    def total(self) -> StepFunction:
        """The sum over all owners."""
        everyone = self.grouped(np.zeros(self.count, dtype=np.int64), 1)
        return StepFunction(everyone.at, everyone.value)

    def minimum_through(self, duration: Duration, last: Instant) -> StepFunctions:
        """The sliding minimum: at each instant t the least value in `[t, t + duration)`.

        Args:
            duration: positive.
            last: the last instant of the result; the functions must be known until
                `last + duration`.
        """
        # It changes where a value begins, and one instant after the windows that end there.
        at = np.concatenate((self.at, self.at - duration + 1))
        owner = np.concatenate((self.owner, self.owner))
        seen = (at >= self.start) & (at <= last)
        at, owner = at[seen], owner[seen]
        order = np.lexsort((at, owner))
        at, owner = at[order], owner[order]
        first = _positions(self, owner, at, "right") - 1
        final = _positions(self, owner, at + duration, "left") - 1
        return StepFunctions(
            self.count, owner, at, range_minimum(self.value, first, final)
        ).simplified()


def occupancy_levels(spans: Spans, count: int, window: Period) -> StepFunctions:
    """The summed amounts of each owner's spans, as step functions over a window.

    The spans' owners are in `range(count)`; the window is half-open.
    """
    inside = spans.selected((spans.start < window.end) & (spans.end > window.start))
    falls = inside.end < window.end
    owner = np.concatenate((inside.owner, inside.owner[falls]))
    at = np.concatenate((np.maximum(inside.start, window.start), inside.end[falls]))
    change = np.concatenate((inside.amount, -inside.amount[falls]))
    return _cumulative(count, owner, at, change, window.start)


def pointwise_minimum(tracks: Sequence[StepFunctions]) -> StepFunctions:
    """The pointwise minimum of one or more functions per owner."""
    first, *others = tracks
    if not others:
        return first
    owner = np.concatenate([one.owner for one in tracks])
    at = np.concatenate([one.at for one in tracks])
    order = np.lexsort((at, owner))
    owner, at = owner[order], at[order]
    fresh = np.r_[True, (owner[1:] != owner[:-1]) | (at[1:] != at[:-1])][: len(owner)]
    owner, at = owner[fresh], at[fresh]
    values = [one.value[_positions(one, owner, at, "right") - 1] for one in tracks]
    return StepFunctions(first.count, owner, at, np.minimum.reduce(values)).simplified()


def range_minimum(values: Ints, first: Ints, last: Ints) -> Ints:
    """The minimum of `values[first[i]] .. values[last[i]]`, both included, for each i.

    By minima over runs of 1, 2, 4, ... values (a sparse table, one level at a time): two runs that
    overlap cover any range.
    """
    found = np.empty(len(first), dtype=np.int64)
    run = values
    power = np.frexp((last - first + 1).astype(np.float64))[1] - 1
    for level in range(int(power.max(initial=-1)) + 1):
        if level:
            half = 1 << (level - 1)
            run = np.minimum(run[:-half], run[half:])
        mine = power == level
        if mine.any():
            found[mine] = np.minimum(run[first[mine]], run[last[mine] - (1 << level) + 1])
    return found


def _cumulative(count: int, owner: Ints, at: Ints, change: Ints, start: Instant) -> StepFunctions:
    """Step functions from changes, cumulated per owner from `start` on."""
    owner = np.concatenate((np.arange(count, dtype=np.int64), owner))
    at = np.concatenate((np.full(count, start, dtype=np.int64), at))
    change = np.concatenate((np.zeros(count, dtype=np.int64), change))
    order = np.lexsort((at, owner))
    owner, at = owner[order], at[order]
    level = np.cumsum(change[order])
    last = np.r_[(owner[1:] != owner[:-1]) | (at[1:] != at[:-1]), True][: len(owner)]
    owner, at, level = owner[last], at[last], level[last]
    ends = np.flatnonzero(np.r_[owner[1:] != owner[:-1], True][: len(owner)])
    before = np.r_[0, level[ends[:-1]]] if len(ends) else level
    return StepFunctions(count, owner, at, level - before[owner]).simplified()


def _first_rows(owner: Ints) -> Ints:
    """The index of each owner's first row."""
    return np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]][: len(owner)])


def _positions(tracks: StepFunctions, owner: Ints, at: Ints, side: str) -> Ints:
    """`searchsorted` of (owner, instant) pairs among the rows of `tracks`.

    Each pair is encoded as one number, with the rank of its instant so that it fits in 64 bits.
    """
    instants = np.unique(np.concatenate((tracks.at, at)))
    width = len(instants)
    known = tracks.owner * width + np.searchsorted(instants, tracks.at)
    searched = owner * width + np.searchsorted(instants, at)
    found: Ints = np.searchsorted(known, searched, side=side)  # type: ignore[call-overload]  # side is left or right
    return found
