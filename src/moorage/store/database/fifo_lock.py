"""A lock that serves in the order of arrival, so that no writer starves."""

from __future__ import annotations

from collections import deque
from threading import Event, Lock
from typing import Final

from moorage.domain import deadline
from moorage.domain.errors import Busy

TOO_MANY_WRITERS: Final = "the ledger has too many writers at once"


class FifoLock:
    """Lets in so many threads at a time, in the order of arrival.

    A place is handed over to the thread that waits longest, never put down for a race.
    """

    def __init__(self, timeout: float, *, most: int = 1) -> None:
        """`timeout` is how many seconds a thread waits at most, and never past its deadline."""
        self._timeout = timeout
        self._mutex = Lock()
        self._waiting: deque[Event] = deque()
        self._free = most

    def acquire(self) -> None:
        """Wait for a place.

        Raises:
            Busy: none came in time.
        """
        with self._mutex:
            if self._free:
                self._free -= 1
                return
            place = Event()
            self._waiting.append(place)
        if place.wait(max(deadline.left(self._timeout), 0.0)):
            return
        with self._mutex:
            # It may have come between the timeout and this line.
            if place.is_set():
                return
            self._waiting.remove(place)
        raise Busy(TOO_MANY_WRITERS)

    def release(self) -> None:
        """Give the place to the thread that waits longest."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
