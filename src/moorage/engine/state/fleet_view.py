"""What candidate search reads: the whole fleet (a snapshot is one), or some trees of it alone.

Looking at some trees costs what these are big, not what the fleet is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import numpy as np

from moorage.engine.state.provider_trees import Grouping, ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.state.columns import ClassColumns
    from moorage.engine.state.snapshot import Snapshot

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
    def root(self) -> Rows:
        """[P] root row."""

    @property
    def above(self) -> Rows:
        """[P] where among the rows of its tree the parent is, as `trees` has them, or -1."""

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
    """A mapping seen through a function, each value made when it is first looked up.

    The function knows nothing that knows the mapping: columns that wait for the collector of cycles
    are megabytes soon.
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
        trees = snapshot.forest.trees
        if trees.is_single:
            self.rows = roots
            self.root = self._every = np.arange(len(roots), dtype=np.int32)
        else:
            of, self.rows = ranges(trees.keys, trees.order, roots)
            self._every = np.arange(len(self.rows), dtype=np.int32)
            self.root = self._every[self.rows == roots[of]][of]
        self.chosen = _chosen(self.rows)
        """What selects them from columns of the whole fleet."""
        self.alive = snapshot.alive[self.chosen]  # as all of every tree are
        self.trees = Grouping(self._every, self.root)
        # Not the snapshot itself: whoever keeps a plot would keep all its bookings.
        self._forest = snapshot.forest
        self.traits: Mapping[str, Bools] = _Each(snapshot.traits, partial(_mask, self.chosen))
        """Masks over the trees."""
        self.aggregates: Mapping[str, Rows] = _Each(
            snapshot.aggregates, partial(_members, self.rows)
        )
        """Members among the trees' rows."""

    @property
    def above(self) -> Rows:
        """[P]."""
        return self._forest.above[self.chosen]

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


def _mask(chosen: Chosen, _trait: str, mask: Bools) -> Bools:
    """A trait's mask over the rows that are chosen."""
    return mask[chosen]


def _members(rows: NDArray[np.integer], _aggregate: str, members: Rows) -> Rows:
    """Where among some rows an aggregate's members are."""
    at = np.minimum(np.searchsorted(members, rows), len(members) - 1)
    return np.flatnonzero(members[at] == rows).astype(np.int32)


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
        self.classes: Mapping[str, Stock] = _Each(classes, partial(_piece, plot))

    @property
    def above(self) -> Rows:
        """[P]."""
        return self._plot.above


def _piece(plot: Plot, _name: str, columns: ClassColumns) -> Stock:
    return _Piece(columns, plot)


def _chosen(rows: NDArray[np.integer]) -> Chosen:
    """What selects rows: where each follows the one before, it copies nothing."""
    if not len(rows):
        return rows
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 != len(rows) or (rows[1:] <= rows[:-1]).any():
        return rows
    return slice(first, last + 1)
