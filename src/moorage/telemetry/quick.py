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

        together = lock
        """Held while any of them is added to."""

        def inc(self, amount: float) -> None:
            """Add."""
            with lock:
                _add(self, amount)

    return Quick


def _add(value: Any, amount: float) -> None:  # noqa: ANN401 - a `Quick`, which is locked
    value._value += amount  # noqa: SLF001 - the library has no quicker way
    file = value._file  # noqa: SLF001
    _WRITE(file._m, file._positions[value._key], value._value)  # noqa: SLF001 - as `write_value` does


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


class Tally:
    """Events of one kind: how many there were, and how long they took."""

    __slots__ = ("_bounds", "_buckets", "_count", "_count_value", "_durations", "_sum", "_together")

    def __init__(self, count: QuickCounter, durations: QuickHistogram) -> None:
        self._count, self._durations = count, durations
        self._count_value: Any = count._value  # noqa: SLF001 - what the two add to
        self._sum: Any = durations._sum  # noqa: SLF001
        self._buckets: Any = durations._buckets  # noqa: SLF001
        self._bounds = durations._upper_bounds  # noqa: SLF001
        self._together: Any = getattr(self._sum, "together", None)

    def __call__(self, seconds: float) -> None:
        """One more, that took so long: `inc` and `observe` at one go."""
        if self._together is None:  # the library's own values, each with a lock of its own
            self._count.inc()
            self._durations.observe(seconds)
            return
        bucket = self._buckets[bisect_left(self._bounds, seconds)]
        with self._together:
            _add(self._count_value, 1)
            _add(self._sum, seconds)
            _add(bucket, 1)
