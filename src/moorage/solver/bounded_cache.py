"""A bounded cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

V = TypeVar("V")


class BoundedCache(Generic[V]):
    """At most so many values by key: the one that was not used for longest gives way."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[Hashable, V] = {}

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value under a key, made if there is none."""
        found = self._values.pop(key, None)
        if found is None:
            found = make()
            while len(self._values) >= self._most:
                del self._values[next(iter(self._values))]
        self._values[key] = found
        return found
