"""Occupancy over time: sums of half-open spans, as columns.

A span adds its amount to its owner's level during `[start, end)`. Levels change only where a span
starts or ends, so only these instants are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from moorage.domain.period import Instant, Period

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class OwnerReplacement:
    """Replaces the rows of some owners in columns sorted by owner; other runs are copied whole."""

    pieces: list[tuple[int, int, int, int]]
    """Per owner: `[first, last)` of the rows to remove, `[begin, end)` of the new rows."""

    @classmethod
    def of(cls, owner: Ints, replaced: Ints, fresh: Ints) -> OwnerReplacement:
        """For the columns of `owner`.

        Args:
            owner: the owner of each row, ascending.
            replaced: owners that get other rows, ascending and distinct.
            fresh: owners of the new rows, ascending, all of them in `replaced`.
        """
        edges = (
            column.searchsorted(replaced, side) for column in (owner, fresh) for side in _SIDES
        )
        return cls(list(zip(*(one.tolist() for one in edges), strict=True)))

    def column(self, old: Ints, fresh: Ints) -> Ints:
        """Apply the replacement to one column, with its new rows in `fresh`."""
        parts: list[Ints] = []
        at = 0
        for first, last, begin, end in self.pieces:
            parts += (old[at:first], fresh[begin:end])
            at = last
        return np.concatenate((*parts, old[at:]))


_SIDES: Final[tuple[Literal["left"], Literal["right"]]] = ("left", "right")


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """t spans as columns of equal length; amounts are not negative."""

    owner: Ints
    """[t] owner number; its meaning (provider row, index, ...) is up to the caller."""
    start: Ints
    end: Ints
    amount: Ints

    def __len__(self) -> int:
        return len(self.owner)

    @classmethod
    def of(cls, items: Iterable[tuple[int, Instant, Instant, int]]) -> Spans:
        """Columns from `(owner, start, end, amount)`."""
        table = np.array(list(items), dtype=np.int64).reshape(-1, 4)
        return cls(*(np.ascontiguousarray(table[:, column]) for column in range(4)))

    def selected(self, mask: Bools) -> Spans:
        """Only the spans that `mask` [t] selects."""
        return Spans(self.owner[mask], self.start[mask], self.end[mask], self.amount[mask])

    def levels_at(self, at: Instant, count: int) -> Ints:
        """[count] the level of each owner at an instant."""
        found = np.zeros(count, dtype=np.int64)
        covering = (self.start <= at) & (at < self.end)
        np.add.at(found, self.owner[covering], self.amount[covering])
        return found

    def with_owners(self, replaced: Ints, fresh: Spans) -> Spans:
        """The spans with those of some owners replaced by `fresh`; all sorted by owner."""
        if not len(self):
            return fresh
        splice = OwnerReplacement.of(self.owner, replaced, fresh.owner)
        if all(first == last and begin == end for first, last, begin, end in splice.pieces):
            return self
        return Spans(
            splice.column(self.owner, fresh.owner),
            splice.column(self.start, fresh.start),
            splice.column(self.end, fresh.end),
            splice.column(self.amount, fresh.amount),
        )

    def joined(self, other: Spans) -> Spans:
        """These spans followed by the others."""
        if not len(other):
            return self
        return Spans(
            np.concatenate((self.owner, other.owner)),
            np.concatenate((self.start, other.start)),
            np.concatenate((self.end, other.end)),
            np.concatenate((self.amount, other.amount)),
        )


NO_SPANS = Spans.of(())
"""No spans at all."""


def peaks(spans: Spans, count: int, window: Period) -> Ints:
    """The highest level of each owner at any instant of `window`.

    Args:
        spans: with owners in `range(count)`. Amounts may be negative as long as no owner's level
            is.
        count: how many owners there are.
        window: half-open; a span that only touches it does not count.

    Returns:
        [count] peaks, 0 for an owner without a span in the window.
    """
    found = np.zeros(count, dtype=np.int64)
    overlapping = spans.selected((spans.start < window.end) & (spans.end > window.start))
    # Spans that are there from the first instant on need no sorting, and most last to the end.
    rising, falling = overlapping.start > window.start, overlapping.end < window.end
    np.add.at(found, overlapping.owner[~rising], overlapping.amount[~rising])
    owner = np.concatenate((overlapping.owner[rising], overlapping.owner[falling]))
    if not len(owner):
        return found
    instant = np.concatenate((overlapping.start[rising], overlapping.end[falling]))
    change = np.concatenate((overlapping.amount[rising], -overlapping.amount[falling]))
    # Decreases before increases at one instant: spans that touch do not overlap.
    order = np.lexsort((change, instant, owner))
    owner, change = owner[order], change[order]
    level = np.cumsum(change)
    first = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    before = np.where(first > 0, level[first - 1], 0)
    highest = np.maximum.reduceat(level, first) - before
    found[owner[first]] += np.maximum(highest, 0)
    return found


def levels(spans: Spans, instants: Ints) -> Ints:
    """The summed level of all owners' spans at each of `instants` [k], ascending."""
    change = np.zeros(len(instants) + 1, dtype=np.int64)
    np.add.at(change, np.searchsorted(instants, spans.start), spans.amount)
    np.subtract.at(change, np.searchsorted(instants, spans.end), spans.amount)
    level: Ints = np.cumsum(change[:-1])
    return level


def breakpoints(spans: Iterable[Spans], since: Instant) -> Ints:
    """`since` and every later instant at which a level may change, ascending and distinct."""
    edges = [np.array([since], dtype=np.int64)]
    for one in spans:
        edges += [one.start[one.start > since], one.end[one.end > since]]
    return np.unique(np.concatenate(edges))
