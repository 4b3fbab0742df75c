"""One HTTP connection: served in turns, by one thread at a time.

In a turn it receives once, answers one request that is whole, and sends as much as the system
takes; what a client has sent ahead waits for further turns. Nothing makes a thread wait but the
application: a body that is still coming is kept until it is whole, an answer until the client takes
it, both within the bounds of a `BufferLimit`.
"""

from __future__ import annotations

import contextlib
import contextvars
import errno
import io
import logging
import select
import socket
import ssl
import time
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NoReturn

from moorage.http.transport.body_queue import LARGE
from moorage.http.transport.limits import BufferLimit
from moorage.http.transport.request_parser import RequestParser
from moorage.http.transport.response_writer import (
    CommonHeaders,
    ContinueResponse,
    ResponseWriter,
    StartResponse,
)
from moorage.http.transport.server_status import ServerStatus, SingleServerStatus

if TYPE_CHECKING:
    from http import HTTPStatus
    from wsgiref.types import WSGIApplication, WSGIEnvironment

    from moorage.http.transport.limits import ConnectionLimits
    from moorage.http.transport.request_parser import Request

_log = logging.getLogger(__name__)

_MOST: Final = 64 * 1024
"""Bytes received at once."""
_LINGER_SECONDS: Final = 2.0
"""How long a client may go on sending what was refused. Were its connection closed before it has
read the answer, the system would throw the answer away."""
_WOULD_WAIT: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


_TOO_MANY: Final = "429"


class WaitFor(IntEnum):
    """The event a connection waits for; the values are epoll's, armed for one event."""

    NOTHING = 0
    """It is over."""
    A_TURN = -1
    """It has more requests already, which wait until those of other connections had theirs."""
    A_PIECE = -2
    """It receives a large body, and may receive the next piece when that has its pace."""
    A_PAUSE = -3
    """It has just been answered that it asks too much, and may ask again after a pause."""
    READABLE = select.EPOLLIN | select.EPOLLONESHOT
    WRITABLE = select.EPOLLOUT | select.EPOLLONESHOT


@dataclass(slots=True)
class SharedState:
    """What all connections of a process share."""

    application: WSGIApplication
    limits: ConnectionLimits
    status: ServerStatus = field(default_factory=SingleServerStatus)
    common_headers: CommonHeaders = field(default_factory=CommonHeaders)
    """What all answers have in their heads."""
    ending: bool = False
    """Whether answers from now on are the last ones of their connections."""
    arriving: BufferLimit[Connection] = field(init=False)
    """Bodies that are not whole yet."""
    unsent: BufferLimit[Connection] = field(init=False)
    """Answers that clients have not taken yet."""

    def __post_init__(self) -> None:
        limits, status = self.limits, self.status
        self.arriving = BufferLimit(limits.arriving, status.set_arriving, status.body_refused)
        self.unsent = BufferLimit(limits.unsent, status.set_unsent, status.reader_ended)


class IncompleteBody(io.RawIOBase):
    """`wsgi.input` of a request whose body will never be complete."""

    def __init__(self, problem: OSError) -> None:
        self._problem = problem

    def read(self, size: int = -1, /) -> NoReturn:  # noqa: ARG002 - the signature of all streams
        """Raise the reason: ENOBUFS without room for the body, else a timeout or an early end."""
        raise self._problem


