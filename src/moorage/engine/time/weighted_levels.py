"""Levels of weighted spans over time, as columns: what leases of a project count for."""

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
class Levels:
    """Spans with weights, as columns, and how much of them there is at an instant."""

    start: Ints
    end: Ints
    weight: Ints

    @classmethod
    def of_units(cls, uses: Sequence[QuotaUse]) -> Levels:
        """Places over time."""
        table = np.array([(u.start, u.end, u.units) for u in uses], np.int64).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2])

    @classmethod
    def of_windows(cls, uses: Sequence[QuotaUse], window: Duration) -> Levels:
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
