"""Response bodies of falcon dialects: short ones whole, long ones streamed."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    import falcon

PIECE: Final = 64 * 1024
"""Bytes that are worth being sent by themselves; an answer that is no longer is sent whole."""


def send(resp: falcon.Response, parts: Iterator[bytes]) -> None:
    """Answer with these bytes. The first piece is made at once, the others as they are sent."""
    pieces = _pieces(parts)
    first = next(pieces, b"")
    second = next(pieces, None) if len(first) >= PIECE else None
    if second is None:
        resp.data = first
    else:
        resp.stream = chain((first, second), pieces)


def _pieces(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes, in pieces of `PIECE` bytes at least but for the last."""
    some: list[bytes] = []
    size = 0
    for part in parts:
        some.append(part)
        size += len(part)
        if size >= PIECE:
            yield b"".join(some)
            some, size = [], 0
    if some:
        yield b"".join(some)