class Connection:
    """An accepted socket. `turn` is called by one thread at a time, `end_if_late` by any."""

    __slots__ = (
        "_awaits",
        "_body_began",
        "_drains",
        "_due",
        "_ends",
        "_kept",
        "_parser",
        "_poller",
        "_problem",
        "_rate_limited",
        "_response",
        "_rests",
        "_shakes",
        "_socket",
        "_state",
        "_turns_since",
        "address",
        "received",
    )

    def __init__(
        self, accepted: socket.socket, common: WSGIEnvironment, state: SharedState
    ) -> None:
        """`accepted` does not block; `common` is what all its requests have in their environ."""
        self._socket = accepted
        self._state = state
        self.address: str = common["REMOTE_ADDR"]
        self._parser = RequestParser(common, state.limits.body_limit)
        self._response: ResponseWriter | ContinueResponse | None = None
        self._poller: select.poll | None = None
        """Knows the socket, once it was waited for."""
        self._shakes = isinstance(accepted, ssl.SSLSocket)
        """Whether TLS has yet to be agreed on."""
        self._drains = False
        """Whether what comes after the answer is thrown away, until the client ends."""
        self._rests = True
        """Whether no thread is at it."""
        self._turns_since = 0.0
        """When the last turn began."""
        self._awaits = False
        """Whether it waits for the rest of a body, until it is due."""
        self._body_began = 0.0
        self._rate_limited = False
        """Whether its last answer was 429."""
        self.received = 0
        """Bytes that it has received last."""
        self._problem: OSError | None = None
        """Why the rest is no longer waited for."""
        self._kept = False
        """Whether a buffer limit counts what is kept for it."""
        self._ends = False
        """Whether its next answer is its last."""
        self._due = time.monotonic() + state.limits.idle_seconds
        """Until when it may rest."""

    @property
    def is_used(self) -> bool:
        """Whether a body is being received or an answer sent."""
        return self._awaits or self._response is not None

    @property
    def body_began(self) -> float:
        """When the head of the body came for which it waits, monotonic."""
        return self._body_began

    @property
    def is_ending(self) -> bool:
        """Whether its next answer is its last, or the turn that ends it has begun."""
        return self._ends

    def turn_seconds(self, now: float) -> float:
        """Seconds that its present turn has lasted at this monotonic instant; 0 between turns."""
        return 0 if self._rests else now - self._turns_since

    def turn(self) -> WaitFor:
        """Receive, answer and send what is possible without blocking."""
        self._turns_since = time.monotonic()
        self._rests = False
        try:
            after = self._turn()
        except OSError:  # the client is gone, or does not speak TLS
            after = WaitFor.NOTHING
        # One that is over never rests: its number may be another file's before anybody looks.
        self._rests = after is not WaitFor.NOTHING
        return after

    def close(self) -> None:
        """Close the socket and release its buffers."""
        self._parser.close()
        self._release()
        response, self._response = self._response, None
        try:
            if response is not None:
                response.close()
        finally:
            if isinstance(self._socket, ssl.SSLSocket):
                with contextlib.suppress(OSError, ValueError):  # it is a courtesy
                    self._socket.unwrap()
            self._socket.close()

    def end_if_late(self, now: float) -> None:
        """Make its next turn the last if it has been idle too long.

        Should that turn just begin: only the way in is shut, so what has come is answered.
        """
        if self._rests and now > self._due:
            self._due = now + _LINGER_SECONDS
            self._ends = True
            if self._awaits:
                self._problem = self._late()
            both = self._response is not None or self._drains
            self._shut(socket.SHUT_RDWR if both else socket.SHUT_RD)

    def idle_seconds_at(self, now: float) -> float:
        """Seconds it has been idle between requests at this monotonic instant; 0 if it is not."""
        busy = not self._rests or self._response is not None or self._drains
        if busy or not self._parser.is_empty:
            return 0
        return now - self._due + self._state.limits.idle_seconds

    def end_idle(self) -> None:
        """As `end_if_late`, but at once, for an `idle_seconds_at` connection; idempotent."""
        self._ends = True
        self._shut(socket.SHUT_RD)

    def end_to_free_buffers(self) -> None:
        """Make its next turn the last because its buffers are needed for others."""
        if self._awaits:
            _log.warning(
                "request body from %s refused: the buffers for bodies are full", self.address
            )
            self._problem = OSError(errno.ENOBUFS, "too many bytes of bodies are kept")
            self._shut(socket.SHUT_RD)
        elif self._response is not None:
            _log.warning(
                "connection from %s ended: its answer is unread, and answer buffers are full",
                self.address,
            )
            self._shut(socket.SHUT_RDWR)

    def wait(self, seconds: float) -> bool:
        """Wait at most so long for data to receive; return whether there is any."""
        if self._poller is None:
            self._poller = select.poll()
            self._poller.register(self._socket, select.POLLIN)
        return bool(self._poller.poll(seconds * 1000))

    def _receive(self, most: int = _MOST) -> bytes | None:
        """Bytes received: None if there are none yet, empty at the end of the stream.

        Raises:
            OSError: the connection broke.
        """
        try:
            return self._socket.recv(most)
        except _WOULD_WAIT:
            return None

    def _turn(self) -> WaitFor:
        if self._shakes and not self._agreed():
            return WaitFor.READABLE
        after = None if self._response is None else self._send(self._response)
        if after is None:
            after = self._drain() if self._drains else self._answer_all()
        return self._read_on() if after is None else after

    def _read_on(self) -> WaitFor:
        """Receive once, with what TLS has buffered, and answer the requests in it."""
        while True:
            data = self._receive(LARGE if self._has_large_body() else _MOST)
            self.received = len(data or b"")
            if not data:
                if data is not None:
                    return self._end_of_data()
            else:
                self._parser.feed(data)
                after = self._answer_all()
                if after is not None:
                    return after
                if self._undelivered():
                    continue
            request = self._parser.arriving
            if request is not None:
                return self._await_rest(request)
            return WaitFor.A_PAUSE if self._rate_limited else WaitFor.READABLE

    def _has_large_body(self) -> bool:
        """Whether it receives a body of which much has come."""
        request = self._parser.arriving if self._awaits else None
        return request is not None and request.size >= LARGE

    def _await_rest(self, request: Request) -> WaitFor:
        """Wait for the rest of a body; send 100 Continue if the client expects it."""
        now = time.monotonic()
        if not self._awaits:
            self._awaits = True
            self._body_began = now
            if request.expects and not request.size:
                self._response = waited = ContinueResponse()
                after = self._send(waited)
                if after is not None:
                    return after
            self._due = now + self._state.limits.body_seconds
        elif self._problem is not None or now > self._due:
            return self._answer_unfinished(self._problem or self._late())
        if request.size:
            self._keep(self._state.arriving, request.size, now)
        paced = self.received and request.size >= LARGE
        return WaitFor.A_PIECE if paced else WaitFor.READABLE

    def _end_of_data(self) -> WaitFor:
        """Handle the end of the stream: a body under way is incomplete."""
        if self._parser.arriving is None:
            return WaitFor.NOTHING
        broken = ConnectionError("the client left before its body was complete")
        return self._answer_unfinished(self._problem or broken)

    def _answer_unfinished(self, problem: OSError) -> WaitFor:
        """Let the application answer a request whose body will not be complete."""
        environ, request = self._parser.take_unfinished()
        return self._answer(environ, request, problem) or WaitFor.NOTHING

    def _late(self) -> OSError:
        """The error of a late body, which is logged."""
        seconds = self._state.limits.body_seconds
        _log.warning(
            "connection from %s ended: its request body took longer than %g s",
            self.address,
            seconds,
        )
        return TimeoutError("the body did not come in time")

    def _keep(self, backlog: BufferLimit[Connection], size: int, now: float) -> None:
        """Record the bytes buffered for the client; past the limit some connections are ended."""
        self._kept = True
        for connection in backlog.keep(self, size, now):
            connection.end_to_free_buffers()

    def _release(self) -> None:
        """Release the bytes buffered for the client."""
        if self._kept:
            self._kept = False
            self._state.arriving.free(self)
            self._state.unsent.free(self)

    def _agreed(self) -> bool:
        """Whether the TLS handshake is done.

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
        """Whether TLS has decrypted bytes that the socket no longer reports."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _answer_all(self) -> WaitFor | None:
        """Answer one complete request; return what to wait for, or None to go on reading."""
        parser = self._parser
        if (found := parser.take()) is not None:
            after = self._answer(*found)
            if after is not None:
                return after
            if parser.has_more():
                return WaitFor.A_TURN
        return None if parser.refusal is None else self._refuse(parser.refusal)

    def _answer(
        self, environ: WSGIEnvironment, request: Request, problem: OSError | None = None
    ) -> WaitFor | None:
        """Answer one request; returns as `_answer_all`."""
        state, parser = self._state, self._parser
        environ["wsgi.input"] = (
            io.BytesIO(b"".join(request.body)) if problem is None else IncompleteBody(problem)
        )
        request.body.clear()
        self._awaits = False
        self._release()
        started = StartResponse()
        keeps = request.keeps
        # What the application binds (ids for the log, say) goes with the answer, whichever thread
        # asks for its next part, and stays with no thread.
        context = contextvars.copy_context()
        try:
            chunks = context.run(state.application, environ, started)
        except Exception:  # noqa: BLE001 - no kernel lets one out; an application by itself may
            _log.exception("the application raised an unexpected error")
            started, chunks, keeps = StartResponse(), (), False
        self._rate_limited = started.status.startswith(_TOO_MANY)
        keeps = keeps and request.complete
        if not parser.has_more() and (state.ending or self._ends or parser.refusal is not None):
            keeps = False  # those that were received with it are answered first
        self._drains = not request.complete or (request.keeps and not keeps)
        self._response = response = ResponseWriter(
            started, chunks, request, context, state.common_headers, keeps=keeps
        )
        return self._send(response)

    def _refuse(self, status: HTTPStatus) -> WaitFor:
        """Answer a malformed request."""
        started = StartResponse()
        started(f"{status.value} {status.phrase}", [("content-length", "0")])
        self._drains = True
        context = contextvars.copy_context()
        self._response = response = ResponseWriter(
            started, (), None, context, self._state.common_headers, keeps=False
        )
        return self._send(response) or WaitFor.NOTHING

    def _send(self, response: ResponseWriter | ContinueResponse) -> WaitFor | None:
        """Send what the socket takes; None once all is sent and the connection goes on."""
        send = self._socket.send
        while True:
            left = response.left
            try:
                sent = send(left)
            except _WOULD_WAIT:
                now = time.monotonic()
                self._due = now + self._state.limits.idle_seconds
                self._keep(self._state.unsent, response.kept, now)
                return WaitFor.WRITABLE
            if sent < len(left):
                response.left = memoryview(left)[sent:]
            elif not response.more():
                break
        self._response = None
        self._release()
        response.close()
        self._due = time.monotonic() + self._state.limits.idle_seconds
        if response.keeps:
            return None
        if not self._drains:
            return WaitFor.NOTHING
        self._due = time.monotonic() + _LINGER_SECONDS
        self._shut(socket.SHUT_WR)
        return self._drain()

    def _drain(self) -> WaitFor:
        """Discard received bytes, one receive a turn, so that no client holds a thread."""
        data = self._receive()
        return WaitFor.NOTHING if data == b"" else WaitFor.READABLE

    def _shut(self, how: int) -> None:
        """Shut one direction or both, without a TLS close message."""
        with contextlib.suppress(OSError):  # it is over already
            socket.socket.shutdown(self._socket, how)
