"""Detects a database server that no longer answers, and fails all that wait for it.

A server that is stopped, or behind a firewall that drops packets, closes no connection: whoever
waits for an answer would wait on. But a statement that takes long is no sign of that: it may wait
for a lock. So one thread per process looks at the connections on which somebody waits. Where
that lasts, and nobody was answered meanwhile, it asks the server by a connection of its own.
Without an answer to that either, it breaks the connections that wait, and until the server answers
again nobody even tries: callers that come one after the other must not each find out by themselves.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time
from operator import itemgetter
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias
from weakref import WeakSet, finalize

from moorage.domain.errors import Busy
from moorage.store.database import retry

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_log = logging.getLogger(__name__)

LONGEST_SILENCE: Final = 60.0
"""Seconds without an answer after which a connection counts as lost though the server answers on
others. The longest wait of a statement is that for a lock, half as long."""
_ROUND: Final = 0.5
"""Seconds between two looks."""
_SUSPICIOUS: Final = 2.0
"""Seconds without an answer after which the server is asked whether it is there."""
_SHORTEST_PROBE: Final = 2.0


Server: TypeAlias = tuple[str, int] | None
"""Where a server listens; None: wherever a URL says."""


class Wait:
    """The waits for answers on one connection, one after the other.

    Entered while somebody waits. `cut` breaks the connection, so that he gets an error at once.
    """

    __slots__ = ("__weakref__", "_descriptor", "answered_at", "lasts", "server", "since")

    def __init__(self, descriptor: int | None = None, server: Server = None) -> None:
        """`descriptor` is the connection's socket; it is duplicated. None: it cannot be cut."""
        self.server = server
        self.since: float | None = None
        """When the present wait began, on the monotonic clock."""
        self.answered_at = 0.0
        self.lasts = False
        """Whether a statement may take as long as it likes, as a migration does."""
        self._descriptor = None if descriptor is None else os.dup(descriptor)
        if self._descriptor is not None:
            finalize(self, os.close, self._descriptor)

    def __enter__(self) -> None:
        self.since = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self.since = None
        if kind is None:
            self.answered_at = time.monotonic()

    def cut(self) -> None:
        """Break the connection, for whoever waits on it."""
        if self._descriptor is None:
            return
        # A duplicate of the number: the driver may close its own at any moment. TLS is not told.
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._descriptor)) as wire:
            wire.shutdown(socket.SHUT_RDWR)


class Probe(Protocol):
    """Asks the server whether it is there."""

    def __call__(self, seconds: float, server: Server, /) -> bool:
        """Whether it says anything within so many seconds; a refusal is an answer too."""


class HangDetector:
    """See the module. Safe for threads."""

    def __init__(self, probe: Probe, *, leave: Callable[[Server], None] | None = None) -> None:
        """With `leave` there are several servers, and it is told to go to the next.

        Then nobody is refused: whoever waited tries the next one.
        """
        self._probe = probe
        self._leave = leave
        self._waits: WeakSet[Wait] = WeakSet()
        self._changing = Lock()
        self._stop = Event()
        self._thread: Thread | None = None
        self._hangs = False

    def watch(self, wait: Wait) -> None:
        """Look after the waits on a connection from now on."""
        with self._changing:
            self._waits.add(wait)
            self._begin()

    def declare(self, server: Server = None) -> None:
        """Somebody found out that a server does not answer."""
        with self._changing:
            told, self._hangs = self._hangs, self._leave is None
            waits = list(self._waits)
            self._begin()
        if self._leave is not None:
            self._leave(server)
        elif not told:
            _log.error("the database does not answer: requests are refused until it does")
        for wait in waits:
            if wait.since is not None and (self._leave is None or wait.server == server):
                wait.cut()

    def refuse(self) -> None:
        """Return unless the server is known not to answer.

        Raises:
            Busy: it is.
        """
        if self._hangs:
            raise Busy("the database is away", retry_after=2)

    def close(self) -> None:
        """Look no more."""
        self._stop.set()

    def _begin(self) -> None:
        if self._thread is None and not self._stop.is_set():
            self._thread = Thread(target=self._work, name="hang-detector", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while not self._stop.wait(_ROUND):
            if self._hangs:
                self._look_for_its_return()
            else:
                self._look()

    def _look_for_its_return(self) -> None:
        if not self._probe(retry.AWAY, None):
            self.declare()  # who began to wait just before the first time
        elif not self._stop.is_set():
            self._hangs = False
            _log.warning("the database answers again")

    def _look(self) -> None:
        with self._changing:
            waits = list(self._waits)
        began = [(since, wait) for wait in waits if (since := wait.since) is not None]
        if not began:
            return
        now = time.monotonic()
        oldest, first = min(began, key=itemgetter(0))
        if now - oldest < _SUSPICIOUS:
            return
        answered = max(wait.answered_at for wait in waits if wait.server == first.server)
        if answered < now - _SUSPICIOUS:
            left = oldest + retry.AWAY - now
            if not self._probe(max(left, _SHORTEST_PROBE), first.server):
                self.declare(first.server)
                return
        for since, wait in began:
            if now - since > LONGEST_SILENCE and not wait.lasts and wait.since == since:
                _log.warning("a statement got no answer for %g s: cut off", LONGEST_SILENCE)
                wait.cut()
