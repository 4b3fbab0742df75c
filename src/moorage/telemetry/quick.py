"""The library's counting, at a third of its cost: every request and every commit is counted.

What a process counts still stands in its file at once, and outlives it. Left out is what the
library does each time for programs that fork or replace its parts.
"""

from __future__ import annotations

from bisect import bisect_left
from struct import Struct
from threading import Lock
from typing import Any, Final

from prometheus_client import Counter, Histogram

_WRITE: Final = Struct("d").pack_into


def quick(kind: Any) -> Any:  # noqa: ANN401 - a class that the library makes anew for each process
    """The kind of value that a process keeps in its file, adding up quickly."""
    lock = Lock()

    class Quick(kind):  # type: ignore[misc]  # it has no annotations
        """See `quick`."""

        def inc(self, amount: float) -> None:
            """Add."""
            file, key = self._file, self._key
            with lock:
                self._value += amount
                _WRITE(file._m, file._positions[key], self._value)  # noqa: SLF001 - as `write_value` does

    return Quick


class QuickHistogram(Histogram):
    """A histogram that finds its bucket by halves, and keeps no exemplars."""

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:  # noqa: ARG002 - the library's signature
        """Count a value; some child's, where there are labels."""
        self._sum.inc(amount)
        self._buckets[bisect_left(self._upper_bounds, amount)].inc(1)


class QuickCounter(Counter):
    """A counter that keeps no exemplars."""

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:  # noqa: ARG002 - the library's signature
        """Add to some child, where there are labels."""
        self._value.inc(amount)
