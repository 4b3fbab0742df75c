"""An immutable sequence stored in chunks: a changed copy shares every unchanged chunk.

A commit copies only the chunks that it changes, not the whole fleet. Values derived from a chunk
stay valid as long as the chunk is the same object.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

T = TypeVar("T")

SIZE: Final = 512
"""Items of every chunk but the last one."""


class Chunks(Generic[T]):
    """An immutable sequence; `chunks` are its tuples of `SIZE` items, in order."""

    __slots__ = ("_length", "chunks")

    def __init__(self, items: Iterable[T] = ()) -> None:
        every = tuple(items)
        self._length = len(every)
        self.chunks = tuple(every[at : at + SIZE] for at in range(0, len(every), SIZE))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> T:
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self.chunks[index // SIZE][index % SIZE]

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.chunks)

    def replaced(self, changes: Mapping[int, T], *, length: int, filler: T) -> Chunks[T]:
        """A copy of at least the same `length`, with other items at some indices.

        New indices that `changes` leaves out hold `filler`.
        """
        chunks = list(self.chunks)
        if length > self._length:
            first = self._length // SIZE
            tail = [*chain.from_iterable(chunks[first:]), *[filler] * (length - self._length)]
            chunks[first:] = [tuple(tail[at : at + SIZE]) for at in range(0, len(tail), SIZE)]
        touched: dict[int, list[T]] = {}
        for index, item in changes.items():
            number, at = divmod(index, SIZE)
            if number not in touched:
                touched[number] = list(chunks[number])
            touched[number][at] = item
        for number, items in touched.items():
            chunks[number] = tuple(items)
        copy: Chunks[T] = Chunks()
        copy._length, copy.chunks = length, tuple(chunks)
        return copy
