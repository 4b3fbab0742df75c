"""Capacity freed between two snapshots, and whether a waiting request could use it.

A necessary condition only: without freed capacity a refused request need not be tried again.
Capacity that may have been freed counts as freed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.period import FOREVER, Period

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant
    from moorage.engine.state.snapshot import ProviderState, Snapshot

ALL_CLASSES: Final = ""
"""Stands for every resource class."""

Span = tuple[str, int, int]
"""A class (or `ALL_CLASSES`) of which something was freed, from when and until when."""

_ALWAYS: Final = (0, FOREVER)


def freed(old: Snapshot, new: Snapshot) -> Iterator[Span]:
    """Spans of capacity that may be free in the newer snapshot and were not in the older one.

    From bookings that were deleted, shortened or have lapsed, and from providers that were added or
    changed. A change of the topology frees `ALL_CLASSES`.
    """
    if old.topology_revision != new.topology_revision:
        yield ALL_CLASSES, *_ALWAYS
        return
    for row in _changed(old, new):
        after = new.state(row)
        before = old.states[row] if row < len(old.states) else None
        if before is None or before.form != after.form:
            yield from _all_of(after)
        else:
            yield from _ended_bookings(before, old.taken_at, after, new.taken_at)


def _changed(old: Snapshot, new: Snapshot) -> list[int]:
    """Living rows that a commit or time has changed since."""
    both = min(len(old.revisions), len(new.revisions))
    moved = np.ones(len(new.revisions), dtype=np.bool_)
    moved[:both] = (old.revisions[:both] != new.revisions[:both]) | (
        old.next_change[:both] <= new.taken_at
    )
    found: list[int] = np.flatnonzero(moved & new.alive).tolist()
    return found


def _all_of(state: ProviderState) -> Iterator[Span]:
    for one in state.provider.inventories:
        yield one.resource_class, *_ALWAYS


def _ended_bookings(
    before: ProviderState, then: Instant, after: ProviderState, now: Instant
) -> Iterator[Span]:
    """Spans booked before and not after; a hold that became a server is booked in both."""
    left = Counter(_spans(before.bookings, then))
    left.subtract(_spans(after.bookings, now))
    for (name, start, end, amount), count in left.items():
        if amount and count > 0 and end > now:
            yield name, start, end


def _spans(bookings: tuple[Booking, ...], now: Instant) -> Iterator[tuple[str, int, int, int]]:
    for one in bookings:
        if one.live(now):
            for name, amount in one.amounts.items():
                yield name, one.period.start, one.occupies_until(now), amount


_MAX_SPANS: Final = 100_000
"""Spans kept in a log; for older marks `FreedLog.since` is always True."""


@dataclass
class FreedLog:
    """Log of freed spans, as columns. A mark is a position in it: how many spans were before."""

    mark: int = 0
    """The end of the log."""
    _oldest: int = 0
    _numbers: dict[str, int] = field(default_factory=lambda: {ALL_CLASSES: 0})
    _columns: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    """[n, 3] class number, start, end."""

    def add(self, spans: Iterator[Span]) -> None:
        """Append spans."""
        numbers = self._numbers
        rows = [(numbers.setdefault(name, len(numbers)), a, b) for name, a, b in spans]
        if not rows:
            return
        every = np.concatenate((self._columns, np.array(rows, dtype=np.int64)))
        self.mark += len(rows)
        self._columns = every[-_MAX_SPANS:]
        self._oldest = self.mark - len(self._columns)

    def since(self, mark: int, classes: Collection[str], period: Period) -> bool:
        """Whether any of these classes was freed within a period, after a mark."""
        if mark < self._oldest:
            return True
        kind, start, end = self._columns[mark - self._oldest :].T
        kinds = [self._numbers[one] for one in (ALL_CLASSES, *classes) if one in self._numbers]
        meant = np.isin(kind, kinds) & (start < period.end) & (end > period.start)
        return bool(meant.any())
