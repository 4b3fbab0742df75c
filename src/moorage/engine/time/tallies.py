"""Step functions of time as columns of changes: one per host or domain, many at once.

Changes at one instant may be in any order: the values between them have no duration and are
ignored. See `step_functions` for functions as columns of values.
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
    OwnedSegments: TypeAlias = "tuple[Ints, Ints, Ints]"


@dataclass(frozen=True, slots=True, eq=False)
class Tallies:
    """N step functions: initial values, and T changes sorted by owner, then instant."""

    initial: Ints
    """[N]"""
    owner: Ints
    """[T] number of the function that changes."""
    instant: Ints
    change: Ints

    @classmethod
    def of(cls, initial: Ints, owner: Ints, instant: Ints, change: Ints) -> Tallies:
        """From changes in any order."""
        order = np.lexsort((instant, owner))
        return cls(initial, owner[order], instant[order], change[order])

    @classmethod
    def constant(cls, initial: Ints) -> Tallies:
        """Functions that never change."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(initial, nothing, nothing, nothing)

    @classmethod
    def windows_meeting(
        cls, some: Sequence[OwnedSegments], length: Duration, first: Instant
    ) -> Tallies:
        """1 at each start from which a window of `length` meets a segment, else 0.

        Args:
            some: owners, starts and ends of half-open segments; see `segments_below`.
            length: of the windows.
            first: starts before this one are ignored.

        Returns:
            Functions up to the greatest owner among the segments; see `weighted_zeros`.
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
        return depth.at_least(1)

    @classmethod
    def summed(cls, some: Sequence[Tallies]) -> Tallies:
        """The sum, owner by owner, of several sets of functions."""
        return cls.of(
            np.sum([one.initial for one in some], axis=0),
            np.concatenate([one.owner for one in some]),
            np.concatenate([one.instant for one in some]),
            np.concatenate([one.change for one in some]),
        )

    # --- values -----------------------------------------------------------------------------

    def sum_at(self, instants: Ints) -> Ints:
        """[S] the sum of all functions at each instant."""
        order = np.argsort(self.instant, kind="stable")
        risen = np.r_[0, np.cumsum(self.change[order])]
        upto = np.searchsorted(self.instant[order], instants, side="right")
        found: Ints = int(self.initial.sum()) + risen[upto]
        return found

    def _values(self) -> Ints:
        """[T] the value of the function after each change."""
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
        """Functions of the same owners with other values: `initial` [N], `values` [T]."""
        fresh = np.r_[True, self.owner[1:] != self.owner[:-1]][: len(values)]
        before = np.where(fresh, initial[self.owner], np.r_[0, values[:-1]][: len(values)])
        change = values - before
        kept = change != 0
        return Tallies(initial, self.owner[kept], self.instant[kept], change[kept])

    def capped(self, limit: Ints | int) -> Tallies:
        """The minimum of each function and `limit`, one number or [N]."""
        most = np.broadcast_to(np.asarray(limit, dtype=np.int64), self.initial.shape)
        return self._mapped(
            np.minimum(self.initial, most), np.minimum(self._values(), most[self.owner])
        )

    def at_least(self, least: int) -> Tallies:
        """1 where a function is at least `least`, else 0."""
        return self._mapped(
            (self.initial >= least).astype(np.int64), (self._values() >= least).astype(np.int64)
        )

    def weighted_zeros(self, weight: Ints) -> Tallies:
        """`weight` [N] where a 0/1 function is 0, else 0; one missing here counts as 0."""
        initial = weight.copy()
        initial[: len(self.initial)] -= weight[: len(self.initial)] * self.initial
        change = -self.change * weight[self.owner]
        kept = change != 0
        return Tallies(initial, self.owner[kept], self.instant[kept], change[kept])

    def subtracted_from(self, whole: Ints) -> Tallies:
        """`whole` [N] minus each function."""
        return Tallies(whole - self.initial, self.owner, self.instant, -self.change)

    def grouped(self, group_of: Ints, count: int | None = None) -> Tallies:
        """The sums of owners by group; group -1 is left out."""
        size = int(group_of.max(initial=-1)) + 1 if count is None else count
        inside = group_of >= 0
        initial = np.zeros(size, dtype=np.int64)
        np.add.at(initial, group_of[inside], self.initial[inside])
        kept = inside[self.owner]
        return Tallies.of(
            initial, group_of[self.owner[kept]], self.instant[kept], self.change[kept]
        )

    def total(self) -> Tallies:
        """The sum of all functions, as one function."""
        return self.grouped(np.zeros(len(self.initial), dtype=np.int64), 1)

    def segments_below(self, least: int) -> OwnedSegments:
        """Owners, starts and ends of the segments in which a function is less than `least`.

        Before the first change a segment starts at the least integer; after the last change it ends
        at the greatest.
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
