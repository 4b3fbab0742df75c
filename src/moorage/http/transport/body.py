"""`wsgi.input`: the bytes of a body that have come, and then those that come in time."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

if TYPE_CHECKING:
    from moorage.http.transport.incoming import Request

_log = logging.getLogger(__name__)

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Source(Protocol):
    """The connection that a body comes on."""

    def receive(self) -> bytes | None:
        """What has come: nothing, None; the end, no bytes."""

    def wait(self, seconds: float) -> bool:
        """Wait until there is something to receive, or so long; whether there is."""

    def tell(self, data: bytes, seconds: float) -> None:
        """Send a few bytes once there is room for all of them, unless there is none for so long."""

    def feed(self, data: bytes) -> bool:
        """Read bytes that came; whether they could be understood."""


class Body:
    """One request's body, as a stream that is read once."""

    __slots__ = ("_address", "_request", "_seconds", "_source")

    def __init__(self, source: Source, request: Request, address: str, seconds: float) -> None:
        """It must be there whole so many seconds after it was asked for."""
        self._source = source
        self._request = request
        self._address = address
        self._seconds = seconds

    @property
    def is_whole(self) -> bool:
        """Whether all of it has come, so that reading keeps nobody waiting."""
        return self._request.complete

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes, or all of them; fewer only at the end.

        Raises:
            OSError: the rest did not come in time, or at all, or is no body.
        """
        request = self._request
        if not request.complete:
            self._receive(size)
        found = bytes(request.body[0]) if len(request.body) == 1 else b"".join(request.body)
        if 0 <= size < len(found):
            found, rest = found[:size], found[size:]
            request.body = [rest]
        else:
            request.body = []
        request.size -= len(found)
        return found

    def _receive(self, size: int) -> None:
        request, source = self._request, self._source
        until = time.monotonic() + self._seconds
        if request.expects and not request.size:
            request.expects = False
            source.tell(_CONTINUE, self._seconds)
        while not request.complete and (size < 0 or request.size < size):
            left = until - time.monotonic()
            if left <= 0:
                self._give_up()
            data = source.receive()
            if data is None:
                source.wait(left)
            elif not data:
                raise ConnectionError("the client left before its body was complete")
            elif not source.feed(data) and not request.complete:
                raise ConnectionError("what came is no body")

    def _give_up(self) -> NoReturn:
        _log.warning(
            "a request body from %s took longer than %g s: its connection is ended",
            self._address,
            self._seconds,
        )
        raise TimeoutError("the body did not come in time")
