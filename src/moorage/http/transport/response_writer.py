"""Responses as bytes: the head, and the framing of the body (RFC 9112, section 6)."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from moorage.http.transport.body_parts import BodyParts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextvars import Context
    from types import TracebackType

    from moorage.http.transport.request_parser import Request

_ExcInfo: TypeAlias = (
    "tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]"
)
_JOINED: Final = 64 * 1024
"""Bytes of a body that are copied to be sent with the head at once."""
_NO_LENGTH: Final = ("1", "204")
"""How the status of an answer begins that has no body, nor the length of one (RFC 9110, 8.6)."""
_BARE: Final = (*_NO_LENGTH, "304")
"""How the status of an answer begins that never has a body."""
_LAST: Final = b"0\r\n\r\n"


class CommonHeaders:
    """Header lines that all responses share: the date, cached for a second, and the server."""

    __slots__ = ("_line", "_second", "_server")

    def __init__(self, server: str = "") -> None:
        """`server` is the name of the program; empty for none."""
        self._server = f"server: {server}\r\n" if server else ""
        self._second = 0
        self._line = ""

    def lines(self) -> str:
        """`date` and `server`."""
        now = int(time.time())
        if now != self._second:
            self._line = f"date: {formatdate(now, usegmt=True)}\r\n{self._server}"
            self._second = now
        return self._line


class StartResponse:
    """WSGI's `start_response`, which keeps status and headers."""

    __slots__ = ("headers", "status")

    def __init__(self) -> None:
        self.status = "500 Internal Server Error"
        self.headers: list[tuple[str, str]] = []

    def __call__(
        self,
        status: str,
        headers: list[tuple[str, str]],
        exc_info: _ExcInfo | None = None,  # noqa: ARG002 - PEP 3333
        /,
    ) -> Any:  # noqa: ANN401 - the write callable, which the kernel never uses
        """Keep status and headers; the last call counts."""
        self.status = status
        self.headers = headers
        return None


class ContinueResponse:
    """The `100 Continue` response."""

    keeps = True
    kept = 0

    def __init__(self) -> None:
        self.left: bytes | memoryview = b"HTTP/1.1 100 Continue\r\n\r\n"

    def more(self) -> bool:
        """No more bytes."""
        return False

    def close(self) -> None:
        """Nothing to release."""


class ResponseWriter:
    """A response under way: bytes to send next, and the parts that follow.

    Parts are taken as the client takes them, and let go when they are sent.
    """

    __slots__ = ("_chunked", "_context", "_missing", "_part", "_parts", "_rest", "keeps", "left")

    def __init__(
        self,
        started: StartResponse,
        body: Iterable[bytes],
        request: Request | None,
        context: Context,
        common_headers: CommonHeaders,
        *,
        keeps: bool,
    ) -> None:
        """Make the response to `request`, or to malformed bytes if None.

        The parts of the body are made in `context`. `keeps` says whether the connection may go on;
        it does where the body's end shows.
        """
        protocol = "HTTP/1.1" if request is None else request.protocol
        head_only = request is not None and request.method == "HEAD"
        bare = head_only or started.status.startswith(_BARE)
        lines, length = _lines(started)
        whole = isinstance(body, list | tuple) and len(body) <= 1
        first = b"".join(body) if whole else b""
        added = ""
        self._chunked = False
        if length is None and not bare:
            if whole:
                added = f"content-length: {len(first)}\r\n"
            elif protocol == "HTTP/1.1":
                self._chunked = True
                added = "transfer-encoding: chunked\r\n"
            else:
                keeps = False
        self.keeps = keeps
        if not keeps:
            added += "connection: close\r\n"
        elif protocol == "HTTP/1.0":
            added += "connection: keep-alive\r\n"
        lines += (added, common_headers.lines(), "\r\n")
        head = "".join(lines).encode("latin-1")
        self._context = context
        self._parts: Any = BodyParts(body) if isinstance(body, list | tuple) else body
        self._part = 0
        """Bytes of the part that is being sent."""
        self._rest: Iterator[bytes] | None = None
        self._missing = None if length is None or bare else int(length)
        """Bytes that were announced and have not come."""
        self.left: bytes | memoryview = head
        if bare:
            self._rest = iter(())
        elif whole and len(first) <= _JOINED:
            self.left = head + first
        else:
            self._rest = iter(self._parts)

    @property
    def kept(self) -> int:
        """Bytes of the body in memory; parts not made yet do not count."""
        rest = self._parts.size if isinstance(self._parts, BodyParts) and self._rest else 0
        return self._part + rest

    def more(self) -> bool:
        """Put the next part in `left` once all of it is sent. False if there is none.

        Raises:
            ConnectionAbortedError: the application failed to make a part (and has logged it), or
                made other than was announced: the client must see that the body is not whole.
        """
        if self._rest is None:
            return False
        try:
            part = self._context.run(next, filter(None, self._rest), None)
        except Exception as error:
            raise ConnectionAbortedError("the body broke off") from error
        if self._missing is not None:
            self._missing -= 0 if part is None else len(part)
            if self._missing < 0 or (part is None and self._missing):
                raise ConnectionAbortedError("the body is not as long as was announced")
        if part is not None:
            self._part = len(part)
            self.left = b"%x\r\n%b\r\n" % (len(part), part) if self._chunked else part
            return True
        self._rest = None
        if self._chunked:
            self.left = _LAST
            return True
        return False

    def close(self) -> None:
        """Close the body once it is sent or abandoned."""
        close = getattr(self._parts, "close", None)
        if close is not None:
            self._context.run(close)


def _lines(started: StartResponse) -> tuple[list[str], str | None]:
    """The status and header lines, and the body's length according to them."""
    lines = [f"HTTP/1.1 {started.status}\r\n"]
    length = None
    for name, value in started.headers:
        if name.lower() == "content-length":
            length = length or value
            if started.status.startswith(_NO_LENGTH):
                continue
        lines.append(f"{name}: {value}\r\n")
    return lines, length
