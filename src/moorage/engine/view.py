"""What candidate search reads: the whole fleet (a snapshot is one), or one tree of it alone.

Looking at one tree costs what the tree is big, not what the fleet is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import numpy as np

from moorage.engine.forest import Grouping

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class View(Protocol):
    """P rows, as `engine.snapshot.Snapshot` describes them."""

    @property
    def uuids(self) -> Sequence[str]:
        """UUID per row."""

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
class _Part:
    """One class's columns for some rows."""

    rows: Rows
    position: Rows
    min_unit: Ints
    max_unit: Ints
    step_size: Ints
    capacity: Ints
    peak: Ints


class Tree:
    """One provider tree as a fleet of its own; `rows` are its rows in the snapshot."""

    def __init__(self, snapshot: Snapshot, root: int) -> None:
        self.rows = snapshot.tree(root)
        self._snapshot = snapshot
        size = len(self.rows)
        self._local = dict(zip(self.rows.tolist(), range(size), strict=True))
        self.uuids = [snapshot.uuids[row] for row in self.rows.tolist()]
        self.row_of = dict(zip(self.uuids, range(size), strict=True))
        self.alive = np.ones(size, dtype=np.bool_)
        self.root = np.full(size, self._local[root], dtype=np.int32)

    @cached_property
    def parent(self) -> Rows:
        """[P]."""
        above = self._snapshot.parent[self.rows].tolist()
        return np.array([self._local.get(row, -1) for row in above], dtype=np.int32)

    @cached_property
    def trees(self) -> Grouping:
        """All rows, under the one root."""
        return Grouping(np.arange(len(self.rows), dtype=np.int32), self.root)

    @cached_property
    def traits(self) -> Mapping[str, Bools]:
        """Masks over the tree."""
        return _Each(self._snapshot.traits, lambda mask: mask[self.rows])

    @cached_property
    def aggregates(self) -> Mapping[str, Rows]:
        """Members among the tree's rows."""

        def inside(members: Rows) -> Rows:
            return np.flatnonzero(np.isin(self.rows, members)).astype(np.int32)

        return _Each(self._snapshot.aggregates, inside)

    @cached_property
    def classes(self) -> Mapping[str, Stock]:
        """Columns over the tree."""
        return _Each(self._snapshot.classes, self._part)

    def _part(self, columns: ClassColumns) -> _Part:
        at = columns.position[self.rows]
        rows = np.flatnonzero(at >= 0).astype(np.int32)
        position = np.full(len(self.rows), -1, dtype=np.int32)
        position[rows] = np.arange(len(rows), dtype=np.int32)
        at = at[rows]
        return _Part(
            rows,
            position,
            columns.min_unit[at],
            columns.max_unit[at],
            columns.step_size[at],
            columns.capacity[at],
            columns.peak[at],
        )
