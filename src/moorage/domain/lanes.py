"""Lanes: bars of one row of a chart that overlap are drawn one below the other."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.period import Period


def lanes(periods: Sequence[Period]) -> tuple[int, ...]:
    """The lane of each period, from 0: the first that is free when it begins.

    Earlier starts choose first, then earlier ends, then the given order. That takes as few lanes
    as there are periods at one instant.
    """
    found = [0] * len(periods)
    free: list[int] = []
    taken: list[tuple[int, int]] = []
    """End and lane of those that have begun, the earliest end first."""
    order = sorted(range(len(periods)), key=lambda n: (periods[n].start, periods[n].end, n))
    for n in order:
        while taken and taken[0][0] <= periods[n].start:
            heapq.heappush(free, heapq.heappop(taken)[1])
        # If none is free, those that are taken are the first ones.
        found[n] = heapq.heappop(free) if free else len(taken)
        heapq.heappush(taken, (periods[n].end, found[n]))
    return tuple(found)
