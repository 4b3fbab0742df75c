"""Threads that serve connections as epoll reports them ready.

All of them wait at one epoll, each connection armed for one event: the thread that is woken has the
connection to itself, serves it without handing anything on, and arms it again. The system wakes
the thread that waited last, whose memory is warmest. Before a thread begins to serve, it sees to it
that another one waits.

A thread that was the only one at work polls the connection that it served 5 ms before it returns
to epoll: most clients that have an answer ask again, and send head and body in two pieces, each of
which would wake a second thread. If by then all others are at work, another client waits as long.

Connections that have sent requests ahead have their turns one after the other, in one thread, which
rests after each: so many as may send more than they read, all others are served by the other
threads, and the processor is theirs for most of the time. Those with large
bodies receive them at a pace that they share (`BodyQueue`), and those that ask too much are read
again after a pause (`PauseQueue`).
"""

from __future__ import annotations

import heapq
import logging
import select
import threading
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from moorage.http.transport.body_queue import BodyQueue
from moorage.http.transport.connection import WaitFor
from moorage.http.transport.pause_queue import PauseQueue

if TYPE_CHECKING:
    from moorage.http.transport.connection import Connection

_log = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 30.0
"""How long a thread waits for work while others wait too, before it ends."""
_UNUSED_SECONDS: Final = 1.0
"""How long a connection is left alone whose next request may be on its way."""
_REST: Final = 3.0
"""How long requests sent ahead rest after a turn, as a multiple of what that took."""
_LONGEST_REST: Final = 0.05
"""The same in seconds, at most."""
_STAY_SECONDS: Final = 0.005
"""How long a thread stays with a connection for its next request."""


class ThreadPool:
    """A bounded pool of threads, started on demand, and the connections they serve."""

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._events = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._addresses: Counter[str] = Counter()
        """How many connections come from each."""
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting = 0
        """Those at the epoll."""
        self._staying = 0
        """Those that stay with a connection that rests."""
        self._ahead: deque[int] = deque()
        """Connections with requests sent ahead, which wait for a turn."""
        self._serves_ahead = False
        """Whether a thread serves one of them."""
        self._bodies = BodyQueue(lambda one: self._events.modify(one, WaitFor.READABLE))
        self._pauses = PauseQueue(lambda one: self._events.modify(one, WaitFor.READABLE))
        self._over = False
        """Whether the pool has stopped."""
        self._start_thread()

    def __len__(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    def connections_from(self, address: str) -> int:
        """How many connections come from an address."""
        return self._addresses[address]

    @property
    def busy(self) -> bool:
        """Whether any request is running, or any body or answer under way."""
        if self._waiting + self._staying < self._threads:
            return True
        return any(connection.is_used for connection in list(self._connections.values()))

    def stop_if_idle(self) -> bool:
        """Stop serving if nothing is under way; return whether it has stopped.

        What a client sends from then on is not received: the client sees the connection reset.
        """
        with self._lock:
            self._over = not self.busy
            return self._over

    def take(self, descriptor: int, connection: Connection) -> None:
        """Serve a connection until it is over.

        Raises:
            OSError: epoll cannot watch another connection; it is closed.
        """
        self._connections[descriptor] = connection
        with self._lock:
            self._addresses[connection.address] += 1
        try:
            self._events.register(descriptor, WaitFor.READABLE)
        except OSError:
            self._forget(descriptor)
            connection.close()
            raise

    def end_late_ones(self, now: float) -> None:
        """End connections that have been idle too long at this monotonic instant."""
        for connection in list(self._connections.values()):
            connection.end_if_late(now)

    def are_stuck(self, number: int, seconds: float, now: float) -> bool:
        """Whether so many threads have been in one turn for longer than this."""
        turns = (connection.turn_seconds(now) for connection in list(self._connections.values()))
        return sum(lasts > seconds for lasts in turns) >= number

    def make_room(self, keep: int, now: float, *, unused_for: float = _UNUSED_SECONDS) -> None:
        """End the connections that have been idle for longest, until at most `keep` are left.

        One that is in the middle of anything is not among them, nor one that had a request in the
        last `unused_for` seconds. Those that are ending already count as gone: asked again before
        they are, it ends no others.
        """
        staying = [each for each in list(self._connections.values()) if not each.is_ending]
        longest = heapq.nlargest(
            max(len(staying) - keep, 0), staying, key=lambda each: each.idle_seconds_at(now)
        )
        for connection in longest:
            if connection.idle_seconds_at(now) > unused_for:
                connection.end_idle()

    def _start_thread(self) -> None:
        """Start one more thread; it counts as waiting at once."""
        self._threads += 1
        self._waiting += 1
        try:
            threading.Thread(target=self._work, name="requests", daemon=True).start()
        except RuntimeError:  # the system has none left: those there are go on
            self._threads -= 1
            self._waiting -= 1
            if not self._threads:
                raise
            _log.warning("the system allows only %d request threads", self._threads)

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
                        self._start_thread()
                self._serve(descriptor)
                while (ahead := self._next_ahead()) is not None:
                    began = time.monotonic()
                    self._serve(ahead)
                    time.sleep(min(_REST * (time.monotonic() - began), _LONGEST_REST))
                    self._serves_ahead = False
                with self._lock:
                    self._waiting += 1

    def _next_ahead(self) -> int | None:
        """The next connection with requests sent ahead; None while another thread serves one."""
        with self._lock:
            if self._serves_ahead or not self._ahead:
                return None
            self._serves_ahead = True
            return self._ahead.popleft()

    def _may_poll(self) -> bool:
        """Whether to stay with a connection: only as the single busy thread, counted as staying."""
        with self._lock:
            alone = self._waiting == self._threads - 1 > 0
            self._staying += alone
            return alone

    def _has_next_request(self, connection: Connection) -> bool:
        """Poll a connection; return whether it has data. The thread stops counting as staying."""
        asks = False
        try:
            asks = connection.wait(_STAY_SECONDS)
        finally:
            with self._lock:
                self._staying -= 1
                asks = asks and not self._over
        return asks

    def _is_spare(self) -> bool:
        """Whether this thread may end because another one waits; if so it is no longer counted."""
        with self._lock:
            if self._waiting == 1:
                return False
            self._waiting -= 1
            self._threads -= 1
            return True

    def _serve(self, descriptor: int) -> None:
        """Serve a connection's turn. An error is logged and ends the connection, not the thread."""
        connection = self._connections[descriptor]
        try:
            after = connection.turn()
            while after is WaitFor.READABLE and self._may_poll():
                if not self._has_next_request(connection):
                    break
                after = connection.turn()
            if after is WaitFor.A_PIECE:
                self._bodies.wait(descriptor, connection.body_began, connection.received)
                return
            if after is WaitFor.A_PAUSE:
                self._pauses.wait(descriptor)
                return
            if after is WaitFor.A_TURN:
                self._ahead.append(descriptor)
                return
            if after:
                self._events.modify(descriptor, after)
                return
        except BaseException:  # noqa: BLE001 - the last line of defence; the log has all of it
            _log.exception("a connection ended with an unexpected error")
        # Once it is closed, its number may be the next connection's.
        self._forget(descriptor)
        try:
            # Closing would do, were there not a child just forked that has it open still.
            self._events.unregister(descriptor)
            connection.close()
        except BaseException:  # noqa: BLE001 - as above
            _log.exception("closing a connection raised an error")

    def _forget(self, descriptor: int) -> None:
        address = self._connections.pop(descriptor).address
        with self._lock:
            self._addresses[address] -= 1
            if not self._addresses[address]:
                del self._addresses[address]
