"""Does it fit over its whole period? The one invariant of every commit.

*No commit makes an overage worse at any instant*: an inventory may be over capacity already,
because its operator shrank it; then occupancy may stay or fall, but not rise. A consumer's own
former use does not count against its rewrite.
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
    """Where it does not fit: at the worst instant, how much was free and how much was asked."""

    at: Instant
    free: int
    """Capacity less what others take; negative where they exceed it already."""
    requested: int


def shortfall(
    capacity: int, *, others: Spans, before: Spans, after: Spans, since: Instant
) -> Shortfall | None:
    """Judge a change of one inventory's bookings.

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
