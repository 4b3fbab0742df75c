"""Serves one WSGI application on a listening socket that other processes may share.

The main thread accepts connections, ends those that have been idle for too long or whose place a
new one needs, and waits for a signal to stop; a pool of threads does the rest.

Each turn of the main thread's loop is a heartbeat for the supervisor. It shows that the interpreter
runs, that connections are accepted, and that requests finish: while as many as may run at once have
all run for longer than any request may, there is no heartbeat.

A process with more connections than another one pauses before it accepts, so that the other one
accepts first: the kernel would not spread them evenly.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Final

from moorage.http.transport.connection import Connection, SharedState
from moorage.http.transport.limits import OWN_FILES
from moorage.http.transport.thread_pool import ThreadPool
from moorage.http.transport.wsgi_environ import own_address

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Hashable
    from types import FrameType
    from wsgiref.types import WSGIEnvironment

_log = logging.getLogger(__name__)

_ROUND_SECONDS: Final = 0.5
"""How often connections that have been idle for too long are looked for."""
_TICK: Final = 0.02
_PAUSE_SECONDS: Final = 0.002
"""One pause before accepting, while another worker has fewer connections."""
_MOST_PAUSES: Final = 10
"""Pauses before one accept, at most; one for each connection that another has fewer."""
_ROOM_PER_CLOSE: Final = 100
"""One of so many idle connections is closed at a time: finding the oldest looks at all."""
_QUIET_SECONDS: Final = 0.3
"""How long nothing must run before a stopping server leaves its connections."""
_IDLE_BEFORE_CLOSE_SECONDS: Final = 3.0
"""How long a connection must have been without a request before one that leaves closes it."""
_SIGNALS_AT_ONCE: Final = 64


def serve(
    state: SharedState,
    descriptor: int,
    *,
    tls: ssl.SSLContext | None = None,
    on_serving: Callable[[], None] = lambda: None,
    is_news: Callable[[Hashable], bool] = lambda _thing: True,
) -> None:
    """Serve until SIGTERM or SIGHUP; requests that run then are answered first.

    SIGTERM ends it soon: a client that holds a connection without a request does not delay it.
    SIGHUP is for one whose successor serves already: it takes no more connections, says in its next
    answer on each that it is the last one, and ends when all are closed; those that stay without a
    request for some seconds are closed by then. SIGTERM still ends it soon meanwhile.

    `descriptor` is a non-blocking listening TCP socket, closed at the signal to stop. Threads are
    started on demand. With `tls` it speaks HTTPS. `on_serving` is called once connections are
    accepted. `is_news` says whether a repeated condition is logged. Must be called in the main
    thread.
    """
    stop_signals = _stop_signals()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor to act on
    pool = ThreadPool(state.limits.threads)
    with socket.socket(fileno=descriptor) as listener:
        acceptor = Acceptor(listener, state, pool, tls, is_news)
        on_serving()
        acceptor.accept_until(stop_signals)
        drains = signal.SIGHUP in os.read(stop_signals, _SIGNALS_AT_ONCE)
        state.ending = True
        if not drains:
            acceptor.accept_pending()
    if drains:
        _wait_for_clients(pool, stop_signals, state)
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _QUIET_SECONDS or not pool.stop_if_idle():
        state.status.beat()
        time.sleep(_TICK)
        if pool.busy:
            quiet_since = time.monotonic()


def _wait_for_clients(pool: ThreadPool, stop_signals: int, state: SharedState) -> None:
    """Return when every connection has ended, or a signal has come.

    A connection is ended by its next answer. One on which nothing comes for some seconds is closed:
    a client that asks rarely is not likely to ask in that very instant, and sees that it is closed
    before it asks again.
    """
    waits = select.poll()
    waits.register(stop_signals, select.POLLIN)
    began = time.monotonic()
    while len(pool) and not waits.poll(_TICK * 1000):
        now = time.monotonic()
        state.status.beat()
        if now - began > _IDLE_BEFORE_CLOSE_SECONDS:
            pool.make_room(0, now, unused_for=_IDLE_BEFORE_CLOSE_SECONDS)
        pool.end_late_ones(now)


class Acceptor:
    """Accepts connections, as many as there is room for."""

    def __init__(
        self,
        listener: socket.socket,
        state: SharedState,
        pool: ThreadPool,
        tls: ssl.SSLContext | None,
        is_news: Callable[[Hashable], bool] = lambda _thing: True,
    ) -> None:
        self._listener = listener
        self._state = state
        self._pool = pool
        self._tls = tls
        self._is_news = is_news
        self._room = _room_for(state.limits.connections)
        host, port = listener.getsockname()[:2]
        self._common: WSGIEnvironment = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": host,
            "SERVER_PORT": str(port),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http" if tls is None else "https",
            "wsgi.errors": sys.stderr,
            "wsgi.input_terminated": True,
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        }

    def accept_until(self, stop_signals: int) -> None:
        """Accept connections, and end late ones, until this descriptor is readable."""
        waits = select.poll()
        waits.register(stop_signals, select.POLLIN)
        waits.register(self._listener, select.POLLIN)
        status = self._state.status
        status.set_accepting(accepts=True)
        waited, pauses, due = False, 0, 0.0
        while True:
            ready = dict(waits.poll(_ROUND_SECONDS * 1000))
            if stop_signals in ready:
                status.set_accepting(accepts=False)
                return
            now = time.monotonic()
            status.set_connections(len(self._pool))
            if not ready:
                waited, pauses = False, 0
            elif len(self._pool) < self._room:
                waited = False
                if pauses < min(status.excess_connections(len(self._pool)), _MOST_PAUSES):
                    pauses += 1
                    time.sleep(_PAUSE_SECONDS)
                else:
                    pauses = 0
                    self._accept()
            else:
                if waited:  # or another worker might have had a place
                    self._pool.make_room(self._room - self._room // _ROOM_PER_CLOSE - 1, now)
                waited = True
                time.sleep(_TICK)
            if now >= due:
                due = now + _ROUND_SECONDS
                self._pool.end_late_ones(now)
                self._beat(now)

    def _beat(self, now: float) -> None:
        """Count a heartbeat, unless all threads are stuck."""
        limits = self._state.limits
        if not self._pool.are_stuck(limits.running, limits.stuck_seconds, now):
            self._state.status.beat()
        elif self._is_news("stuck"):
            _log.error(
                "worker is stuck: %d requests have run for over %g s; the supervisor replaces it",
                limits.running,
                limits.stuck_seconds,
            )

    def accept_pending(self) -> None:
        """Accept the connections that the kernel has already completed."""
        while len(self._pool) < self._room and self._accept():
            pass

    def _accept(self) -> bool:
        """Accept one connection; return whether there may be another."""
        try:
            accepted, address = self._listener.accept()
        except ConnectionError:  # the client left
            return True
        except BlockingIOError:  # another worker was quicker
            return False
        except OSError as error:  # descriptors or memory are short; it goes on waiting meanwhile
            if self._is_news(error.errno):
                _log.error("worker cannot accept connections: %s", error)
            time.sleep(_TICK)
            return False
        if self._has_enough(address[0]):
            accepted.close()
            return True
        try:
            accepted.setblocking(False)  # noqa: FBT003 - the standard library's signature
            if self._tls is not None:
                accepted.getpeername()  # TLS asks too, and leaves half a socket where there is none
                accepted = self._tls.wrap_socket(
                    accepted, server_side=True, do_handshake_on_connect=False
                )
            common = {**self._common, "REMOTE_ADDR": address[0], "REMOTE_PORT": str(address[1])}
            self._pool.take(accepted.fileno(), Connection(accepted, common, self._state))
        except OSError:  # it was reset while it waited, or the system has no room for it
            accepted.close()
        return True

    def _has_enough(self, address: str) -> bool:
        """Whether the address has as many connections as it may have."""
        limits = self._state.limits
        if limits.per_address is None or self._pool.connections_from(address) < limits.per_address:
            return False
        peer = own_address(address)
        if any(peer in ipaddress.ip_network(proxy) for proxy in limits.proxies):
            return False
        if self._is_news(("address", address)):
            _log.warning(
                "connection from %s refused: the address has %d already",
                address,
                limits.per_address,
            )
        return True


def _stop_signals() -> int:
    """A descriptor from which SIGTERM and SIGHUP can be read as bytes.

    The handler itself must do nothing: it runs between any two steps of the main thread, and would
    wait for ever for the lock of an `Event` that the main thread is about to wait for.
    """
    stop_signals, teller = os.pipe()
    os.set_blocking(teller, False)
    signal.set_wakeup_fd(teller, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, _ignore_signal)
    signal.signal(signal.SIGHUP, _ignore_signal)
    return stop_signals


def _ignore_signal(_number: int, _frame: FrameType | None) -> None:
    """A signal handler that does nothing: the descriptor reports the signal."""


def _room_for(connections: int) -> int:
    """How many connections there may be: fewer than configured where descriptors are short."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = connections if soft == resource.RLIM_INFINITY else min(connections, soft - OWN_FILES)
    if room < connections:
        _log.warning(
            "open-file limit allows %d connections instead of the configured %d", room, connections
        )
    return max(room, 1)
