"""Answers as bytes: the head, and how a client knows where the body ends (RFC 9112, section 6)."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextvars import Context

    from moorage.http.transport.incoming import Request
    from moorage.http.wsgi import ExcInfo, Headers

_JOINED: Final = 64 * 1024
"""Bytes of a body that are copied to be sent with the head at once."""
_NO_LENGTH: Final = ("1", "204")
"""How the status of an answer begins that has no body, nor the length of one (RFC 9110, 8.6)."""
_BARE: Final = (*_NO_LENGTH, "304")
"""How the status of an answer begins that never has a body."""
_LAST: Final = b"0\r\n\r\n"


class Started:
    """WSGI's `start_response`, keeping what it is told."""

    __slots__ = ("headers", "status")

    def __init__(self) -> None:
        self.status = "500 Internal Server Error"
        self.headers: Headers = []

    def __call__(
        self,
        status: str,
        headers: Headers,
        exc_info: ExcInfo | None = None,  # noqa: ARG002 - PEP 3333
        /,
    ) -> Any:  # noqa: ANN401 - the write callable, which the kernel never uses
        """Take them; the last ones count."""
        self.status = status
        self.headers = headers
        return None


class Outgoing:
    """An answer on its way: bytes to send next, and where more come from."""

    __slots__ = ("_chunked", "_context", "_missing", "_parts", "_rest", "keeps", "left")

    def __init__(
        self,
        started: Started,
        body: Iterable[bytes],
        request: Request | None,
        context: Context,
        *,
        keeps: bool,
    ) -> None:
        """Answer `request`, or what is none.

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
        lines += (added, _clock.date(), "\r\n")
        head = "".join(lines).encode("latin-1")
        self._context = context
        self._parts: Any = body
        self._rest: Iterator[bytes] | None = None
        self._missing = None if length is None or bare else int(length)
        """Bytes that were announced and have not come."""
        if bare:
            self.left: bytes | memoryview = head
            self._rest = iter(())
        elif not whole:
            self.left = head
            self._rest = iter(body)
        elif len(first) <= _JOINED:
            self.left = head + first
        else:
            self.left = head
            self._rest = iter((first,))

    def more(self) -> bool:
        """Once all of `left` is sent: put the next part there. False if that was the last.

        Raises:
            ConnectionAbortedError: whoever makes the parts failed (and has said so), or made other
                than was announced: the client must see that the body is not whole.
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
            self.left = b"%x\r\n%b\r\n" % (len(part), part) if self._chunked else part
            return True
        self._rest = None
        if self._chunked:
            self.left = _LAST
            return True
        return False

    def close(self) -> None:
        """It is sent, or nobody wants it any more."""
        close = getattr(self._parts, "close", None)
        if close is not None:
            self._context.run(close)


def _lines(started: Started) -> tuple[list[str], str | None]:
    """The status and the headers, and what they say of the body's length."""
    lines = [f"HTTP/1.1 {started.status}\r\n"]
    length = None
    for name, value in started.headers:
        if name.lower() == "content-length":
            length = length or value
            if started.status.startswith(_NO_LENGTH):
                continue
        lines.append(f"{name}: {value}\r\n")
    return lines, length


class _Clock:
    """The date of answers; it is the same for a second."""

    __slots__ = ("_line", "_second")

    def __init__(self) -> None:
        self._second = 0
        self._line = ""

    def date(self) -> str:
        """`date` and `server`."""
        now = int(time.time())
        if now != self._second:
            self._line = f"date: {formatdate(now, usegmt=True)}\r\nserver: moorage\r\n"
            self._second = now
        return self._line


_clock: Final = _Clock()
