"""So many at a time: a semaphore that costs no more than the two calls it is."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Turns:
    """Entered by at most so many threads at once; others wait."""

    def __init__(self, number: int) -> None:
        # The standard library's semaphore is written in Python, over a lock and a list of waiters.
        self._free: SimpleQueue[None] = SimpleQueue()
        for _ in range(number):
            self._free.put(None)

    def __enter__(self) -> None:
        self._free.get()

    def __exit__(self, *_: object) -> None:
        self._free.put(None)

    def taken(self) -> bool:
        """Whether a turn could be had at once; whoever gets one gives it back by `leave`."""
        try:
            self._free.get_nowait()
        except Empty:
            return False
        return True

    def leave(self) -> None:
        """Let the next one in."""
        self._free.put(None)
