"""What candidate search reads: the whole fleet (a snapshot is one), or some trees of it alone.

Looking at some trees costs what these are big, not what the fleet is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import numpy as np

from moorage.engine.forest import Grouping, ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.columns import ClassColumns
    from moorage.engine.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]
    Chosen: TypeAlias = NDArray[np.integer] | slice

T = TypeVar("T")
U = TypeVar("U")


class Stock(Protocol):
    """The columns of one resource class that say who can give how much."""

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
    def most_by_row(self) -> Ints:
        """[P] the largest amount that one more booking without an end can have, or -1."""

    @property
    def stepped(self) -> bool:
        """Whether any has a least unit or a step other than 1."""


class Site(Protocol):
    """P rows, as `engine.snapshot.Snapshot` describes them, but for what resources they have."""

    @property
    def row_of(self) -> Mapping[str, int]:
        """UUID -> row."""

    @property
    def parent(self) -> Rows:
        """[P] parent row or -1."""

    @property
    def root(self) -> Rows:
        """[P] root row."""

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


class View(Site, Protocol):
    """The same with their resources."""

    @property
    def classes(self) -> Mapping[str, Stock]:
        """Columns by resource class."""


class _Each(Mapping[str, U]):
    """A mapping seen through a function, each value made when it is first looked up."""

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
class _Places:
    """Where some rows stand in one class's columns."""

    rows: Rows
    """[n] those of them that have the class, ascending."""
    position: Rows
    """[P] index into `chosen` per row, or -1."""
    chosen: Chosen
    """[n] places in the whole columns."""


class _Piece:
    """One class's columns for the rows of a plot."""

    def __init__(self, whole: ClassColumns, plot: Plot) -> None:
        self._whole = whole
        self._plot = plot

    @property
    def rows(self) -> Rows:
        return self._places.rows

    @property
    def position(self) -> Rows:
        return self._places.position

    @property
    def min_unit(self) -> Ints:
        return self._whole.min_unit[self._places.chosen]

    @property
    def max_unit(self) -> Ints:
        return self._whole.max_unit[self._places.chosen]

    @property
    def step_size(self) -> Ints:
        return self._whole.step_size[self._places.chosen]

    @property
    def capacity(self) -> Ints:
        return self._whole.capacity[self._places.chosen]

    @property
    def peak(self) -> Ints:
        return self._whole.peak[self._places.chosen]

    @property
    def most_by_row(self) -> Ints:
        return self._whole.most_by_row[self._plot.chosen]

    @property
    def stepped(self) -> bool:
        return self._whole.stepped

    @cached_property
    def _places(self) -> _Places:
        return self._plot.places(self._whole)


class Plot:
    """Some provider trees, as far as they stay what they are while bookings come and go.

    Rows are tree by tree, in the order of the roots. Neighbours in the fleet are looked at where
    they stand; others are copied together.
    """

    def __init__(self, snapshot: Snapshot, roots: Ints) -> None:
        """Of the trees with these root rows, ascending."""
        if snapshot.trees.is_single:
            self.rows = roots
            self.root = self._every = np.arange(len(roots), dtype=np.int32)
            follow = len(roots) > 0 and int(roots[-1]) - int(roots[0]) + 1 == len(roots)
        else:
            of, self.rows = ranges(snapshot.trees.keys, snapshot.trees.order, roots)
            self.root = np.flatnonzero(self.rows == roots[of]).astype(np.int32)[of]
            self._every = np.arange(len(self.rows), dtype=np.int32)
            follow = len(self.rows) > 0 and bool((self.rows[1:] == self.rows[:-1] + 1).all())
        self.chosen: Chosen = _span(self.rows) if follow else self.rows
        """What selects them from columns of the whole fleet."""
        self.alive = np.ones(len(self.rows), dtype=np.bool_)
        self.trees = Grouping(self._every, self.root)
        # Not the snapshot itself: whoever keeps a plot would keep all its bookings.
        self._uuids, self._parent = snapshot.uuids, snapshot.parent
        self.traits: Mapping[str, Bools] = _Each(snapshot.traits, self._mask)
        """Masks over the trees."""
        self.aggregates: Mapping[str, Rows] = _Each(snapshot.aggregates, self._members)
        """Members among the trees' rows."""

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """UUID -> row, of every provider of the trees."""
        uuids = self._uuids
        return {uuids[row]: number for number, row in enumerate(self.rows.tolist())}

    @cached_property
    def parent(self) -> Rows:
        """[P]."""
        above = self._parent[self.chosen]
        if isinstance(self.chosen, slice):
            return np.where(above < 0, -1, above - self.chosen.start).astype(np.int32)
        order = np.argsort(self.rows, kind="stable")
        found = order[np.searchsorted(self.rows, np.maximum(above, 0), sorter=order) % len(order)]
        return np.where(above < 0, -1, found).astype(np.int32)

    def places(self, columns: ClassColumns) -> _Places:
        """Where its rows stand in one class's columns."""
        every, chosen = self._every, self.chosen
        if len(columns.rows) == len(columns.position):  # each provider has the class
            return _Places(every, every, chosen)
        at = columns.position[chosen]
        rows = np.flatnonzero(at >= 0).astype(np.int32)
        position = np.full(len(at), -1, dtype=np.int32)
        position[rows] = every[: len(rows)]
        return _Places(rows, position, at[rows])

    def _mask(self, _trait: str, mask: Bools) -> Bools:
        return mask[self.chosen]

    def _members(self, _aggregate: str, members: Rows) -> Rows:
        at = np.minimum(np.searchsorted(members, self.rows), len(members) - 1)
        return np.flatnonzero(members[at] == self.rows).astype(np.int32)


class Part:
    """A plot with what there is on it at one revision: a fleet of its own."""

    def __init__(self, plot: Plot, classes: Mapping[str, ClassColumns]) -> None:
        self._plot = plot
        self.rows = plot.rows
        """Its rows in the snapshot."""
        self.root = plot.root
        self.alive = plot.alive
        self.trees = plot.trees
        self.traits = plot.traits
        self.aggregates = plot.aggregates
        self.classes: Mapping[str, Stock] = _Each(classes, self._piece)

    def _piece(self, _name: str, columns: ClassColumns) -> Stock:
        return _Piece(columns, self._plot)

    @property
    def row_of(self) -> Mapping[str, int]:
        """UUID -> row."""
        return self._plot.row_of

    @property
    def parent(self) -> Rows:
        """[P]."""
        return self._plot.parent


def _span(rows: NDArray[np.integer]) -> slice:
    """What selects rows of which each follows the one before; it copies nothing."""
    return slice(int(rows[0]), int(rows[-1]) + 1)
