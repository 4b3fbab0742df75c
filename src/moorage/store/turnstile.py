"""A lock that serves in the order of arrival, so that no writer starves."""

from __future__ import annotations

from collections import deque
from threading import Event, Lock


class Turnstile:
    """First come, first served. The lock is handed over, never put down for a race."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._waiting: deque[Event] = deque()
        self._taken = False

    def acquire(self, timeout: float) -> bool:
        """Wait for the turn, at most `timeout` seconds; whether it came."""
        with self._mutex:
            if not self._taken:
                self._taken = True
                return True
            ticket = Event()
            self._waiting.append(ticket)
        if ticket.wait(timeout):
            return True
        with self._mutex:
            # The turn may have come between the timeout and this line.
            if ticket.is_set():
                return True
            self._waiting.remove(ticket)
            return False

    def release(self) -> None:
        """Hand over to whoever waits longest."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False
