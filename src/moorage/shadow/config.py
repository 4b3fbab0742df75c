"""Settings of a shadow, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ShadowConfig:
    """What a shadow follows."""

    followed: str
    """The URL of a Placement service."""
    prefix: str
    """Where the Placement API is mounted; empty for the root."""
    source: str
    """The URL of its database; empty: its content is imported by other means."""
    refresh_seconds: float
    report: Path
