"""The queue in which connections wait that have just been answered 429 (too many requests).

A client that asks again at once, thousands of times a second, takes the worker's time from all
others with refusals alone. So such a connection is not read for a moment; what it sends stays in
the system's buffers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

PAUSE: Final = 0.25
"""Seconds for which a connection is not read; less than any `Retry-After`."""


class PauseQueue:
    """Lets connections go on after a pause. Safe for threads."""

    def __init__(self, go_on: Callable[[int], None], seconds: float = PAUSE) -> None:
        """`go_on` is called with the descriptor of a connection whose pause is over."""
        self._go_on = go_on
        self._seconds = seconds
        self._lock = threading.Lock()
        self._waiting: deque[tuple[float, int]] = deque()
        """When each pause is over, monotonic, and the connection's descriptor."""
        self._runs = False
        """Whether a thread waits for that."""

    def wait(self, descriptor: int) -> None:
        """Let a connection go on after the pause."""
        with self._lock:
            self._waiting.append((time.monotonic() + self._seconds, descriptor))
            if self._runs:
                return
            self._runs = True
        try:
            threading.Thread(target=self._run, name="pauses", daemon=True).start()
        except RuntimeError:  # the system has no thread left: this one waits here
            _log.warning("the system has no thread for the pauses of connections")
            self._run()

    def _run(self) -> None:
        """Let the waiting go on, each after its pause, until there are none."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._runs = False
                    return
                until, descriptor = self._waiting.popleft()
            time.sleep(max(until - time.monotonic(), 0.0))
            self._go_on(descriptor)
