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
    def most(self) -> Ints:
        """[n]."""

    @property
    def stepped(self) -> bool:
        """Whether any has a least unit or a step other than 1."""


class View(Protocol):
    """P rows, as `engine.snapshot.Snapshot` describes them."""

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
    def classes(self) -> Mapping[str, Stock]:
        """Columns by resource class."""

    @property
    def traits(self) -> Mapping[str, Bools]:
        """Trait -> [P] mask."""

    @property
    def aggregates(self) -> Mapping[str, Rows]:
        """Aggregate UUID -> rows, ascending."""

    @property
    def trees(self) -> Grouping:
        """Living rows by root."""


class _Each(Mapping[str, U]):
    """A mapping seen through a function, each value made when it is first looked up."""

    def __init__(self, source: Mapping[str, T], change: Callable[[T], U]) -> None:
        self._source = source
        self._change: Callable[..., U] = change
        self._made: dict[str, U] = {}

    def __getitem__(self, key: str) -> U:
        if key not in self._made:
            self._made[key] = self._change(self._source[key])
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._source)

    def __len__(self) -> int:
        return len(self._source)


@dataclass(frozen=True, eq=False)
class _Piece:
    """One class's columns for some rows; `chosen` are its places in the whole ones."""

    rows: Rows
    position: Rows
    whole: ClassColumns
    chosen: NDArray[np.integer] | slice

    @property
    def min_unit(self) -> Ints:
        return self.whole.min_unit[self.chosen]

    @property
    def max_unit(self) -> Ints:
        return self.whole.max_unit[self.chosen]

    @property
    def step_size(self) -> Ints:
        return self.whole.step_size[self.chosen]

    @property
    def capacity(self) -> Ints:
        return self.whole.capacity[self.chosen]

    @property
    def peak(self) -> Ints:
        return self.whole.peak[self.chosen]

    @property
    def most(self) -> Ints:
        return self.whole.most[self.chosen]

    @property
    def stepped(self) -> bool:
        return self.whole.stepped


class Part:
    """Some provider trees as a fleet of their own; `rows` are their rows in the snapshot.

    Rows are tree by tree, in the order of the roots. Neighbours in the fleet are looked at where
    they stand; others are copied together.
    """

    def __init__(self, snapshot: Snapshot, roots: Ints) -> None:
        """Of the trees with these root rows, ascending."""
        self._snapshot = snapshot
        if snapshot.trees.is_single:
            self.rows = roots
            self.root = self._every = np.arange(len(roots), dtype=np.int32)
            follow = len(roots) > 0 and int(roots[-1]) - int(roots[0]) + 1 == len(roots)
        else:
            of, self.rows = ranges(snapshot.trees.keys, snapshot.trees.order, roots)
            self.root = np.flatnonzero(self.rows == roots[of]).astype(np.int32)[of]
            self._every = np.arange(len(self.rows), dtype=np.int32)
            follow = len(self.rows) > 0 and bool((self.rows[1:] == self.rows[:-1] + 1).all())
        self._chosen = _span(self.rows) if follow else self.rows
        self.alive = np.ones(len(self.rows), dtype=np.bool_)
        self.trees = Grouping(self._every, self.root)

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """UUID -> row, of every provider of the trees."""
        uuids = self._snapshot.uuids
        return {uuids[row]: number for number, row in enumerate(self.rows.tolist())}

    @cached_property
    def parent(self) -> Rows:
        """[P]."""
        above = self._snapshot.parent[self._chosen]
        order = np.argsort(self.rows, kind="stable")
        found = order[np.searchsorted(self.rows, np.maximum(above, 0), sorter=order) % len(order)]
        return np.where(above < 0, -1, found).astype(np.int32)

    @cached_property
    def traits(self) -> Mapping[str, Bools]:
        """Masks over the trees."""
        return _Each(self._snapshot.traits, lambda mask: mask[self._chosen])

    @cached_property
    def aggregates(self) -> Mapping[str, Rows]:
        """Members among the trees' rows."""

        def inside(members: Rows) -> Rows:
            at = np.minimum(np.searchsorted(members, self.rows), len(members) - 1)
            return np.flatnonzero(members[at] == self.rows).astype(np.int32)

        return _Each(self._snapshot.aggregates, inside)

    @cached_property
    def classes(self) -> Mapping[str, Stock]:
        """Columns over the trees."""
        return _Each(self._snapshot.classes, self._part)

    def _part(self, columns: ClassColumns) -> _Piece:
        every, chosen = self._every, self._chosen
        if len(columns.rows) == len(columns.position):  # each provider has the class
            return _Piece(every, every, columns, chosen)
        at = columns.position[chosen]
        rows = np.flatnonzero(at >= 0).astype(np.int32)
        if len(rows) == len(at):
            return _Piece(every, every, columns, _span(at) if isinstance(chosen, slice) else at)
        position = np.full(len(at), -1, dtype=np.int32)
        position[rows] = every[: len(rows)]
        return _Piece(rows, position, columns, at[rows])


def _span(rows: NDArray[np.integer]) -> slice:
    """What selects rows of which each follows the one before; it copies nothing."""
    return slice(int(rows[0]), int(rows[-1]) + 1)
