"""Arithmetic of the commit's capacity check: where and when an inventory is exceeded most.

An inventory may be over capacity already, because its operator shrank it; then occupancy may stay
or fall, but not rise. When a consumer's bookings are replaced, its former ones do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from moorage.engine.time.occupancy import breakpoints, levels

if TYPE_CHECKING:
    from moorage.domain.period import Instant
    from moorage.engine.time.occupancy import Spans


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The instant that is exceeded most, with what is free and what is requested then."""

    at: Instant
    free: int
    """Capacity less the other bookings; negative if they exceed it already."""
    requested: int


def shortfall(
    capacity: int, *, others: Spans, before: Spans, after: Spans, since: Instant
) -> Shortfall | None:
    """Check a change of one inventory's bookings; None if it is allowed.

    Args:
        capacity: units that may be booked at one instant.
        others: live bookings that the change leaves alone.
        before: live bookings that the change takes away.
        after: bookings that the change writes.
        since: instants before it are past and are not judged.

    Returns:
        None when at every instant from `since` on, the new occupancy is within the capacity
        or no higher than it was; otherwise the instant that is exceeded most.
    """
    instants = breakpoints((others, before, after), since)
    kept = levels(others, instants)
    asked = levels(after, instants)
    allowed = np.maximum(capacity, kept + levels(before, instants))
    excess = kept + asked - allowed
    worst = int(np.argmax(excess))
    if excess[worst] <= 0:
        return None
    return Shortfall(
        at=int(instants[worst]), free=capacity - int(kept[worst]), requested=int(asked[worst])
    )
