"""Limits of one worker's connections, threads and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OWN_FILES: Final = 512
"""Descriptors a worker needs beside its connections: databases, solvers, files."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one worker's connections."""

    connections: int
    """Open at a time; more wait to be accepted."""
    threads: int
    """Requests in progress at a time, those included that wait for their turn."""
    idle_seconds: float
    """For the head of a request to come, and for a connection to be kept without one."""
    body_seconds: float
    """For the body of a request to come."""
    body_limit: int = 16 * 1024 * 1024
    """Bytes of the longest body that is received."""
    arriving: int = 128 * 1024 * 1024
    """Bytes kept of bodies that are not whole yet."""
    unsent: int = 256 * 1024 * 1024
    """Bytes kept of answers that clients have not taken yet."""
    running: int = 16
    """Requests that are worked on at a time."""
    stuck_seconds: float = 90.0
    """If so many have all been worked on for so long, none of them will come to an end."""
    per_address: int | None = None
    """Connections of one client address at a time; None: as many as of all."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks that may have more, for they pass on the requests of others."""
