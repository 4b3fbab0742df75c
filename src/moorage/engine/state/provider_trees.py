"""Provider trees as columns: children and whole trees of a row without walking the fleet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows sorted by a key row (their root, or their parent)."""

    order: Rows
    keys: Rows

    @classmethod
    def by(cls, key: Rows, members: Bools) -> Grouping:
        """Group the rows that `members` [P] selects by `key` [P]."""
        rows = np.flatnonzero(members).astype(np.int32)
        order = rows[np.argsort(key[rows], kind="stable")]
        return cls(order=order, keys=key[order])

    @cached_property
    def is_single(self) -> bool:
        """Whether no two rows have the same key."""
        return not bool((self.keys[1:] == self.keys[:-1]).any())

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """Every key, ascending."""
        new = np.concatenate(([True], self.keys[1:] != self.keys[:-1]))[: len(self.keys)]
        return self.keys[new].astype(np.int64)

    def of(self, key: int) -> Rows:
        """The rows with that key, ascending."""
        one = self.keys.dtype.type(key)
        return self.order[self.keys.searchsorted(one) : self.keys.searchsorted(one, "right")]

    def of_all(self, wanted: NDArray[np.integer]) -> NDArray[np.int64]:
        """The rows with each of the wanted keys, key by key."""
        return ranges(self.keys, self.order, wanted)[1]


def ranges(
    keys: NDArray[np.integer], values: NDArray[np.integer], wanted: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All values under each wanted key: (index of the key, value) pairs, key by key.

    `keys` are ascending, and may be repeated.
    """
    # Sought as another type, every key would be turned into that first.
    sought = wanted.astype(keys.dtype, copy=False)
    first, last = keys.searchsorted(sought), keys.searchsorted(sought, "right")
    if len(wanted) == 1:
        one = values[first[0] : last[0]]
        return np.zeros(len(one), dtype=np.int64), one.astype(np.int64)
    count = last - first
    of = np.repeat(np.arange(len(wanted)), count)
    at = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count) + first[of]
    return of, values[at].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Forest:
    """All living provider trees."""

    trees: Grouping
    families: Grouping
    parent: Rows
    """[P] parent row or -1."""

    @classmethod
    def of(cls, parent: Rows, root: Rows, alive: Bools) -> Forest:
        """Index the columns of a snapshot."""
        return cls(
            trees=Grouping.by(root, alive),
            families=Grouping.by(parent, alive & (parent >= 0)),
            parent=parent,
        )

    @cached_property
    def above(self) -> Rows:
        """[P] where among the rows of its tree each row's parent is, or -1."""
        keys = self.trees.keys
        place = np.full(len(self.parent) + 1, -1, dtype=np.int32)  # the last for row -1: nobody
        place[self.trees.order] = np.arange(len(keys)) - keys.searchsorted(keys)
        return place[self.parent]
