"""Ends connections whose request body does not come to its end in time.

A body is read by a thread that waits for the client. Granian gives no way to stop waiting and
names no port of the client, so the connection is found by what the kernel knows of it: it comes
from the address whose body is late, and for as long as that body is being read nothing was sent
on it. A request that has been worked on for as long would look the same, so nothing is cut while
there is one from the same address; it ends within its own limits.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.http.wsgi import Environ

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.5
_LAST_SENT: Final = struct.Struct("44xI")
"""Where Linux' `tcp_info` has the milliseconds since something was sent."""
_LONGEST_INFO: Final = 104


@dataclass(slots=True)
class _Request:
    """One request in progress."""

    address: str
    since: float
    reading: bool = False


class SlowBodies:
    """Knows the requests in progress, and cuts those whose body is late."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._requests: dict[int, _Request] = {}

    def begin(self, environ: Environ) -> None:
        """This thread begins a request; its body is read through what is put in its place."""
        request = _Request(environ.get("REMOTE_ADDR", ""), time.monotonic())
        self._requests[threading.get_ident()] = request
        if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
            environ["wsgi.input"] = _Input(environ["wsgi.input"], request)

    def end(self) -> None:
        """This thread has answered its request."""
        self._requests.pop(threading.get_ident(), None)

    @property
    def running(self) -> bool:
        """Whether any request is in progress."""
        return bool(self._requests)

    def watch(self) -> None:
        """Look for late bodies for ever, in a thread that does not keep the process alive."""
        threading.Thread(target=self._watch, name="slow-bodies", daemon=True).start()

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            for address in self.late(time.monotonic()):
                cut = _cut(address, self._seconds)
                _log.warning(
                    "a request body from %s took longer than %g s: %d connections ended",
                    address,
                    self._seconds,
                    cut,
                )

    def late(self, now: float) -> set[str]:
        """Addresses with a late body and no other request that has been running as long."""
        old = [one for one in list(self._requests.values()) if now - one.since > self._seconds]
        working = {one.address for one in old if not one.reading}
        return {one.address for one in old if one.reading} - working


class _Input:
    """`wsgi.input` that says while somebody waits for it."""

    __slots__ = ("_request", "_stream")

    def __init__(self, stream: Any, request: _Request) -> None:  # noqa: ANN401 - a Rust object
        self._stream = stream
        self._request = request

    def read(self, size: int) -> bytes:
        """At most so many bytes; fewer only at the end."""
        self._request.reading = True
        try:
            return bytes(self._stream.read(size))
        finally:
            self._request.reading = False


def _cut(address: str, seconds: float) -> int:
    """Stop receiving from the address on connections on which nothing was sent for so long."""
    cut = 0
    for connection in _connections():
        with connection, contextlib.suppress(OSError):
            peer = connection.getpeername()[0].removeprefix("::ffff:")
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LONGEST_INFO)
            [silent] = _LAST_SENT.unpack_from(info)
            if peer == address.removeprefix("::ffff:") and silent / 1000 >= seconds:
                connection.shutdown(socket.SHUT_RD)
                cut += 1
    return cut


def _connections() -> Iterator[socket.socket]:
    """Every TCP socket of this process, as a second handle on it."""
    for name in _descriptors():
        with contextlib.suppress(OSError):  # no socket, or closed meanwhile
            own = socket.socket(fileno=os.dup(int(name)))
            if own.family in {socket.AF_INET, socket.AF_INET6} and own.type == socket.SOCK_STREAM:
                yield own
            else:
                own.close()


def _descriptors() -> list[str]:
    folder = Path("/proc/self/fd")
    return [entry.name for entry in folder.iterdir()] if hasattr(socket, "TCP_INFO") else []
