"""Weighted spans and their summed level over time, as columns; used for quotas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from moorage.domain.period import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.period import Duration
    from moorage.domain.quotas import QuotaUse
    from moorage.engine.time.occupancy import Ints


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
