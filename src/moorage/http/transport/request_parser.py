"""Parses requests from the bytes of one connection: llhttp reads, this makes WSGI environs.

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

from moorage.http.transport.wsgi_environ import (
    HOSTS,
    KEYS,
    NOWHERE,
    encoded,
    is_host,
    key_of,
    split,
)

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

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
    """A request's state beside its environ."""

    method: str
    protocol: str
    keeps: bool
    """Whether the client means to go on with the connection."""
    expects: bool
    """Whether the client sends its body only after 100 Continue (`Expect: 100-continue`)."""
    body: list[bytes | bytearray] = field(default_factory=list)
    size: int = 0
    """Bytes of the body that have come."""
    complete: bool = False
    too_long: bool = False
    """Whether its body is longer than may be; the rest of it is of no interest."""

    @property
    def is_settled(self) -> bool:
        """Whether it can be answered: it is complete or too long."""
        return self.complete or self.too_long


class RequestParser:
    """Takes received bytes; yields requests that are complete, or too long, in their order.

    Its parser gets them in pieces: each head, and each body, begins with a piece of its own.
    """

    def __init__(self, common: WSGIEnvironment, longest: int) -> None:
        """`common` is what every request has in its environ, `longest` the bytes of a body."""
        self.refusal: HTTPStatus | None = None
        """Why nothing that comes after what `take` still gives can be understood."""
        self._ready: deque[tuple[WSGIEnvironment, Request]] = deque()
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
        self._longest = longest
        self._parser = HttpRequestParser(self)
        self._environ: WSGIEnvironment = {}
        self._target = b""
        self._request: Request | None = None
        self._head_bytes = 0

    def feed(self, data: bytes) -> None:
        """Parse more bytes. After a refusal bytes are ignored."""
        if self.refusal is None:
            self._data, self._at = (self._data[self._at :] + data if self._data else data), 0
            self.has_more()

    def take(self) -> tuple[WSGIEnvironment, Request] | None:
        """The next request, or None until more bytes have come."""
        return self._ready.popleft() if self.has_more() else None

    def has_more(self) -> bool:
        """Whether `take` returns a request. Parses no further than the end of a complete one."""
        ready = self._ready
        while self._data and not (ready and ready[-1][1].is_settled):
            self._read(self._piece())
            if self._at == len(self._data) or self.refusal is not None:
                self._data = b""
        return bool(ready) and ready[0][1].is_settled

    @property
    def arriving(self) -> Request | None:
        """The request of which only a part of the body has come."""
        return self._ready[0][1] if self._ready and not self._ready[0][1].is_settled else None

    def take_unfinished(self) -> tuple[WSGIEnvironment, Request]:
        """The `arriving` request, incomplete; nothing may be fed after it."""
        return self._ready.popleft()

    @property
    def is_empty(self) -> bool:
        """Whether no byte of an untaken request has come."""
        request = self._request
        begun = self._head_bytes if request is None else not request.complete
        return not (begun or self._ready or self._line or self._data)

    def _piece(self) -> bytes:
        """The next piece for the parser."""
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
        """The end of a piece that continues one whose end was not found."""
        begun = len(self._end)
        joined = self._end + self._data[at:]
        found = joined.find(_HEAD_END)
        if found < 0:
            self._end = joined[-3:]
            return len(self._data)
        self._end = b""
        return at + found + len(_HEAD_END) - begun

    def _read(self, data: bytes) -> None:
        """Feed the parser a piece."""
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
        """Check what the parser does not report of a request line; return the piece to parse.

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
        """Feed the parser; return the bytes it has left unread.

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
        """Continue after a request to upgrade to another protocol, which this server never does.

        httptools takes its body for the first bytes of that protocol. So another parser reads it,
        which gets a head with the body's framing and without the upgrade.
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
        """Stop parsing; breaks the reference circle with the parser."""
        self._ready.clear()
        del self._parser

    def _refuse(self, status: HTTPStatus) -> None:
        if self.refusal is None:
            self.refusal = status
        if self._ready and not self._ready[-1][1].is_settled:
            self._ready.pop()  # its body would never come

    # What llhttp calls, by the names that httptools gives.

    def on_message_begin(self) -> None:
        """Start of a request."""
        self._environ = self._common.copy()
        self._target = b""
        self._request = None
        self._head_bytes = 1
        self._blank = 0

    def on_url(self, part: bytes) -> None:
        """A part of its target."""
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or one trailer after the body, which is ignored."""
        if self._request is not None:
            return
        key = KEYS.get(name) or key_of(name)
        environ, text = self._environ, value.decode("latin-1").rstrip(" \t")
        if key in environ:
            text = f"{environ[key]}{_LISTS.get(key, ',')}{text}"
        environ[key] = text

    def on_headers_complete(self) -> None:
        """End of the head."""
        environ, parser = self._environ, self._parser
        version = parser.get_http_version()
        if version not in _VERSIONS:
            self._refuse(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        coding = environ.get("HTTP_TRANSFER_ENCODING")
        if coding is not None:  # RFC 9112, 6.1
            *others, last = coding.lower().split(",")
            if version == "1.0" or last.strip() != "chunked":
                self._refuse(HTTPStatus.BAD_REQUEST)
            elif others:  # none of them is supported
                self._refuse(HTTPStatus.NOT_IMPLEMENTED)
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
        self._request.too_long = self._left > self._longest
        self._line = b""
        self._environ = {}  # its taker has it; an idle connection would keep its whole body
        if self.refusal is None:
            self._ready.append((environ, self._request))

    def on_body(self, part: bytes) -> None:
        """A part of its body."""
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
        request.too_long = request.too_long or request.size > self._longest

    def on_message_complete(self) -> None:
        """End of the request."""
        if self._request is not None:
            self._request.complete = True


_SMALL: Final = 1024
"""Bytes of a part of a body that is put to others: an object for each would be several times it."""
