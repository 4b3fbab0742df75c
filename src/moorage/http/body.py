"""Reading a request's body whole, within bounds, before anything acts on it.

A dialect gets bytes that are all there: a client that vanishes half-way never causes half a
write, and one that sends slowly holds a reader, not a worker's turn. A server that knows of a body
that it has come says so by `is_whole` of its stream: that one needs no reader.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from moorage.domain.errors import Busy, InvalidDescription, LimitExceeded
from moorage.http.turns import Turns

if TYPE_CHECKING:
    from moorage.http.wsgi import Environ


class Vanished(Exception):
    """The client went away before its body was complete; nobody is left to answer."""


class BodyReader:
    """Reads bodies of at most `limit` bytes; waits for at most `readers` of them at a time."""

    def __init__(self, *, limit: int, readers: int) -> None:
        self.limit = limit
        self._turns = Turns(readers)

    def replace(self, environ: Environ) -> None:
        """Put the complete body in `wsgi.input`, and its length in `CONTENT_LENGTH` if it has one.

        Raises:
            InvalidDescription: Content-Length is no number.
            LimitExceeded: the body is longer than the limit.
            Busy: too many bodies are waited for already.
            Vanished: the client left.
        """
        declared = _declared_length(environ)
        if declared is not None and declared > self.limit:
            raise LimitExceeded("body in bytes", limit=self.limit, requested=declared)
        if declared == 0 or (declared is None and "HTTP_TRANSFER_ENCODING" not in environ):
            environ["wsgi.input"] = io.BytesIO()
            return
        body = self._received(environ["wsgi.input"], declared)
        if declared is not None and len(body) < declared:
            raise Vanished
        if len(body) > self.limit:
            raise LimitExceeded("body in bytes", limit=self.limit, requested=len(body))
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))

    def _received(self, stream: Any, declared: int | None) -> bytes:  # noqa: ANN401 - a server's own
        waits = not getattr(stream, "is_whole", False)
        if waits and not self._turns.taken():
            raise Busy("too many request bodies are being read")
        try:
            return bytes(stream.read(self.limit + 1 if declared is None else declared))
        except OSError as error:
            raise Vanished from error
        finally:
            if waits:
                self._turns.leave()


def _declared_length(environ: Environ) -> int | None:
    text = environ.get("CONTENT_LENGTH")
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit()):
        raise InvalidDescription("content-length header must be an integer")
    return int(text)
