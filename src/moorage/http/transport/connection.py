"""One connection: it takes turns, never two at a time, and says what it waits for after each.

In a turn it receives once, answers the requests whose heads are whole, and sends as much as the
system takes. Only a body that is still coming makes a thread wait, and no longer than it may.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import select
import socket
import ssl
import time
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from moorage.http.transport.body import Body
from moorage.http.transport.incoming import Incoming
from moorage.http.transport.outgoing import Outgoing, Started
from moorage.http.wsgi import status_line

if TYPE_CHECKING:
    from http import HTTPStatus

    from moorage.http.config import Wire
    from moorage.http.transport.incoming import Request
    from moorage.http.wsgi import Application, Environ

_log = logging.getLogger(__name__)

_MOST: Final = 64 * 1024
"""Bytes received at once."""
_LINGER_SECONDS: Final = 2.0
"""How long a client may go on sending what was refused. Were its connection closed before it has
read the answer, the system would throw the answer away."""
_WOULD_WAIT: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Next(IntEnum):
    """What a connection waits for; the values are epoll's, which tells of it once."""

    NOTHING = 0
    """It is over."""
    READABLE = select.EPOLLIN | select.EPOLLONESHOT
    WRITABLE = select.EPOLLOUT | select.EPOLLONESHOT


@dataclass(slots=True)
class Service:
    """What all connections of a process serve."""

    application: Application
    wire: Wire
    ending: bool = False
    """Whether answers from now on are the last ones of their connections."""


