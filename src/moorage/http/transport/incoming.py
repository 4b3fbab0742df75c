"""Requests in the bytes of one connection: llhttp reads them, here they become WSGI environs.

What llhttp refuses, both by RFC 9112 and against requests that two readers would understand
differently (a length beside chunks, say), is refused here; nothing of its leniencies is used.

Bytes are read as far as one request goes: an environ is eighty times the shortest head, so heads
that were sent ahead stay bytes until the answers before them are taken.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from httptools import (
    HttpParserError,
    HttpParserInvalidMethodError,
    HttpParserInvalidURLError,
    HttpParserUpgrade,
    HttpRequestParser,
)

from moorage.http.transport.environs import HOSTS, KEYS, NOWHERE, encoded, is_host, key_of, split

if TYPE_CHECKING:
    from moorage.http.wsgi import Environ

LONGEST_HEAD: Final = 256 * 1024
"""Bytes of a request line and its headers that are surely read; what is longer may be refused.
So may as many bytes that are none of a body while it comes, beside those that its bytes earn."""
_EARNED: Final = 16
"""So many for each byte of it. One that is alone in its chunk takes six."""
_MOST_BLANK: Final = 16
"""Bytes of empty lines that may stand before a request: eight lines."""
_HEAD_END: Final = b"\r\n\r\n"
_PROTOCOL: Final = b" HTTP/"
"""What stands in a request line before three bytes of version. llhttp reads two more protocols that
look like this one, RTSP and ICE, and does not tell."""
_LINE_END: Final = len(_PROTOCOL) + 3
_REQUEST: Final = re.compile(rb"[A-Z]+ [/*h]")
"""How a request looks whose method is merely unknown."""
_VERSIONS: Final = frozenset({"1.1", "1.0"})
_FRAMING: Final = (
    ("content-length", "CONTENT_LENGTH"),
    ("transfer-encoding", "HTTP_TRANSFER_ENCODING"),
)
"""Headers that say where a body ends."""
_LISTS: Final = {"HTTP_COOKIE": "; "}
"""What stands between several headers of one name, where it is not a comma (RFC 6265, 5.4)."""


@dataclass(slots=True, eq=False)
class Request:
    """What is to be known of a request beside its environ; its body may still be coming."""

    method: str
    protocol: str
    keeps: bool
    """Whether the client means to go on with the connection."""
    expects: bool
    """Whether the client sends its body once it is told to (`Expect: 100-continue`)."""
    body: list[bytes | bytearray] = field(default_factory=list)
    size: int = 0
    """Bytes of the body that have come and were not read."""
    complete: bool = False


class Incoming:
    """Takes bytes as they come; has requests whose head is whole, in their order.

    Its parser gets them in pieces: each head, and each body, begins with a piece of its own.
    """

    def __init__(self, common: Environ) -> None:
        """`common` is what every request of the connection has in its environ."""
        self.refusal: HTTPStatus | None = None
        """Why nothing that comes after what `take` still gives can be understood."""
        self._ready: deque[tuple[Environ, Request]] = deque()
        self._data = b""
        self._at = 0
        """How much of the data the parser has."""
        self._end = b""
        """The last bytes of a piece that had no end, which the next one may begin with."""
        self._blank = 0
        """Bytes of empty lines that have come where a request begins."""
        self._line: bytes | None = b""
        """The last bytes of a request line that is not whole; None once it is, until the next."""
        self._left = 0
        """Bytes of the body that are to come, where its head says how many it has."""
        self._common = common
        self._parser = HttpRequestParser(self)
        self._environ: Environ = {}
        self._target = b""
        self._request: Request | None = None
        self._head_bytes = 0

    def feed(self, data: bytes) -> None:
        """Read on. After a refusal nothing is read any more."""
        if self.refusal is None:
            self._data, self._at = (self._data[self._at :] + data if self._data else data), 0
            self.has_more()

    def take(self) -> tuple[Environ, Request] | None:
        """The next request, or None: there is none before more has come."""
        return self._ready.popleft() if self._ready or self.has_more() else None

    def has_more(self) -> bool:
        """Whether `take` gives something. Reads no further than to the end of one that is whole."""
        ready = self._ready
        while self._data:
            if ready and ready[-1][1].complete:
                return True
            self._read(self._piece())
            if self._at == len(self._data) or self.refusal is not None:
                self._data = b""
        return bool(ready)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a request has come that was not taken."""
        request = self._request
        begun = self._head_bytes if request is None else not request.complete
        return not (begun or self._ready or self._line or self._data)

    def _piece(self) -> bytes:
        """What the parser gets next."""
        data, at = self._data, self._at
        if self._left > 0:  # of a body: all there is of it
            end = min(at + self._left, len(data))
        elif self._end:
            end = self._late_end(at)
        else:  # of a head, or of a body in chunks: as far as it goes, or a part of it
            end = data.find(_HEAD_END, at) + len(_HEAD_END)
            if end < len(_HEAD_END):
                end = len(data)
                self._end = data[max(at, end - 3) :]
        self._at = end
        return data[at:end]

    def _late_end(self, at: int) -> int:
        """Where a piece ends that goes on with one that had no end."""
        begun = len(self._end)
        joined = self._end + self._data[at:]
        found = joined.find(_HEAD_END)
        if found < 0:
            self._end = joined[-3:]
            return len(self._data)
        self._end = b""
        return at + found + len(_HEAD_END) - begun

    def _read(self, data: bytes) -> None:
        """Have the parser read a piece."""
        if self._line is not None and (self._request is None or self._request.complete):
            data = self._line_of(data)
        self._head_bytes += len(data)
        try:
            while data and self.refusal is None:
                data = self._parsed(data)
        except HttpParserInvalidMethodError:
            known = _REQUEST.match(data) is not None
            self._refuse(HTTPStatus.NOT_IMPLEMENTED if known else HTTPStatus.BAD_REQUEST)
        except HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST)
        if self._head_bytes > LONGEST_HEAD and not (self._request and self._request.complete):
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _line_of(self, data: bytes) -> bytes:
        """See what a request line says that the parser does not tell; the piece as it can read it.

        A few empty lines before it are nothing (RFC 9112, 2.2).
        """
        if not self._line:
            begun = data.lstrip(b"\r\n")
            if begun is not data:
                self._blank += len(data) - len(begun)
                if self._blank > _MOST_BLANK:
                    self._refuse(HTTPStatus.BAD_REQUEST)
                data = begun
        if not data.isascii():
            data = encoded(data)
        line = self._line + data if self._line else data
        end = line.find(b"\r")
        if end < 0:
            self._line = line[-_LINE_END:]
        else:
            self._line = None
            if line[max(end - _LINE_END, 0) : end - 3] != _PROTOCOL:
                self._refuse(HTTPStatus.BAD_REQUEST)
        return data

    def _parsed(self, data: bytes) -> bytes:
        """Have the parser read on; what it has left unread.

        Raises:
            HttpParserError: it is no request.
        """
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as error:
            self._stay()
            unread: int = error.args[0]
            return data[unread:]
        return b""

    def _stay(self) -> None:
        """Go on after a request to change to another protocol, which nobody here speaks.

        httptools takes its body for the first bytes of that protocol. So another parser reads it,
        one that is told how it is framed, and nothing of a change.
        """
        if self.refusal is not None:
            return
        environ, request = self._ready.pop()
        if request.method == "CONNECT":  # there is no staying with it
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        head = f"{request.method} / {request.protocol}\r\nhost:\r\n"
        head += f"connection: {'keep-alive' if request.keeps else 'close'}\r\n"
        for name, key in _FRAMING:
            if key in environ:
                head += f"{name}: {environ[key]}\r\n"
        self._parser = HttpRequestParser(self)
        self._parser.feed_data(f"{head}\r\n".encode("latin-1"))
        _, again = self._ready.pop()
        again.expects = request.expects
        self._ready.append((environ, again))

    def close(self) -> None:
        """Nothing more comes. The parser knows this object: both are free at once without it."""
        self._ready.clear()
        del self._parser

    def _refuse(self, status: HTTPStatus) -> None:
        if self.refusal is None:
            self.refusal = status
        if self._ready and not self._ready[-1][1].complete:
            self._ready.pop()  # its body would never come

    # What llhttp calls, by the names that httptools gives.

    def on_message_begin(self) -> None:
        """A request begins."""
        self._environ = self._common.copy()
        self._target = b""
        self._request = None
        self._head_bytes = 1
        self._blank = 0

    def on_url(self, part: bytes) -> None:
        """Some of its target."""
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or one after the body, which nobody asked for."""
        if self._request is not None:
            return
        key = KEYS.get(name) or key_of(name)
        environ, text = self._environ, value.decode("latin-1").rstrip(" \t")
        if key in environ:
            text = f"{environ[key]}{_LISTS.get(key, ',')}{text}"
        environ[key] = text

    def on_headers_complete(self) -> None:
        """The head is whole."""
        environ, parser = self._environ, self._parser
        version = parser.get_http_version()
        if version not in _VERSIONS:
            self._refuse(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        if version == "1.0" and "HTTP_TRANSFER_ENCODING" in environ:  # RFC 9112, 6.1
            self._refuse(HTTPStatus.BAD_REQUEST)
        environ["SERVER_PROTOCOL"] = protocol = f"HTTP/{version}"
        environ["REQUEST_METHOD"] = method = parser.get_method().decode("ascii")
        try:
            environ["PATH_INFO"], environ["QUERY_STRING"] = split(self._target)
        except HttpParserInvalidURLError:
            self._refuse(HTTPStatus.BAD_REQUEST)
        environ.pop(NOWHERE, None)
        host = environ.get("HTTP_HOST")
        good = version == "1.0" if host is None else host in HOSTS or is_host(host)
        if not good:
            self._refuse(HTTPStatus.BAD_REQUEST)  # RFC 9112, 3.2
        expects = environ.get("HTTP_EXPECT", "").lower() == "100-continue" and version != "1.0"
        self._request = Request(method, protocol, parser.should_keep_alive(), expects)
        self._head_bytes = 0
        self._left = int(environ.get("CONTENT_LENGTH", 0))
        self._line = b""
        self._environ = {}  # whoever answers has it; a connection at rest would keep its whole body
        if self.refusal is None:
            self._ready.append((environ, self._request))

    def on_body(self, part: bytes) -> None:
        """Some of its body."""
        request = self._request
        if request is None:
            return
        self._head_bytes = max(self._head_bytes - _EARNED * len(part), 0)
        self._left -= len(part)
        body = request.body
        if not body or len(part) > _SMALL:
            body.append(part)
        elif isinstance(body[-1], bytearray):
            body[-1] += part
        else:
            body.append(bytearray(part))
        request.size += len(part)

    def on_message_complete(self) -> None:
        """It is whole."""
        if self._request is not None:
            self._request.complete = True


_SMALL: Final = 1024
"""Bytes of a part of a body that is put to others: an object for each would be several times it."""
