"""Load profiles: the levels over time of many owners, sorted once to look up peaks of any window.

`occupancy.peaks` sorts the spans of one window. A profile is for many windows of the same spans, as
in candidate searches over different periods and the time slots of a joint problem. When the spans
of a few owners change, the others are not sorted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.engine.time.occupancy import OwnerReplacement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.domain.period import Period
    from moorage.engine.time.occupancy import Spans

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LoadProfile:
    """k changes of levels, by owner, then instant; at one instant decreases before increases."""

    owner: Ints
    """[k]"""
    at: Ints
    """[k] when."""
    level: Ints
    """[k] the owner's level after the change."""

    @classmethod
    def of(cls, spans: Spans) -> LoadProfile:
        """The sums of spans by owner."""
        owner = np.concatenate((spans.owner, spans.owner))
        at = np.concatenate((spans.start, spans.end))
        change = np.concatenate((spans.amount, -spans.amount))
        order = np.lexsort((change, at, owner))
        owner, at, level = owner[order], at[order], np.cumsum(change[order])
        # The changes of one owner sum to zero, so one cumulative sum serves all owners.
        return cls(owner, at, level)

    def with_owners(self, replaced: Ints, others: LoadProfile) -> LoadProfile:
        """The profile with other changes for some owners.

        `replaced` are owners whose changes are dropped, ascending; `others` are their new changes.
        """
        splice = OwnerReplacement.of(self.owner, replaced, others.owner)
        return LoadProfile(
            splice.column(self.owner, others.owner),
            splice.column(self.at, others.at),
            splice.column(self.level, others.level),
        )

    def peaks(self, count: int, window: Period) -> Ints:
        """The highest level of each owner at any instant of a window; see `occupancy.peaks`.

        The window is half-open.

        Returns:
            [count] peaks, 0 for an owner without a span in the window.
        """
        found = np.zeros(count, dtype=np.int64)
        first = self._first
        if not len(first):
            return found
        begun = np.add.reduceat(self.at <= window.start, first, dtype=np.int64)
        before = np.add.reduceat(self.at < window.end, first, dtype=np.int64)
        # From the last change at or before the window's start to the last change in it.
        some = np.flatnonzero(before > 0)
        ranges = np.empty((len(some), 2), dtype=np.int64)
        ranges[:, 0] = first[some] + np.maximum(begun[some] - 1, 0)
        ranges[:, 1] = first[some] + before[some]
        highest = np.maximum.reduceat(np.append(self.level, 0), ranges.reshape(-1))[::2]
        found[self.owner[first[some]]] = np.maximum(highest, 0)
        return found

    @cached_property
    def _first(self) -> Ints:
        """The index of each owner's first change."""
        owner = self.owner
        return np.flatnonzero(np.r_[len(owner) > 0, owner[1:] != owner[:-1]][: len(owner)])
