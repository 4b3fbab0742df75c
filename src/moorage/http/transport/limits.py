"""Limits of one worker's connections, threads and bytes."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

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


Owner = TypeVar("Owner")
"""Whose bytes are kept: a connection."""

_FRESH: Final = 0.1
"""Seconds for which bytes count as kept that have just come: a client is not slow at once."""


class BufferLimit(Generic[Owner]):
    """Bytes buffered for each connection, and their sum. Safe for threads.

    Past the limit those connections have to go that have cost most: bytes times seconds since the
    client last sent or took any. A client that goes on is hardly ever among them. One that is alone
    may pass the limit.
    """

    def __init__(self, limit: int, kept: Callable[[int], None], ended: Callable[[], None]) -> None:
        """`kept` is called with the sum, and `ended` for each connection that is dropped."""
        self._limit = limit
        self._kept = kept
        self._ended = ended
        self._lock = threading.Lock()
        self._of: dict[Owner, tuple[int, float]] = {}
        self._sum = 0

    def keep(self, owner: Owner, size: int, now: float) -> list[Owner]:
        """Record the bytes buffered for a client that has just sent or taken some.

        Returns the connections to end; they are no longer counted.
        """
        with self._lock:
            self._forget(owner)
            self._of[owner] = (size, now)
            self._sum += size
            gone: list[Owner] = []
            while self._sum > self._limit and len(self._of) > 1:
                costs = {
                    one: kept * (now - since + _FRESH) for one, (kept, since) in self._of.items()
                }
                gone.append(max(costs, key=costs.__getitem__))
                self._forget(gone[-1])
                self._ended()
            self._kept(self._sum)
        return gone

    def free(self, owner: Owner) -> None:
        """Release the bytes of a connection."""
        with self._lock:
            self._forget(owner)
            self._kept(self._sum)

    def _forget(self, owner: Owner) -> None:
        size, _ = self._of.pop(owner, (0, 0.0))
        self._sum -= size
