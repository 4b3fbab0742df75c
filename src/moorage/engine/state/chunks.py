"""A long sequence in chunks: a changed copy shares every chunk in which nothing changed.

So a commit copies as much as it touched, not as much as the fleet is long, and whoever derives
something from a chunk knows by its identity whether that still holds.
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
    """An immutable sequence; `parts` are its chunks in order."""

    __slots__ = ("_length", "parts")

    def __init__(self, items: Iterable[T] = ()) -> None:
        every = tuple(items)
        self._length = len(every)
        self.parts = tuple(every[at : at + SIZE] for at in range(0, len(every), SIZE))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> T:
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self.parts[index // SIZE][index % SIZE]

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.parts)

    def replaced(self, changes: Mapping[int, T], *, length: int, filler: T) -> Chunks[T]:
        """A copy of at least the same `length`, with other items at some indices.

        New indices that `changes` leaves out hold `filler`.
        """
        parts = list(self.parts)
        if length > self._length:
            first = self._length // SIZE
            tail = [*chain.from_iterable(parts[first:]), *[filler] * (length - self._length)]
            parts[first:] = [tuple(tail[at : at + SIZE]) for at in range(0, len(tail), SIZE)]
        touched: dict[int, list[T]] = {}
        for index, item in changes.items():
            number, at = divmod(index, SIZE)
            if number not in touched:
                touched[number] = list(parts[number])
            touched[number][at] = item
        for number, items in touched.items():
            parts[number] = tuple(items)
        made: Chunks[T] = Chunks()
        made._length, made.parts = length, tuple(parts)
        return made
