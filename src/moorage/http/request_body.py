"""Reading a request's body whole, within bounds, before anything acts on it.

A dialect gets bytes that are all there: a client that vanishes half-way never causes half a write.
"""

from __future__ import annotations

import errno
import io
import re
import time
from threading import Lock
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy, InvalidDescription, LimitExceeded

if TYPE_CHECKING:
    from moorage.http.wsgi import Environ


class ClientGone(Exception):
    """The client disconnected before its body was complete; no response can be sent."""


def receive(environ: Environ, limit: int) -> bytes:
    """Put the complete body in `wsgi.input`, and its length in `CONTENT_LENGTH` if it has one.

    Returns the body.

    Raises:
        InvalidDescription: Content-Length is no number, or JSON in it has a text that cannot be
            stored (see `_check_escapes`).
        LimitExceeded: the body is longer than the limit.
        Busy: too many bodies are on their way to this process.
        Vanished: the client left, or took too long.
    """
    declared = _declared_length(environ)
    if declared is not None and declared > limit:
        raise LimitExceeded("body in bytes", limit=limit, requested=declared)
    if declared == 0 or (declared is None and "HTTP_TRANSFER_ENCODING" not in environ):
        environ["wsgi.input"] = io.BytesIO()
        return b""
    try:
        body: bytes = environ["wsgi.input"].read(limit + 1 if declared is None else declared)
    except OSError as error:
        if error.errno == errno.ENOBUFS:
            raise Busy("too many request bodies are on their way") from error
        raise ClientGone from error
    if declared is not None and len(body) < declared:
        raise ClientGone
    if len(body) > limit:
        raise LimitExceeded("body in bytes", limit=limit, requested=len(body))
    _check_escapes(body)
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
    return body


MAX_VALUES: Final = 200_000
"""Values and keys in the JSON of a tenant's body: as many as a template may have."""


def check_values(body: bytes) -> None:
    """Return if a JSON body has no more values than may be: each takes time and memory to decode.

    Raises:
        LimitExceeded: it has more.
    """
    if len(body) > 2 * MAX_VALUES:  # a separator and a digit each
        with _READING:
            values = count_values(body, MAX_VALUES)
        if values > MAX_VALUES:
            raise LimitExceeded("body in values", limit=MAX_VALUES, requested=values)


PIECE: Final = 128 * 1024
"""Bytes that are looked at in one go, which holds the interpreter for a millisecond at most."""
_READING: Final = Lock()
"""Large bodies are looked at one at a time: each thread at it delays all others."""
_LETTING: Final = 0.0005
"""Seconds for other threads after each piece of a large body."""


def count_values(body: bytes, most: int, piece: int = PIECE) -> int:
    """The commas and colons of JSON that do not stand in texts; makes no object for each.

    Stops after the first piece of the body with which there are more than `most`.
    """
    values, in_text, start = 0, 0, 0
    while start < len(body) and values <= most:
        if start:
            time.sleep(_LETTING)
        # A piece ends behind no backslash: it has every escape whole.
        end = _NO_BACKSLASH.search(body, start + piece - 1)
        stop = len(body) if end is None else end.end()
        part = body[start:stop].replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHERS)
        # Without escapes each quote begins or ends a text; most texts have no comma nor colon.
        texts = part.replace(b'""', b"").split(b'"')
        values += sum(map(len, texts[in_text::2]))
        in_text = (in_text + len(texts) - 1) % 2
        start = stop
    return values


_NO_BACKSLASH: Final = re.compile(rb"[^\\]")
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in b'",:')
_ESCAPES: Final = re.compile(
    rb"\\(?:u(?:"
    rb"(?P<nul>0000)"
    rb"|[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<first>))"
    rb"|(?P<second>[dD][c-fC-F][0-9a-fA-F]{2})"
    rb")|.)",
    re.DOTALL,
)
"""What a backslash begins in JSON; the named ones stand for what no text can hold."""


def _check_escapes(body: bytes) -> None:
    """Return if no text of a JSON body holds NUL, or half of a pair of surrogates.

    PostgreSQL keeps no NUL, and UTF-8 knows no half of a pair. Unescaped, both are no JSON. All
    dialects are kept from them here, for every database.

    Raises:
        InvalidDescription: one does.
    """
    if len(body) <= PIECE:
        if b"\\u" in body:
            _check_each_escape(body)
        return
    with _READING:
        for start in range(0, len(body), PIECE):
            if start:
                time.sleep(_LETTING)
            if body.find(b"\\u", start, start + PIECE + 1) >= 0:
                _check_each_escape(body)
                break


def _check_each_escape(body: bytes) -> None:
    for number, found in enumerate(_ESCAPES.finditer(body)):
        if number % _ESCAPES_AT_ONCE == _ESCAPES_AT_ONCE - 1:
            time.sleep(_LETTING)
        if found.lastgroup is not None:
            what = "NUL" if found.lastgroup == "nul" else "half of a pair of surrogates"
            raise InvalidDescription(
                f"a text in the body holds {what} ({found[0].decode('ascii')[:6]}, at byte"
                f" {found.start()}), which cannot be stored"
            )


def _declared_length(environ: Environ) -> int | None:
    text = environ.get("CONTENT_LENGTH")
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit()):
        raise InvalidDescription("content-length header must be an integer")
    # Cut off, a number of so many digits is still beyond every limit.
    return int(text.lstrip("0")[:_DIGITS] or "0")


_DIGITS: Final = 18
_ESCAPES_AT_ONCE: Final = 5_000
