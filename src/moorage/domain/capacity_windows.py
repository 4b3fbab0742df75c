"""Planned changes of capacity: hosts that are away over a period (ADR-0012)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from moorage.domain.period import Instant, Period


class WindowKind(StrEnum):
    """Why hosts are away."""

    MAINTENANCE = "maintenance"
    """Down from a time to a time."""
    DECOMMISSION = "decommission"
    """Gone from a time on."""
    DELIVERY = "delivery"
    """Not there until a time."""


@dataclass(frozen=True, slots=True)
class CapacityWindow:
    """While `period` lasts, its hosts have no capacity, whatever their inventories say."""

    id: str
    kind: WindowKind
    hosts: tuple[str, ...]
    """UUIDs of root providers; everything in their trees is away with them."""
    period: Period
    reason: str = ""
    project_id: str = ""
    user_id: str = ""
    digest: str = ""
    """The fingerprint of the request that made it, where its client named it."""
    created_at: Instant = 0

    def state_at(self, now: Instant) -> str:
        """`planned`, `begun` or `over`."""
        if now < self.period.start:
            return "planned"
        return "begun" if now < self.period.end else "over"
