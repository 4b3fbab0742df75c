"""Levels over time of many owners, sorted once: peaks of any window are looked up.

`timeline.peaks` sorts the spans of a window. Who asks for many windows of the same spans, as
candidates for different stays and the slots of a joint problem do, asks a course. When a few
owners' spans change, the others' part of the order stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.engine.time.occupancy import Splice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.domain.period import Period
    from moorage.engine.time.occupancy import Spans

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Course:
    """k changes of levels: by owner, then by instant; falls go before rises at one instant."""

    owner: Ints
    """[k]"""
    at: Ints
    """[k] when."""
    level: Ints
    """[k] the owner's level after the change."""

    @classmethod
    def of(cls, spans: Spans) -> Course:
        """The levels that spans add up to."""
        owner = np.concatenate((spans.owner, spans.owner))
        at = np.concatenate((spans.start, spans.end))
        change = np.concatenate((spans.amount, -spans.amount))
        order = np.lexsort((change, at, owner))
        owner, at, level = owner[order], at[order], np.cumsum(change[order])
        # The spans of one owner add up to nothing in the end, so sums of all need no correction.
        return cls(owner, at, level)

    def with_others(self, touched: Ints, others: Course) -> Course:
        """The same course where some owners' changes are otherwise.

        Args:
            touched: whose changes are left out, ascending.
            others: changes of touched owners, instead.
        """
        splice = Splice.of(self.owner, touched, others.owner)
        return Course(
            splice.column(self.owner, others.owner),
            splice.column(self.at, others.at),
            splice.column(self.level, others.level),
        )

    def peaks(self, count: int, window: Period) -> Ints:
        """The highest level of each owner at any instant of a window; see `timeline.peaks`.

        Args:
            count: how many owners there are.
            window: half-open.

        Returns:
            [count] peaks, 0 for an owner without a span in the window.
        """
        found = np.zeros(count, dtype=np.int64)
        first = self._first
        if not len(first):
            return found
        begun = np.add.reduceat(self.at <= window.start, first, dtype=np.int64)
        before = np.add.reduceat(self.at < window.end, first, dtype=np.int64)
        # From the level that the window begins with to the last change in it.
        some = np.flatnonzero(before > 0)
        ranges = np.empty((len(some), 2), dtype=np.int64)
        ranges[:, 0] = first[some] + np.maximum(begun[some] - 1, 0)
        ranges[:, 1] = first[some] + before[some]
        highest = np.maximum.reduceat(np.append(self.level, 0), ranges.reshape(-1))[::2]
        found[self.owner[first[some]]] = np.maximum(highest, 0)
        return found

    @cached_property
    def _first(self) -> Ints:
        """Where each owner that has any begins."""
        owner = self.owner
        return np.flatnonzero(np.r_[len(owner) > 0, owner[1:] != owner[:-1]][: len(owner)])
