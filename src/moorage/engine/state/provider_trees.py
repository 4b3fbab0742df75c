"""Index of provider trees as columns: the children, the tree and the parent position of a row."""

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
    """Rows (`order`) sorted by a key row (`keys`): their root, or their parent."""

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

    def rows_of(self, key: int) -> Rows:
        """The rows with that key, ascending."""
        one = self.keys.dtype.type(key)
        return self.order[self.keys.searchsorted(one) : self.keys.searchsorted(one, "right")]

    def rows_of_all(self, keys_wanted: NDArray[np.integer]) -> NDArray[np.int64]:
        """The rows with each of the wanted keys, key by key."""
        return values_by_key(self.keys, self.order, keys_wanted)[1]


def values_by_key(
    keys: NDArray[np.integer], values: NDArray[np.integer], keys_wanted: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All values of each wanted key, as two arrays: index into `keys_wanted`, value.

    `keys` are ascending, and may be repeated.
    """
    # searchsorted with another type would convert every key first.
    sought = keys_wanted.astype(keys.dtype, copy=False)
    first, last = keys.searchsorted(sought), keys.searchsorted(sought, "right")
    if len(keys_wanted) == 1:
        one = values[first[0] : last[0]]
        return np.zeros(len(one), dtype=np.int64), one.astype(np.int64)
    count = last - first
    of = np.repeat(np.arange(len(keys_wanted)), count)
    at = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count) + first[of]
    return of, values[at].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Forest:
    """All living provider trees: rows by root (`trees`) and by parent (`children`)."""

    trees: Grouping
    children: Grouping
    parent: Rows
    """[P] parent row or -1."""

    @classmethod
    def of(cls, parent: Rows, root: Rows, alive: Bools) -> Forest:
        """Index the columns of a snapshot."""
        return cls(
            trees=Grouping.by(root, alive),
            children=Grouping.by(parent, alive & (parent >= 0)),
            parent=parent,
        )

    @cached_property
    def parent_position(self) -> Rows:
        """[P] position of each row's parent among the rows of its tree, or -1."""
        keys = self.trees.keys
        place = np.full(
            len(self.parent) + 1, -1, dtype=np.int32
        )  # the last is for row -1: no parent
        place[self.trees.order] = np.arange(len(keys)) - keys.searchsorted(keys)
        return place[self.parent]
