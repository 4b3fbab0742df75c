"""Finds trees that can possibly serve a query, without columns of the fleet's length.

The rarest thing that a query names decides: a tree, an aggregate or a trait. What it leaves is
judged by all rules later, so too many trees cost time only; too few would be wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from moorage.domain.resources import Trait
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import Snapshot

    Rows: TypeAlias = NDArray[np.integer]
    Ints: TypeAlias = NDArray[np.int64]

_FEW: Final = 32
"""So many rows at most are sorted one by one."""
_SPARSE: Final = 32
"""Fewer rows than one in so many are sorted; more are marked in the fleet's length."""
_RARE: Final = 2
"""What more than one in so many trees has is not rare enough to begin with."""


def named(snapshot: Snapshot, query: CandidateQuery) -> Ints | None:
    """Root rows of the only trees there may be, by `in_tree` and the query's anchors, or None."""
    found = query.anchors
    for uuid in {group.in_tree for group in query.groups} - {None}:
        row = snapshot.row_of.get(str(uuid))
        tree = frozenset() if row is None else frozenset({int(snapshot.root[row])})
        found = tree if found is None else found & tree
    return None if found is None else np.array(sorted(found), dtype=np.int64)


def promising(snapshot: Snapshot, query: CandidateQuery) -> Ints:
    """Root rows of the trees that can possibly serve a query without sharing, ascending.

    A query that names its trees has no need of it.
    """
    roots = snapshot.trees.distinct
    least, holders = len(roots) // _RARE, None
    for many, found in _rarities(snapshot, query):
        if many < least:
            least, holders = many, found
    if holders is None:
        return roots
    each = [np.flatnonzero(one) if one.dtype == np.bool_ else one for one in holders]
    if len(each) == 1 and snapshot.trees.is_single:
        return each[0].astype(np.int64, copy=False)
    return distinct(snapshot.root[np.concatenate(each)], len(snapshot.root))


def _rarities(
    snapshot: Snapshot, query: CandidateQuery
) -> Iterator[tuple[int, list[NDArray[Any]]]]:
    """For each thing a query names: how many providers have it at most, and which do.

    These are masks over all rows, or rows ascending. In every tree that serves the query some
    provider has the thing.
    """
    for any_of in query.root_required:
        yield _carriers(snapshot, any_of)
    for group in query.groups:
        for any_of in group.required:
            yield _carriers(snapshot, any_of)
        for aggregates in group.member_of:
            members: list[NDArray[Any]] = [
                snapshot.aggregates[one] for one in aggregates if one in snapshot.aggregates
            ]
            yield sum(map(len, members)), members or [_NOBODY]


def _carriers(snapshot: Snapshot, traits: Iterable[Trait]) -> tuple[int, list[NDArray[Any]]]:
    masks: list[NDArray[Any]] = [snapshot.traits[one] for one in traits if one in snapshot.traits]
    return sum(int(np.count_nonzero(mask)) for mask in masks), masks or [_NOBODY]


_NOBODY: Final = np.zeros(0, dtype=np.int64)


def distinct(rows: Rows, size: int) -> Ints:
    """Ascending, each once, of rows below `size`."""
    if len(rows) <= _FEW:
        return np.array(sorted(set(rows.tolist())), dtype=np.int64)
    if (rows[1:] > rows[:-1]).all():
        return rows.astype(np.int64, copy=False)
    if len(rows) * _SPARSE < size:
        return np.unique(rows).astype(np.int64, copy=False)
    mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return np.flatnonzero(mask)
