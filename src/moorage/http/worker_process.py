"""The HTTP worker process: serves the application on the socket inherited from the supervisor.

All workers inherit one socket (ADR-0024): with one of their own each (SO_REUSEPORT) a second
`moorage serve` on the same port would share it silently, and connections would be lost while a
worker is replaced. Heartbeats and counts go to memory that all processes share.
"""

from __future__ import annotations

import ssl
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from moorage import logs
from moorage.http import child_main
from moorage.http.config import Tls
from moorage.http.process_status import Column, ProcessStatus, WorkerStatus, alone
from moorage.http.transport import server
from moorage.http.transport.connection import SharedState
from moorage.http.transport.limits import ConnectionLimits
from moorage.http.transport.response_writer import CommonHeaders
from moorage.logs import Lasting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.http.process_status import Row
    from moorage.http.wsgi import Application

_lasting: Final = Lasting()
_SERVER: Final = "moorage"
"""The value of the `Server` header."""
_NEW: Final = 10_000
"""Objects more than before, until the collector looks for cycles among them."""


def main(config: Mapping[str, Any]) -> None:
    """Serve until SIGTERM or SIGHUP.

    `config` has `application` (`module:function` that makes the WSGI application from
    `settings` and the worker's `number`), `settings`, `number`, `listener` (descriptor of a
    listening socket), `ready` (descriptor on which a byte says that it serves), `limits` (fields of
    `ConnectionLimits`), `tls` (`cert` and `key`, or None), `status` (descriptor of
    `ProcessStatus`), `log` (arguments of `logs.configure`).
    """
    logs.configure(**config["log"])
    module, _, name = config["application"].partition(":")
    make: Callable[[Mapping[str, Any]], Application] = getattr(import_module(module), name)
    application = make({**config["settings"], "worker": str(config["number"])})
    # Requests make few cycles, but thousands of objects: looking for those each 700 new ones (as
    # Python 3.11 does) takes a fiftieth of a small request's time.
    child_main.collect_seldom(_NEW)
    tls = Tls(**config["tls"]) if config["tls"] else None
    status = ProcessStatus(config["status"])
    serve(
        application,
        config["listener"],
        limits=ConnectionLimits(**config["limits"]),
        tls=tls,
        on_serving=partial(child_main.report, config["ready"]),
        status=WorkerStatus(status.worker(config["number"]), status.workers),
    )


def serve(
    application: Application,
    descriptor: int,
    *,
    limits: ConnectionLimits,
    tls: Tls | None = None,
    on_serving: Callable[[], None] = lambda: None,
    status: WorkerStatus | None = None,
) -> None:
    """Serve until SIGTERM or SIGHUP (`transport.server.serve` says more).

    Raises:
        OSError: the certificate or its key cannot be used.
    """
    shared_status = SharedStatus(status or WorkerStatus(alone()))
    server.serve(
        SharedState(application, limits, shared_status, CommonHeaders(_SERVER)),
        descriptor,
        tls=None if tls is None else _context(tls),
        on_serving=on_serving,
        is_news=_lasting.is_news,
    )


class SharedStatus:
    """A worker's row of the shared memory, compared with the rows of other workers."""

    def __init__(self, status: WorkerStatus) -> None:
        self._own: Row = status.own
        self._others = [row for row in status.workers if row is not status.own]
        self._accepting: list[Row] = []
        """Rows of the other workers that accepted connections at the last heartbeat."""

    def beat(self) -> None:
        """Count a heartbeat."""
        self._own.add(Column.BEATS)
        self._accepting = [row for row in self._others if row[Column.ACCEPTS]]

    def set_accepting(self, *, accepts: bool) -> None:
        """Report whether connections are accepted."""
        self._own[Column.ACCEPTS] = int(accepts)

    def set_connections(self, number: int) -> None:
        """Report the number of open connections."""
        self._own[Column.CONNECTIONS] = number

    def set_arriving(self, size: int) -> None:
        """Report the bytes buffered of incomplete bodies."""
        self._own[Column.ARRIVING] = size

    def set_unsent(self, size: int) -> None:
        """Report the bytes buffered of answers that clients have not read."""
        self._own[Column.UNSENT] = size

    def body_refused(self) -> None:
        """Count a body refused because others needed its buffer space."""
        self._own.add(Column.BODIES_REFUSED)

    def reader_ended(self) -> None:
        """Count a connection ended because others needed its buffer space."""
        self._own.add(Column.READERS_ENDED)

    def excess_connections(self, connections: int) -> int:
        """How many more connections it has than the worker with the fewest."""
        fewest = (row[Column.CONNECTIONS] for row in self._accepting if row[Column.ACCEPTS])
        return connections - min(fewest, default=connections)


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(tls.cert, tls.key)
    return context
