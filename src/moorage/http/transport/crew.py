"""Threads that give connections their turns, as the system says that they have something to do.

All of them wait at one epoll, each connection armed for one event: whoever is woken has the
connection to itself, serves it without handing anything on, and arms it again. The system wakes
the thread that waited last, whose memory is warmest. Before a thread begins to serve, it sees to it
that another one waits.

A thread that was the only one at work stays a moment with the connection that it served: most
clients that have an answer ask again. The epoll would wake a second thread for each further piece
of a request that comes before the first is at it, and clients send head and body in two. If by
then all others are at work, whoever else comes waits for that moment.
"""

from __future__ import annotations

import heapq
import logging
import select
import threading
from typing import TYPE_CHECKING, Final

from moorage.http.transport.connection import Next

if TYPE_CHECKING:
    from moorage.http.transport.connection import Connection

_log = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 30.0
"""How long a thread waits for work while others wait too, before it ends."""
_UNUSED_SECONDS: Final = 1.0
"""How long a connection is left alone whose next request may be on its way."""
_STAY_SECONDS: Final = 0.005
"""How long a thread stays with a connection for its next request."""


class Crew:
    """At most so many threads, made as they are needed, and the connections they serve."""

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._events = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting = 0
        """Those at the epoll."""
        self._staying = 0
        """Those that stay with a connection that rests."""
        self._over = False
        """Whether no turn begins any more."""
        self._hire()

    def __len__(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    @property
    def busy(self) -> bool:
        """Whether any request is worked on, or any answer on its way."""
        if self._waiting + self._staying < self._threads:
            return True
        return any(connection.sends for connection in list(self._connections.values()))

    def leave(self) -> bool:
        """Begin nothing more if nothing is being done; whether that is so now.

        What a client sends from then on is not even received: it is told that nobody took it.
        """
        with self._lock:
            self._over = not self.busy
            return self._over

    def take(self, descriptor: int, connection: Connection) -> None:
        """Serve a connection until it is over.

        Raises:
            OSError: the system watches no more of them; it is closed.
        """
        self._connections[descriptor] = connection
        try:
            self._events.register(descriptor, Next.READABLE)
        except OSError:
            del self._connections[descriptor]
            connection.close()
            raise

    def end_late_ones(self, now: float) -> None:
        """End connections that have rested too long at this monotonic instant."""
        for connection in list(self._connections.values()):
            connection.end_if_late(now)

    def make_room(self, places: int, now: float) -> None:
        """End at most so many connections: those that have been without a request for longest.

        One that is in the middle of anything is not among them. Asked again before they are gone,
        it ends no others.
        """
        longest = heapq.nlargest(
            places, list(self._connections.values()), key=lambda each: each.unused(now)
        )
        for connection in longest:
            if connection.unused(now) > _UNUSED_SECONDS:
                connection.end_unused()

    def _hire(self) -> None:
        """One thread more; it counts as waiting at once."""
        self._threads += 1
        self._waiting += 1
        try:
            threading.Thread(target=self._work, name="requests", daemon=True).start()
        except RuntimeError:  # the system has none left: those there are go on
            self._threads -= 1
            self._waiting -= 1
            if not self._threads:
                raise
            _log.warning("the system allows no more than %d threads for requests", self._threads)

    def _work(self) -> None:
        while True:
            found = self._events.poll(_IDLE_SECONDS, 1)
            if not found and self._is_spare():
                return
            for descriptor, _ in found:
                with self._lock:
                    if self._over:
                        return
                    self._waiting -= 1
                    if not self._waiting and self._threads < self._most:
                        self._hire()
                self._serve(descriptor)
                with self._lock:
                    self._waiting += 1

    def _may_stay(self) -> bool:
        """Whether to stay with a connection: if nobody else is at work. It is counted then."""
        with self._lock:
            alone = self._waiting == self._threads - 1 > 0
            self._staying += alone
            return alone

    def _is_asked_again(self, connection: Connection) -> bool:
        """Stay; whether to begin another turn. The thread is not counted any more then."""
        asks = False
        try:
            asks = connection.wait(_STAY_SECONDS)
        finally:
            with self._lock:
                self._staying -= 1
                asks = asks and not self._over
        return asks

    def _is_spare(self) -> bool:
        """Whether this thread may end, for another one waits. It is not counted any more then."""
        with self._lock:
            if self._waiting == 1:
                return False
            self._waiting -= 1
            self._threads -= 1
            return True

    def _serve(self, descriptor: int) -> None:
        """Give a connection its turn. Whatever it raises, the thread goes on."""
        connection = self._connections[descriptor]
        try:
            after = connection.turn()
            while after is Next.READABLE and self._may_stay():
                if not self._is_asked_again(connection):
                    break
                after = connection.turn()
            if after:
                self._events.modify(descriptor, after)
                return
        except BaseException:  # noqa: BLE001 - the last line of defence; the log has all of it
            _log.exception("a connection is ended by an error that nobody foresaw")
        # Once it is closed, its number may be the next connection's.
        del self._connections[descriptor]
        try:
            # Closing would do, were there not a child just forked that has it open still.
            self._events.unregister(descriptor)
            connection.close()
        except BaseException:  # noqa: BLE001 - as above
            _log.exception("the end of a connection raised an error")
