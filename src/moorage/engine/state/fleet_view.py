"""What candidate search reads: a whole snapshot, or a subset of its provider trees.

Reading a subset costs as much as the subset is large, not as much as the fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import numpy as np

from moorage.engine.state.provider_trees import Grouping, values_by_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.state.columns import ClassColumns
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]
    RowSelector: TypeAlias = NDArray[np.integer] | slice

T = TypeVar("T")
U = TypeVar("U")


class InventoryColumns(Protocol):
    """The columns of one resource class that candidate search reads; see `ClassColumns`."""

    @property
    def rows(self) -> Rows:
        """[n] rows that have the class, ascending."""

    @property
    def position(self) -> Rows:
        """[P] index into these columns per row, or -1."""

    @property
    def min_unit(self) -> Ints:
        """[n]."""

    @property
    def max_unit(self) -> Ints:
        """[n]."""

    @property
    def step_size(self) -> Ints:
        """[n]."""

    @property
    def capacity(self) -> Ints:
        """[n]."""

    @property
    def peak(self) -> Ints:
        """[n]."""

    @property
    def max_addition_by_row(self) -> Ints:
        """[P] the largest amount that one more open-ended booking can have, or -1."""

    @property
    def has_unit_rules(self) -> bool:
        """Whether any inventory has a `min_unit` or a `step_size` other than 1."""


class TreeView(Protocol):
    """P provider rows with trees, traits and aggregates, without inventories; see `Snapshot`."""

    @property
    def root(self) -> Rows:
        """[P] root row."""

    @property
    def parent_position(self) -> Rows:
        """[P] position of the parent among the rows of its tree (in `trees`), or -1."""

    @property
    def alive(self) -> Bools:
        """[P] False for rows of deleted providers."""

    @property
    def traits(self) -> Mapping[str, Bools]:
        """Trait -> [P] mask."""

    @property
    def aggregates(self) -> Mapping[str, Rows]:
        """Aggregate UUID -> rows, ascending."""

    @property
    def trees(self) -> Grouping:
        """Living rows by root."""


class FleetView(TreeView, Protocol):
    """A `TreeView` with the providers' inventories."""

    @property
    def classes(self) -> Mapping[str, InventoryColumns]:
        """Columns by resource class."""


class _LazyMapping(Mapping[str, U]):
    """A mapping whose values are made from those of another by a function, at first lookup.

    The function must not refer to anything that refers to this mapping: in a reference cycle,
    megabytes of columns would wait for the garbage collector.
    """

    def __init__(self, source: Mapping[str, T], change: Callable[[str, T], U]) -> None:
        self._source = source
        self._change: Callable[..., U] = change
        self._made: dict[str, U] = {}

    def __getitem__(self, key: str) -> U:
        if key not in self._made:
            self._made[key] = self._change(key, self._source[key])
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._source)

    def __len__(self) -> int:
        return len(self._source)


@dataclass(frozen=True, eq=False)
class _Positions:
    """Positions of some rows in one class's columns."""

    rows: Rows
    """[n] the rows that have the class, ascending."""
    position: Rows
    """[P] index into `selector` per row, or -1."""
    selector: RowSelector
    """[n] positions in the columns of the whole fleet."""


class _SubsetColumns:
    """One class's columns for the rows of a `TreeSubset`."""

    def __init__(self, whole: ClassColumns, subset: TreeSubset) -> None:
        self._whole = whole
        self._subset = subset

    @property
    def rows(self) -> Rows:
        return self._positions.rows

    @property
    def position(self) -> Rows:
        return self._positions.position

    @property
    def min_unit(self) -> Ints:
        return self._whole.min_unit[self._positions.selector]

    @property
    def max_unit(self) -> Ints:
        return self._whole.max_unit[self._positions.selector]

    @property
    def step_size(self) -> Ints:
        return self._whole.step_size[self._positions.selector]

    @property
    def capacity(self) -> Ints:
        return self._whole.capacity[self._positions.selector]

    @property
    def peak(self) -> Ints:
        return self._whole.peak[self._positions.selector]

    @property
    def max_addition_by_row(self) -> Ints:
        return self._whole.max_addition_by_row[self._subset.selector]

    @property
    def has_unit_rules(self) -> bool:
        return self._whole.has_unit_rules

    @cached_property
    def _positions(self) -> _Positions:
        return self._subset.positions_in(self._whole)


