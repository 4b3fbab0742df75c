"""Columns derived from a snapshot and kept for the next one, up to a number of bytes.

What is kept has what it was made from with it, so a reader can check whether it still holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")

BYTES_KEPT: Final = 64 << 20
"""Bytes kept at most, beside the newest value."""


class KeptColumns(Generic[K, V]):
    """Values by key; those that were not read for longest are dropped.

    Safe in threads: at worst a value is made twice.
    """

    def __init__(self, most: int = BYTES_KEPT) -> None:
        """Keep so many bytes at most."""
        self._most = most
        self._values: dict[K, tuple[V, int]] = {}
        """Value and bytes; what was read last is last."""

    @property
    def size(self) -> int:
        """Bytes kept."""
        return sum(size for _, size in list(self._values.values()))

    def get(self, key: K) -> V | None:
        """The value of a key, which now counts as read last."""
        found = self._values.pop(key, None)
        if found is None:
            return None
        self._values[key] = found
        return found[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keep a value of so many bytes."""
        self._values.pop(key, None)
        self._values[key] = value, size
        every = list(self._values.items())
        excess = sum(one for _, (_, one) in every) - self._most
        for oldest, (_, one) in every[:-1]:
            if excess <= 0:
                return
            self._values.pop(oldest, None)
            excess -= one


def are_same(
    before: Sequence[NDArray[np.generic] | None], now: Sequence[NDArray[np.generic] | None]
) -> bool:
    """Whether arrays that something was made from still have the same values.

    A snapshot shares what has not changed, so most are the same object.
    """
    return len(before) == len(now) and all(
        one is other or (one is not None and other is not None and np.array_equal(one, other))
        for one, other in zip(before, now, strict=True)
    )
