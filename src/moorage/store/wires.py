"""The connections of one process, each lent to one thread at a time.

A pool for every purpose costs a commit on PostgreSQL a twentieth of its time; what is needed here
is a stack of connections and a number of them that is not exceeded.
"""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from sqlalchemy.exc import TimeoutError as NoConnection

from moorage.store.answers import Connections

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.store.wire import Wire


class Permits:
    """So many may do something at a time. Safe for threads."""

    def __init__(self, most: int, *, patience: float) -> None:
        """`patience` in seconds."""
        self._most = most
        self._patience = patience
        # The standard library's semaphore is written in Python.
        self._free: SimpleQueue[None] = SimpleQueue()
        for _ in range(most):
            self._free.put(None)

    def take(self) -> None:
        """Wait for one.

        Raises:
            NoConnection: none has come back in time.
        """
        try:
            self._free.get(timeout=self._patience)
        except Empty:
            raise NoConnection(f"{self._most} connections are in use") from None

    def give_back(self) -> None:
        """Let the next one have it."""
        self._free.put(None)

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def taken(self) -> int:
        """How many are out now."""
        return self._most - self._free.qsize()


class Wires:
    """See the module. Safe for threads."""

    def __init__(self, dial: Callable[[], Wire], *, most: int, kept: int, patience: float) -> None:
        """At most `most` are lent at a time, `kept` kept that are not; `patience` in seconds."""
        self._dial = dial
        self._most = most
        self._kept = kept
        self._permits = Permits(most, patience=patience)
        self._idle: list[Wire] = []
        self._closed = False

    def lend(self) -> Wire:
        """A connection; who has done with it gives it back.

        Raises:
            NoConnection: none has come back in time.
            DBAPIError: the database is away.
        """
        self._permits.take()
        try:
            return self._idle.pop()  # the one that was used last knows the most statements
        except IndexError:
            pass
        try:
            return self._dial()
        except BaseException:
            self._permits.give_back()
            raise

    def give_back(self, wire: Wire) -> None:
        """It is free again. Where one has broken, the others are not trusted any more."""
        if wire.broken:
            self._hang_up()
        elif len(self._idle) >= self._kept:
            wire.close()
        else:
            self._idle.append(wire)
        if self._closed:  # looked at last: the end may have come meanwhile
            self._hang_up()
        self._permits.give_back()

    def count(self) -> Connections:
        """How many there are now."""
        return Connections(self._permits.taken(), len(self._idle), self._most)

    def close(self) -> None:
        """Let go of those that nobody has; the others are closed when they come back."""
        self._closed = True
        self._hang_up()

    def _hang_up(self) -> None:
        while self._idle:
            try:
                wire = self._idle.pop()
            except IndexError:  # another thread was quicker
                return
            wire.close()