class Connection:
    """An accepted socket. `turn` is called by one thread at a time, `end_if_late` by any."""

    __slots__ = (
        "_address",
        "_drains",
        "_due",
        "_ends",
        "_incoming",
        "_outgoing",
        "_poller",
        "_rests",
        "_service",
        "_shakes",
        "_socket",
    )

    def __init__(self, accepted: socket.socket, common: Environ, service: Service) -> None:
        """`accepted` does not block; `common` is what all its requests have in their environ."""
        self._socket = accepted
        self._service = service
        self._address: str = common["REMOTE_ADDR"]
        self._incoming = Incoming(common)
        self._outgoing: Outgoing | None = None
        self._poller: select.poll | None = None
        """Knows the socket, once it was waited for."""
        self._shakes = isinstance(accepted, ssl.SSLSocket)
        """Whether TLS has yet to be agreed on."""
        self._drains = False
        """Whether what comes after the answer is thrown away, until the client ends."""
        self._rests = True
        """Whether no thread is at it."""
        self._ends = False
        """Whether its next answer is its last."""
        self._due = time.monotonic() + service.wire.idle_seconds
        """Until when it may rest."""

    @property
    def sends(self) -> bool:
        """Whether an answer is on its way."""
        return self._outgoing is not None

    def turn(self) -> Next:
        """Do what can be done now."""
        self._rests = False
        try:
            after = self._turn()
        except OSError:  # the client is gone, or does not speak TLS
            after = Next.NOTHING
        # One that is over never rests: its number may be another file's before anybody looks.
        self._rests = after is not Next.NOTHING
        return after

    def close(self) -> None:
        """Hang up."""
        self._incoming.close()
        outgoing, self._outgoing = self._outgoing, None
        try:
            if outgoing is not None:
                outgoing.close()
        finally:
            if isinstance(self._socket, ssl.SSLSocket):
                with contextlib.suppress(OSError, ValueError):  # it is a courtesy
                    self._socket.unwrap()
            self._socket.close()

    def end_if_late(self, now: float) -> None:
        """Let its next turn be the last one if it has rested too long.

        Should that turn just begin: only the way in is shut, so what has come is answered.
        """
        if self._rests and now > self._due:
            self._due = now + _LINGER_SECONDS
            self._ends = True
            self._shut(socket.SHUT_RDWR if self.sends or self._drains else socket.SHUT_RD)

    def unused(self, now: float) -> float:
        """Seconds that it has been between requests at this monotonic instant; 0 if it is not."""
        if not self._rests or self.sends or self._drains or not self._incoming.is_empty:
            return 0
        return now - self._due + self._service.wire.idle_seconds

    def end_unused(self) -> None:
        """As `end_if_late`, but at once and for one that is `unused`; again does nothing more."""
        self._ends = True
        self._shut(socket.SHUT_RD)

    def receive(self) -> bytes | None:
        """What has come: nothing, None; the end, no bytes.

        Raises:
            OSError: the connection broke.
        """
        try:
            return self._socket.recv(_MOST)
        except _WOULD_WAIT:
            return None

    def wait(self, seconds: float) -> bool:
        """Wait until there is something to receive, or so long; whether there is."""
        if self._poller is None:
            self._poller = select.poll()
            self._poller.register(self._socket, select.POLLIN)
        return bool(self._poller.poll(seconds * 1000))

    def tell(self, data: bytes, seconds: float) -> None:
        """Send a few bytes once there is room for all of them, unless there is none for so long.

        Half of them would be taken for the beginning of the answer that follows.
        """
        poller = select.poll()
        poller.register(self._socket, select.POLLOUT)
        if poller.poll(seconds * 1000):
            self._socket.send(data)

    def feed(self, data: bytes) -> bool:
        """Read bytes that came; whether they could be understood."""
        self._incoming.feed(data)
        return self._incoming.refusal is None

    def _turn(self) -> Next:
        if self._shakes and not self._agreed():
            return Next.READABLE
        after = None if self._outgoing is None else self._send(self._outgoing)
        if after is None:
            after = self._drain() if self._drains else self._answer_all()
        return self._read_on() if after is None else after

    def _read_on(self) -> Next:
        """Receive once, and what TLS has of it still, and answer the requests in it."""
        while True:
            data = self.receive()
            if not data:
                return Next.READABLE if data is None else Next.NOTHING
            self._incoming.feed(data)
            after = self._answer_all()
            if after is not None:
                return after
            if not self._undelivered():
                return Next.READABLE

    def _agreed(self) -> bool:
        """Whether TLS is agreed on now.

        Raises:
            OSError: it cannot be.
        """
        assert isinstance(self._socket, ssl.SSLSocket)
        try:
            self._socket.do_handshake()
        except _WOULD_WAIT:  # the little that is sent for it always has room
            return False
        self._shakes = False
        return True

    def _undelivered(self) -> bool:
        """Whether bytes came that the system does not know of any more: TLS has opened them."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _answer_all(self) -> Next | None:
        """Answer what can be understood; what to wait for, or None if the connection goes on."""
        incoming = self._incoming
        while (found := incoming.take()) is not None:
            after = self._answer(*found)
            if after is not None:
                return after
        return None if incoming.refusal is None else self._refuse(incoming.refusal)

    def _answer(self, environ: Environ, request: Request) -> Next | None:
        """Have one request answered; otherwise as `_answer_all`."""
        service, incoming = self._service, self._incoming
        environ["wsgi.input"] = Body(self, request, self._address, service.wire.body_seconds)
        started = Started()
        keeps = request.keeps
        # What the application binds (ids for the log, say) goes with the answer, whichever thread
        # asks for its next part, and stays with no thread.
        context = contextvars.copy_context()
        try:
            chunks = context.run(service.application, environ, started)
        except Exception:  # noqa: BLE001 - no kernel lets one out; an application by itself may
            _log.exception("the application raised an error instead of answering")
            started, chunks, keeps = Started(), (), False
        keeps = keeps and request.complete
        if not incoming.has_more() and (
            service.ending or self._ends or incoming.refusal is not None
        ):
            keeps = False  # those that were received with it are answered first
        self._drains = not request.complete or (request.keeps and not keeps)
        self._outgoing = outgoing = Outgoing(started, chunks, request, context, keeps=keeps)
        return self._send(outgoing)

    def _refuse(self, status: HTTPStatus) -> Next:
        """Answer what is no request."""
        started = Started()
        started(status_line(status), [("content-length", "0")])
        self._drains = True
        context = contextvars.copy_context()
        self._outgoing = outgoing = Outgoing(started, (), None, context, keeps=False)
        return self._send(outgoing) or Next.NOTHING

    def _send(self, outgoing: Outgoing) -> Next | None:
        """Send what the system takes; None once all is sent and the connection goes on."""
        send = self._socket.send
        while True:
            left = outgoing.left
            try:
                sent = send(left)
            except _WOULD_WAIT:
                self._due = time.monotonic() + self._service.wire.idle_seconds
                return Next.WRITABLE
            if sent < len(left):
                outgoing.left = memoryview(left)[sent:]
            elif not outgoing.more():
                break
        self._outgoing = None
        outgoing.close()
        self._due = time.monotonic() + self._service.wire.idle_seconds
        if outgoing.keeps:
            return None
        if not self._drains:
            return Next.NOTHING
        self._due = time.monotonic() + _LINGER_SECONDS
        self._shut(socket.SHUT_WR)
        return self._drain()

    def _drain(self) -> Next:
        """Throw away what comes; a turn's worth, so that nobody keeps a thread with it."""
        data = self.receive()
        return Next.NOTHING if data == b"" else Next.READABLE

    def _shut(self, how: int) -> None:
        """Shut one way or both; of TLS nothing is told, and what is agreed on stays so."""
        with contextlib.suppress(OSError):  # it is over already
            socket.socket.shutdown(self._socket, how)
