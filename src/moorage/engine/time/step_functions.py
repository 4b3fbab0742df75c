"""Step functions of time, many at once, as columns.

A fleet over time is one such function per inventory. Each has a row where it begins and one
wherever it changes, and nothing in between: what is made of them here (sums, floors of quotients,
minima, what holds through a while) costs by the number of changes, not by instants x owners.
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
class Steps:
    """One function: `value[i]` holds from `at[i]` until the next instant."""

    at: Ints
    """[k] ascending; the first is where the function begins."""
    value: Ints
    """[k]"""

    def on(self, instants: Ints) -> Ints:
        """The values at `instants`, none before the function begins."""
        found: Ints = self.value[np.searchsorted(self.at, instants, side="right") - 1]
        return found

    def lowest(self, starts: Ints, ends: Ints) -> Ints:
        """The least value in each half-open `[starts[i], ends[i])`."""
        first = np.searchsorted(self.at, starts, side="right") - 1
        last = np.searchsorted(self.at, ends, side="left") - 1
        return least_between(self.value, first, last)


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """A function for each of `count` owners: rows by owner, then instant.

    Every owner has a row at the common beginning.
    """

    count: int
    owner: Ints
    at: Ints
    value: Ints

    @property
    def start(self) -> Instant:
        """The common beginning."""
        return int(self.at[0]) if len(self.at) else 0

    def mapped(self, change: Callable[[Ints, Ints], Ints]) -> Tracks:
        """Other values: `change` gets owners and values, row by row."""
        return Tracks(self.count, self.owner, self.at, change(self.owner, self.value)).joined()

    def joined(self) -> Tracks:
        """The same functions without the rows where nothing changes."""
        keep = np.r_[
            True,
            (self.owner[1:] != self.owner[:-1]) | (self.value[1:] != self.value[:-1]),
        ][: len(self.owner)]
        if keep.all():
            return self
        return Tracks(self.count, self.owner[keep], self.at[keep], self.value[keep])

    def grouped(self, group: Ints, count: int) -> Tracks:
        """The sums by group: `group` [owners] says whose sum an owner is part of."""
        change = np.diff(self.value, prepend=0)
        first = _firsts(self.owner)
        change[first] = self.value[first]
        return _summed(count, group[self.owner], self.at, change, self.start)

    def total(self) -> Steps:
        """The sum over all owners."""
        everyone = self.grouped(np.zeros(self.count, dtype=np.int64), 1)
        return Steps(everyone.at, everyone.value)

    def through(self, duration: Duration, last: Instant) -> Tracks:
        """The least value from each instant on for `duration`: of what holds through a while.

        Args:
            duration: longer than nothing.
            last: the last instant of interest, at which the functions must still be known
                for `duration`.
        """
        # It changes where a value begins, and one instant after a stay that ends there.
        at = np.concatenate((self.at, self.at - duration + 1))
        owner = np.concatenate((self.owner, self.owner))
        seen = (at >= self.start) & (at <= last)
        at, owner = at[seen], owner[seen]
        order = np.lexsort((at, owner))
        at, owner = at[order], owner[order]
        first = _positions(self, owner, at, "right") - 1
        final = _positions(self, owner, at + duration, "left") - 1
        return Tracks(self.count, owner, at, least_between(self.value, first, final)).joined()


def levels_of(spans: Spans, count: int, window: Period) -> Tracks:
    """The summed level of each owner's spans over a window.

    Args:
        spans: with owners in `range(count)`.
        count: how many owners there are.
        window: half-open.
    """
    inside = spans.where((spans.start < window.end) & (spans.end > window.start))
    falls = inside.end < window.end
    owner = np.concatenate((inside.owner, inside.owner[falls]))
    at = np.concatenate((np.maximum(inside.start, window.start), inside.end[falls]))
    change = np.concatenate((inside.amount, -inside.amount[falls]))
    return _summed(count, owner, at, change, window.start)


def lowest_of(tracks: Sequence[Tracks]) -> Tracks:
    """At every instant the least of several functions of each owner; at least one."""
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
    return Tracks(first.count, owner, at, np.minimum.reduce(values)).joined()


def least_between(values: Ints, first: Ints, last: Ints) -> Ints:
    """The least of `values[first[i]] .. values[last[i]]`, both included, for each i.

    By minima over runs of 1, 2, 4, ... values (a sparse table), of which only the run at hand is
    kept: two runs that overlap cover any range.
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


def _summed(count: int, owner: Ints, at: Ints, change: Ints, start: Instant) -> Tracks:
    """Functions from their changes, all owners beginning at `start` with what changes there."""
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
    return Tracks(count, owner, at, level - before[owner]).joined()


def _firsts(owner: Ints) -> Ints:
    """Where each owner's rows begin."""
    return np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]][: len(owner)])


def _positions(tracks: Tracks, owner: Ints, at: Ints, side: str) -> Ints:
    """Where in `tracks` rows of these owners and instants would stand.

    Owners and instants as one number: an instant by its rank among all, so that it fits.
    """
    instants = np.unique(np.concatenate((tracks.at, at)))
    width = len(instants)
    known = tracks.owner * width + np.searchsorted(instants, tracks.at)
    asked = owner * width + np.searchsorted(instants, at)
    found: Ints = np.searchsorted(known, asked, side=side)  # type: ignore[call-overload]
    return found
