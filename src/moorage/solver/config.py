"""Settings of the solver pool, as values; `moorage.settings` fills it."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.solver.solver_plugins import CPSAT


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """The number of solver processes, and their limits."""

    processes: int
    queue: int
    """Requests that may wait for a process."""
    memory: int
    """Bytes one process may have."""
    strategies: tuple[str, ...] = (CPSAT,)
    """Names of what searches in a process, in this order; see `solver_plugins`."""
