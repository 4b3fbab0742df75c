"""Serves one WSGI application on a socket that the supervisor opened (ADR-0016).

Every HTTP worker inherits that socket: with one of their own each (SO_REUSEPORT) a second `moorage
serve` on the same port would share it silently, and connections would be lost while a worker is
replaced. The main thread accepts connections, ends those that have been idle for too long or whose
place a newcomer needs, and waits to be told to stop; a crew of threads does the rest.
"""

from __future__ import annotations

import logging
import os
import resource
import select
import signal
import socket
import ssl
import sys
import time
from typing import TYPE_CHECKING, Final

from moorage.http.transport.connection import Connection, Service
from moorage.http.transport.crew import Crew
from moorage.logs import Lasting

if TYPE_CHECKING:
    from types import FrameType

    from moorage.http.config import Tls, Wire
    from moorage.http.wsgi import Application, Environ

_log = logging.getLogger(__name__)
_lasting: Final = Lasting()

_OWN_FILES: Final = 512
"""Descriptors a worker needs beside its connections: databases, solvers, files."""
_ROUND_SECONDS: Final = 0.5
"""How often connections that have been idle for too long are looked for."""
_TICK: Final = 0.02
_YIELDING: Final = 100
"""Of so many places one is made free at a time: looking for the oldest costs a look at all."""
_QUIET_SECONDS: Final = 0.3
"""How long nothing must run before a server that was told to stop leaves its connections."""


def serve(application: Application, descriptor: int, *, wire: Wire, tls: Tls | None = None) -> None:
    """Serve until SIGTERM; requests that run then are finished first, and their answers sent.

    A client that holds a connection without a request does not delay the end.
    `descriptor` is a listening TCP socket, closed as soon as it is told to stop; `wire` has the
    bounds of connections and threads. Threads are made as they are needed. With `tls` it speaks
    HTTPS. Must be called in the main thread.

    Raises:
        OSError: the certificate or its key cannot be used.
    """
    told = _when_told()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor to act on
    service = Service(application, wire)
    crew = Crew(wire.threads)
    with socket.socket(fileno=descriptor) as listener:
        door = _Door(listener, service, crew, None if tls is None else _context(tls))
        door.admit_until(told)
        service.ending = True
        door.admit_waiting()
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _QUIET_SECONDS or not crew.leave():
        time.sleep(_TICK)
        if crew.busy:
            quiet_since = time.monotonic()


class _Door:
    """Lets connections in, as many as there is room for."""

    def __init__(
        self, listener: socket.socket, service: Service, crew: Crew, tls: ssl.SSLContext | None
    ) -> None:
        self._listener = listener
        self._service = service
        self._crew = crew
        self._tls = tls
        self._room = _room_for(service.wire.connections)
        host, port = listener.getsockname()[:2]
        self._common: Environ = {
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

    def admit_until(self, told: int) -> None:
        """Let connections in, and late ones out, until this descriptor can be read."""
        waits = select.poll()
        waits.register(told, select.POLLIN)
        waits.register(self._listener, select.POLLIN)
        waited, due = False, 0.0
        while True:
            ready = dict(waits.poll(_ROUND_SECONDS * 1000))
            if told in ready:
                return
            now = time.monotonic()
            if not ready or len(self._crew) < self._room:
                waited = False
                if ready:
                    self._admit()
            else:
                if waited:  # or another worker might have had a place
                    self._crew.make_room(self._room // _YIELDING + 1, now)
                waited = True
                time.sleep(_TICK)
            if now >= due:
                due = now + _ROUND_SECONDS
                self._crew.end_late_ones(now)

    def admit_waiting(self) -> None:
        """Let those in that the system has told already that they are connected."""
        while len(self._crew) < self._room and self._admit():
            pass

    def _admit(self) -> bool:
        """Let one in; whether there may be another."""
        try:
            accepted, address = self._listener.accept()
        except ConnectionError:  # the client left
            return True
        except BlockingIOError:  # another worker was quicker
            return False
        except OSError as error:  # descriptors or memory are short; it goes on waiting meanwhile
            if _lasting.is_news(error.errno):
                _log.error("connections cannot be accepted: %s", error)
            time.sleep(_TICK)
            return False
        try:
            accepted.setblocking(False)  # noqa: FBT003 - the standard library's signature
            if self._tls is not None:
                accepted.getpeername()  # TLS asks too, and leaves half a socket where there is none
                accepted = self._tls.wrap_socket(
                    accepted, server_side=True, do_handshake_on_connect=False
                )
            common = {**self._common, "REMOTE_ADDR": address[0], "REMOTE_PORT": str(address[1])}
            self._crew.take(accepted.fileno(), Connection(accepted, common, self._service))
        except OSError:  # it was reset while it waited, or the system has no room for it
            accepted.close()
        return True


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(tls.cert, tls.key)
    return context


def _when_told() -> int:
    """A descriptor that can be read once SIGTERM has come.

    The handler itself must do nothing: it runs between any two steps of the main thread, and would
    wait for ever for the lock of an `Event` that the main thread is about to wait for.
    """
    told, teller = os.pipe()
    os.set_blocking(teller, False)
    signal.set_wakeup_fd(teller, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, _nothing)
    return told


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal that has already been told through the descriptor."""


def _room_for(connections: int) -> int:
    """How many connections there may be: fewer than asked for where descriptors are short."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = connections if soft == resource.RLIM_INFINITY else min(connections, soft - _OWN_FILES)
    if room < connections:
        _log.warning("the limit on open files allows %d connections, not %d", room, connections)
    return max(room, 1)
