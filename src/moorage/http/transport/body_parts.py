"""A large response body from ready texts, joined and released as they are sent.

Texts may be shared with others that are sent the same, from a cache say: an answer that waits for
its client costs a reference to each and no copy.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WHOLE: Final = 1024 * 1024
"""Bytes of a body that is sent in one piece. A larger piece would be copied on its way out into
fresh memory each time, which costs more than sending it."""
_PIECE: Final = 128 * 1024
"""Bytes that are worth being sent by themselves."""


class BodyParts:
    """An iterator over the pieces of a body, each of an efficient size to send.

    Bytes that are long enough are a piece by themselves, without a copy.
    """

    __slots__ = ("_texts", "size")

    def __init__(self, texts: Iterable[bytes | memoryview]) -> None:
        self._texts = deque(texts)
        self.size = sum(map(len, self._texts))
        """Bytes that are left."""

    def __iter__(self) -> BodyParts:
        return self

    def __next__(self) -> bytes:
        texts = self._texts
        if not texts:
            raise StopIteration
        first = texts.popleft()
        if isinstance(first, bytes) and len(first) >= _PIECE:
            piece = first
        else:
            some, size = [first], len(first)
            while texts and size < _PIECE and len(texts[0]) < _PIECE:
                some.append(texts.popleft())
                size += len(some[-1])
            piece = b"".join(some)
        self.size -= len(piece)
        return piece


def packed(texts: Sequence[bytes | memoryview]) -> list[bytes] | BodyParts:
    """A small body in one piece, a large one in several."""
    if sum(map(len, texts)) <= _WHOLE:
        return [b"".join(texts)]
    return BodyParts(texts)
