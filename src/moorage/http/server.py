"""Granian, told to serve one WSGI application on a socket it is given. Only here is it known.

The supervisor opens the listening socket and every HTTP worker inherits it. Granian's own server
would open one per worker with SO_REUSEPORT: a second `moorage serve` on the same port would then
share it silently, and connections would be lost while a worker is replaced. Its command would also
add a process of its own, and copy the environment (where `HTTP_X_AUTH_TOKEN` would become a header)
into every request. So its worker is driven directly; the locked version and the process tests
guard that use.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import sys
import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from moorage.http import connections, supervisor
from moorage.http.slow_bodies import SlowBodies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from moorage.http.config import Tls, Wire
    from moorage.http.wsgi import Application, Environ, ExcInfo, Headers

# Typed as anything: the stubs of these private parts lag behind them.
_granian: Any = import_module("granian._granian")
_futures: Any = import_module("granian._futures")
_loops: Any = import_module("granian._loops")
_http: Any = import_module("granian.http")

_log = logging.getLogger(__name__)

_OWN_FILES: Final = 512
"""Descriptors a worker needs beside its connections: databases, solvers, files."""
_IDLE_THREAD_SECONDS: Final = 30
_LEAST_TLS: Final = "tls1.2"
_TICK: Final = 0.02
_QUIET_SECONDS: Final = 0.3
"""How long nothing must run before a server that was told to stop leaves its connections."""


def serve(application: Application, descriptor: int, *, wire: Wire, tls: Tls | None = None) -> None:
    """Serve until SIGTERM; requests that run then are finished first, and their answers sent.

    A client that holds a connection without a request does not delay the end.
    `descriptor` is a listening TCP socket; `wire` has the bounds of connections and threads.
    Threads are made as they are needed. With `tls` it speaks HTTPS. Must be called in the main
    thread.
    """
    stop = _granian.WorkerSignal()
    stopped = threading.Event()
    stop.add_cb(stopped.set)
    told = _when_told()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor to act on
    holder = _granian.SocketHolder(descriptor, False, supervisor.BACKLOG)  # noqa: FBT003 - positional in Rust
    worker = _granian.WSGIWorker(
        1,
        (None, holder),
        None,
        blocking_threads=wire.threads,
        py_threads=wire.threads,
        py_threads_idle_timeout=_IDLE_THREAD_SECONDS,
        backpressure=_room_for(wire.connections),
        http_mode="1",
        http1_opts=_http.HTTP1Settings(header_read_timeout=int(wire.idle_seconds * 1000)),
        metrics=(None, None),
        **_encryption(tls),
    )
    bodies = SlowBodies(wire.body_seconds, wire.idle_seconds)
    bodies.watch()
    bridge = _Bridge(application, bodies)
    scheduler = _futures._new_cbscheduler(  # noqa: SLF001 - see the module's docstring
        _loops.loops.get("asyncio"), bridge, impl_asyncio=True
    )
    worker.serve_mtr(scheduler, _loops.loops.get("asyncio"), stop)
    os.read(told, 1)
    stop.set()
    quiet_since = time.monotonic()
    while not stopped.wait(_TICK):
        now = time.monotonic()
        if bodies.running:
            quiet_since = now
        elif now - quiet_since > _QUIET_SECONDS:
            if not connections.sending():
                return
            quiet_since = now


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


def _encryption(tls: Tls | None) -> dict[str, Any]:
    return {
        "ssl_enabled": tls is not None,
        "ssl_cert": None if tls is None else tls.cert,
        "ssl_key": None if tls is None else tls.key,
        "ssl_key_password": None,
        "ssl_protocol_min": _LEAST_TLS,
        "ssl_ca": None,
        "ssl_crl": [],
        "ssl_client_verify": False,
    }


class _Bridge:
    """From Granian's call to WSGI's."""

    def __init__(self, application: Application, bodies: SlowBodies) -> None:
        self._application = application
        self._bodies = bodies
        self._common: Environ = {
            "SCRIPT_NAME": "",
            "wsgi.version": (1, 0),
            "wsgi.errors": sys.stderr,
            "wsgi.input_terminated": True,
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        }

    def __call__(self, protocol: Any, scope: Environ) -> int:  # noqa: ANN401 - a Rust object
        begun = _Begun()
        scope.update(self._common)  # which has nothing that Granian would say of a request
        self._bodies.begin(scope)
        try:
            chunks = self._application(scope, begun)
            if isinstance(chunks, list) and len(chunks) <= 1:
                body = chunks[0] if chunks else b""
                protocol.response_bytes(begun.status, begun.headers, body)
            else:
                protocol.response_iter(begun.status, begun.headers, _Parts(chunks))
        finally:
            self._bodies.end()
        return begun.status


class _Begun:
    """WSGI's `start_response`, keeping what it is told."""

    __slots__ = ("headers", "status")

    def __init__(self) -> None:
        self.status = 500
        self.headers: Headers = []

    def __call__(
        self,
        status: str,
        headers: Headers,
        exc_info: ExcInfo | None = None,  # noqa: ARG002 - PEP 3333
        /,
    ) -> Any:  # noqa: ANN401 - the write callable, which the kernel never uses
        self.status = int(status[:3])
        self.headers = headers
        return None


class _Parts:
    """A streamed body as Granian takes it: `__next__` and `close`."""

    def __init__(self, chunks: Any) -> None:  # noqa: ANN401 - any iterable of bytes
        self._chunks = chunks
        self._rest: Iterator[bytes] = iter(chunks)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._rest)

    def close(self) -> None:
        """Called when the body is sent or the client has left."""
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()
