"""Capacity freed between two snapshots, and whether a waiting request could use it.

Nothing here says that a request fits: only that it is not worth looking where nothing was freed.
Whatever may have been freed counts; what was only taken does not.
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

EVERYTHING: Final = ""
"""Stands for every resource class."""

Span = tuple[str, int, int]
"""A class (or `EVERYTHING`) of which something was freed, from when and until when."""

_ALWAYS: Final = (0, FOREVER)


def freed(old: Snapshot, new: Snapshot) -> Iterator[Span]:
    """What may be free in the newer snapshot that was not in the older one.

    Bookings that are there no more, or not as long; hosts that came, came back or have more; what
    has lapsed by time alone. Another topology counts as everything.
    """
    if old.topology_revision != new.topology_revision:
        yield EVERYTHING, *_ALWAYS
        return
    for row in _changed(old, new):
        after = new.state(row)
        before = old.states[row] if row < len(old.states) else None
        if before is None or _equipped(before) != _equipped(after):
            yield from _all_of(after)
        else:
            yield from _gone(before, old.taken_at, after, new.taken_at)


def _changed(old: Snapshot, new: Snapshot) -> list[int]:
    """Living rows that a commit has touched since, or time has changed."""
    both = min(len(old.revisions), len(new.revisions))
    moved = np.ones(len(new.revisions), dtype=np.bool_)
    moved[:both] = (old.revisions[:both] != new.revisions[:both]) | (
        old.breaks[:both] <= new.taken_at
    )
    found: list[int] = np.flatnonzero(moved & new.alive).tolist()
    return found


def _equipped(state: ProviderState) -> tuple[object, ...]:
    """All of a provider that says what fits there, but for who is there."""
    one = state.provider
    return (one.uuid, one.inventories, one.traits, one.aggregates, one.root_uuid, state.down)


def _all_of(state: ProviderState) -> Iterator[Span]:
    for one in state.provider.inventories:
        yield one.resource_class, *_ALWAYS


def _gone(
    before: ProviderState, then: Instant, after: ProviderState, now: Instant
) -> Iterator[Span]:
    """What was booked and is not: a hold that became a server has not gone."""
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


_KEPT: Final = 100_000
"""Spans that are remembered; who was looked at longer ago is looked at again."""


@dataclass
class FreedLog:
    """Spans in the order in which they were seen, as columns. A mark is a place in it."""

    mark: int = 0
    """After everything so far."""
    _oldest: int = 0
    _numbers: dict[str, int] = field(default_factory=lambda: {EVERYTHING: 0})
    _columns: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    """[n] the number of a class, from when, until when."""

    def add(self, spans: Iterator[Span]) -> None:
        """Note what was freed."""
        numbers = self._numbers
        rows = [(numbers.setdefault(name, len(numbers)), a, b) for name, a, b in spans]
        if not rows:
            return
        every = np.concatenate((self._columns, np.array(rows, dtype=np.int64)))
        self.mark += len(rows)
        self._columns = every[-_KEPT:]
        self._oldest = self.mark - len(self._columns)

    def since(self, mark: int, classes: Collection[str], period: Period) -> bool:
        """Whether something of these classes was freed in a period, after a mark."""
        if mark < self._oldest:
            return True
        kind, start, end = self._columns[mark - self._oldest :].T
        wanted = [self._numbers[one] for one in (EVERYTHING, *classes) if one in self._numbers]
        meant = np.isin(kind, wanted) & (start < period.end) & (end > period.start)
        return bool(meant.any())
