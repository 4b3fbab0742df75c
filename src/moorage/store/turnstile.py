"""A lock that serves in the order of arrival, so that no writer starves."""

from __future__ import annotations

from collections import deque
from threading import Event, Lock

from moorage.domain.errors import Busy


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


class Queue:
    """A turnstile as a context: who enters it waits until all before have left it."""

    def __init__(self, patience: float) -> None:
        """`patience` in seconds."""
        self._turnstile = Turnstile()
        self._patience = patience

    def __enter__(self) -> None:
        """Wait for the turn.

        Raises:
            Busy: it did not come in time.
        """
        if not self._turnstile.acquire(self._patience):
            raise Busy("the ledger has too many writers at once")

    def __exit__(self, *_: object) -> None:
        self._turnstile.release()
