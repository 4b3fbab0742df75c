"""What the pool needs to be told; `moorage.settings` fills it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """How many solver processes, and within which bounds."""

    processes: int
    queue: int
    """Requests that may wait for a process."""
    memory: int
    """Bytes one process may have."""
