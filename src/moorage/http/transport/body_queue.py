"""The queue in which connections with large bodies wait for their next piece, at a bounded rate.

Without it, a client that sends large bodies as fast as the system copies them takes the processor,
the interpreter's lock and the memory from all others. A connection with a large body waits here
between two pieces; those that began first go on first, so that bodies become whole one after the
other. What is not received stays in the system's buffers, and the client waits.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

LARGE: Final = 256 * 1024
"""Bytes of a body that are received at once; those of longer bodies are paced, in such pieces."""
RATE: Final = 32 * 1024 * 1024
"""Bytes of large bodies that a worker receives in a second."""


class BodyQueue:
    """Lets connections with large bodies go on. Safe for threads."""

    def __init__(self, go_on: Callable[[int], None], rate: float = RATE) -> None:
        """`go_on` is called with the descriptor of a connection that may receive a piece."""
        self._go_on = go_on
        self._rate = rate
        self._lock = threading.Lock()
        self._waiting: list[tuple[float, int]] = []
        """When each body began, and the connection's descriptor; a heap."""
        self._free_at = 0.0
        """When the next piece may be received, monotonic."""
        self._runs = False
        """Whether a thread waits for that."""

    def wait(self, descriptor: int, began: float, received: int) -> None:
        """Let a connection go on in time, whose body began then, and which received these bytes."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + received / self._rate
            heapq.heappush(self._waiting, (began, descriptor))
            if self._runs:
                return
            self._runs = True
        try:
            threading.Thread(target=self._run, name="bodies", daemon=True).start()
        except RuntimeError:  # the system has no thread left: this one goes without a pace
            _log.warning("the system has no thread for the pace of large bodies")
            self._run(paced=False)

    def _run(self, *, paced: bool = True) -> None:
        """Let the waiting go on one after the other, until there are none."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._runs = False
                    return
                pause = self._free_at - time.monotonic() if paced else 0.0
                descriptor = None if pause > 0 else heapq.heappop(self._waiting)[1]
            if descriptor is not None:
                self._go_on(descriptor)
                pause = _PAUSE
            if paced:
                time.sleep(max(pause, _PAUSE))


_PAUSE: Final = 0.0005
"""Seconds in which a connection that goes on receives its piece, which then counts."""
