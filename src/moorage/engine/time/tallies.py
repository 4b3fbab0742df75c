"""Step functions of time as sums of changes: one per host or domain, many at once.

Kept as what changes when. Changes at one instant may stand in any order: what holds between them
has no duration, and whatever is made of a function counts from the last of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.domain.period import Duration, Instant

    Ints: TypeAlias = NDArray[np.int64]
    Segments: TypeAlias = "tuple[Ints, Ints, Ints]"


@dataclass(frozen=True, slots=True, eq=False)
class Tallies:
    """N functions: their values before anything changes, and T changes by owner, then instant."""

    initial: Ints
    """[N]"""
    owner: Ints
    """[T] whose value changes."""
    instant: Ints
    change: Ints

    @classmethod
    def of(cls, initial: Ints, owner: Ints, instant: Ints, change: Ints) -> Tallies:
        """From changes in any order."""
        order = np.lexsort((instant, owner))
        return cls(initial, owner[order], instant[order], change[order])

    @classmethod
    def flat(cls, initial: Ints) -> Tallies:
        """Functions that never change."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(initial, nothing, nothing, nothing)

    @classmethod
    def meeting(cls, some: Sequence[Segments], length: Duration, first: Instant) -> Tallies:
        """1 at each start from which a window of `length` meets a segment, else 0.

        Args:
            some: owners with the beginnings and ends of segments, half-open; see `below`.
            length: of the windows.
            first: starts before this one do not matter.

        Returns:
            As many functions as the greatest owner needs; see `turned`.
        """
        owner, begin, end = (np.concatenate(parts) for parts in zip(*some, strict=True))
        inside = end > first
        owner, end = owner[inside], end[inside]
        begin = np.maximum(begin[inside], first)
        since = np.maximum(begin - length + 1, first)
        ones = np.ones(len(owner), dtype=np.int64)
        depth = cls.of(
            np.zeros(int(owner.max(initial=-1)) + 1, dtype=np.int64),
            np.concatenate((owner, owner)),
            np.concatenate((since, end)),
            np.concatenate((ones, -ones)),
        )
        return depth.reaching(1)

    @classmethod
    def summed(cls, some: Sequence[Tallies]) -> Tallies:
        """The sums of functions of the same owners."""
        return cls.of(
            np.sum([one.initial for one in some], axis=0),
            np.concatenate([one.owner for one in some]),
            np.concatenate([one.instant for one in some]),
            np.concatenate([one.change for one in some]),
        )

    # --- values -----------------------------------------------------------------------------

    def at(self, instants: Ints) -> Ints:
        """[S] the sum of all functions at each instant."""
        order = np.argsort(self.instant, kind="stable")
        risen = np.r_[0, np.cumsum(self.change[order])]
        upto = np.searchsorted(self.instant[order], instants, side="right")
        found: Ints = int(self.initial.sum()) + risen[upto]
        return found

    def _values(self) -> Ints:
        """[T] the value of each change's owner after it."""
        if not len(self.owner):
            return self.change
        risen = np.cumsum(self.change)
        first = np.flatnonzero(np.r_[True, self.owner[1:] != self.owner[:-1]])
        before = np.where(first > 0, risen[first - 1], 0)
        sizes = np.diff(np.r_[first, len(risen)])
        found: Ints = risen - np.repeat(before, sizes) + self.initial[self.owner]
        return found

    # --- functions of functions -------------------------------------------------------------

    def _mapped(self, initial: Ints, values: Ints) -> Tallies:
        """Other functions of the same owners; `values` [T] after each change."""
        fresh = np.r_[True, self.owner[1:] != self.owner[:-1]][: len(values)]
        before = np.where(fresh, initial[self.owner], np.r_[0, values[:-1]][: len(values)])
        change = values - before
        kept = change != 0
        return Tallies(initial, self.owner[kept], self.instant[kept], change[kept])

    def capped(self, limit: Ints | int) -> Tallies:
        """Never more than `limit`, or [N] limits."""
        most = np.broadcast_to(np.asarray(limit, dtype=np.int64), self.initial.shape)
        return self._mapped(
            np.minimum(self.initial, most), np.minimum(self._values(), most[self.owner])
        )

    def reaching(self, least: int) -> Tallies:
        """1 where a function is at least so much, else 0."""
        return self._mapped(
            (self.initial >= least).astype(np.int64), (self._values() >= least).astype(np.int64)
        )

    def turned(self, weight: Ints) -> Tallies:
        """[N] weights where a function is 0, and nothing where it is 1; more owners than here."""
        initial = weight.copy()
        initial[: len(self.initial)] -= weight[: len(self.initial)] * self.initial
        change = -self.change * weight[self.owner]
        kept = change != 0
        return Tallies(initial, self.owner[kept], self.instant[kept], change[kept])

    def taken_from(self, whole: Ints) -> Tallies:
        """[N] what is left of each whole."""
        return Tallies(whole - self.initial, self.owner, self.instant, -self.change)

    def grouped(self, group_of: Ints, count: int | None = None) -> Tallies:
        """Sums by the groups of the owners; whoever is of group -1 is left out."""
        size = int(group_of.max(initial=-1)) + 1 if count is None else count
        inside = group_of >= 0
        initial = np.zeros(size, dtype=np.int64)
        np.add.at(initial, group_of[inside], self.initial[inside])
        kept = inside[self.owner]
        return Tallies.of(
            initial, group_of[self.owner[kept]], self.instant[kept], self.change[kept]
        )

    def total(self) -> Tallies:
        """The sum of all, as one function."""
        return self.grouped(np.zeros(len(self.initial), dtype=np.int64), 1)

    def below(self, least: int) -> Segments:
        """Owners, beginnings and ends of the segments in which a function is less than `least`.

        Before the first change a segment has begun with time, after the last it never ends.
        """
        lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        short = np.flatnonzero(self._values() < least)
        last = np.r_[self.owner[1:] != self.owner[:-1], True][: len(self.owner)]
        until = np.where(last, highest, np.r_[self.instant[1:], highest][: len(self.owner)])
        heads = np.flatnonzero(self.initial < least)
        ends = np.full(len(self.initial), highest, dtype=np.int64)
        if len(self.owner):
            fresh = np.r_[True, self.owner[1:] != self.owner[:-1]]
            ends[self.owner[fresh]] = self.instant[fresh]
        owner = np.concatenate((heads, self.owner[short]))
        begin = np.concatenate((np.full(len(heads), lowest), self.instant[short]))
        end = np.concatenate((ends[heads], until[short]))
        real = begin < end
        return owner[real], begin[real], end[real]
