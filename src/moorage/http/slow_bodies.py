"""Ends connections whose request body does not come to its end in time.

A body is read by a thread that waits for the client. Granian gives no way to stop waiting and
names no port of the client, so the connection is found by what the kernel knows of it: it comes
from the address whose body is late, and for as long as that body is being read nothing was sent
on it. A connection with a request that is worked on may look the same: nothing was sent on it while
it was idle before, nor since. So nothing is cut while another request from the same address has
run so long that the two together could make up the time; it ends within its own limits.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moorage.http import connections

if TYPE_CHECKING:
    from moorage.http.wsgi import Environ

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.5


@dataclass(slots=True)
class _Request:
    """One request in progress."""

    address: str
    since: float
    reading: bool = False


class SlowBodies:
    """Knows the requests in progress, and cuts those whose body is late."""

    def __init__(self, seconds: float, idle_seconds: float) -> None:
        """`seconds` is what a body has; `idle_seconds` how long a connection may be without one."""
        self._seconds = seconds
        self._spared_after = max(seconds - idle_seconds, 0)
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
                cut = connections.cut(address, self._seconds)
                _log.warning(
                    "a request body from %s took longer than %g s: %d connections ended",
                    address,
                    self._seconds,
                    cut,
                )

    def late(self, now: float) -> set[str]:
        """Addresses with a late body, where no other request's connection could be meant."""
        running = [(one, now - one.since) for one in list(self._requests.values())]
        late = {one.address for one, age in running if one.reading and age > self._seconds}
        return late - {
            one.address for one, age in running if not one.reading and age > self._spared_after
        }


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