class TreeSubset:
    """Some provider trees without their inventories: what bookings do not change.

    Rows are tree by tree, in the order of the roots. Consecutive rows are read as slices, without a
    copy; others are copied.
    """

    def __init__(self, snapshot: Snapshot, roots: Ints) -> None:
        """Select the trees with these root rows, ascending."""
        trees = snapshot.forest.trees
        if trees.is_single:
            self.rows = roots
            self.root = self._all_rows = np.arange(len(roots), dtype=np.int32)
        else:
            of, self.rows = values_by_key(trees.keys, trees.order, roots)
            self._all_rows = np.arange(len(self.rows), dtype=np.int32)
            self.root = self._all_rows[self.rows == roots[of]][of]
        self.selector = _selector(self.rows)
        """Selects the rows from columns of the whole fleet."""
        self.alive = snapshot.alive[self.selector]  # all True: trees have only living rows
        self.trees = Grouping(self._all_rows, self.root)
        # Not the snapshot itself: a cached subset would keep all its bookings in memory.
        self._forest = snapshot.forest
        self.traits: Mapping[str, Bools] = _LazyMapping(
            snapshot.traits, partial(_mask, self.selector)
        )
        """Trait -> mask over these rows."""
        self.aggregates: Mapping[str, Rows] = _LazyMapping(
            snapshot.aggregates, partial(_members, self.rows)
        )
        """Aggregate UUID -> its members among these rows."""

    @property
    def parent_position(self) -> Rows:
        """[P]."""
        return self._forest.parent_position[self.selector]

    def positions_in(self, columns: ClassColumns) -> _Positions:
        """Positions of these rows in one class's columns."""
        every, chosen = self._all_rows, self.selector
        if len(columns.rows) == len(columns.position):  # each provider has the class
            return _Positions(every, every, chosen)
        at = columns.position[chosen]
        rows = np.flatnonzero(at >= 0).astype(np.int32)
        position = np.full(len(at), -1, dtype=np.int32)
        position[rows] = every[: len(rows)]
        return _Positions(rows, position, at[rows])


def _mask(selector: RowSelector, _trait: str, mask: Bools) -> Bools:
    """A trait's mask over the selected rows."""
    return mask[selector]


def _members(rows: NDArray[np.integer], _aggregate: str, members: Rows) -> Rows:
    """Positions of an aggregate's members among some rows."""
    at = np.minimum(np.searchsorted(members, rows), len(members) - 1)
    return np.flatnonzero(members[at] == rows).astype(np.int32)


class SubsetView:
    """A `TreeSubset` with its inventories at one revision; a `FleetView`."""

    def __init__(self, subset: TreeSubset, classes: Mapping[str, ClassColumns]) -> None:
        self._subset = subset
        self.rows = subset.rows
        """Its rows in the snapshot."""
        self.root = subset.root
        self.alive = subset.alive
        self.trees = subset.trees
        self.traits = subset.traits
        self.aggregates = subset.aggregates
        self.classes: Mapping[str, InventoryColumns] = _LazyMapping(
            classes, partial(_subset_columns, subset)
        )

    @property
    def parent_position(self) -> Rows:
        """[P]."""
        return self._subset.parent_position


def _subset_columns(subset: TreeSubset, _name: str, columns: ClassColumns) -> InventoryColumns:
    return _SubsetColumns(columns, subset)


def _selector(rows: NDArray[np.integer]) -> RowSelector:
    """Selects rows: a slice, which copies nothing, if they are consecutive."""
    if not len(rows):
        return rows
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 != len(rows) or (rows[1:] <= rows[:-1]).any():
        return rows
    return slice(first, last + 1)
