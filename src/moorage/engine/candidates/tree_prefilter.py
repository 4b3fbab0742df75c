"""Prefilter of trees: a superset of those that can serve a query, without scanning the fleet.

It uses the tree, aggregate or trait of the query that the fewest providers have. All rules are
applied later, so a tree too many costs time only; one too few would be an error.
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
"""Up to this many rows, `distinct` uses a Python set."""
_SPARSE: Final = 32
"""`distinct` sorts if fewer than one row in this many is given, and uses a mask otherwise."""
_RARE: Final = 2
"""A prefilter must leave fewer than one tree in this many."""


def named_trees(snapshot: Snapshot, query: CandidateQuery) -> Ints | None:
    """Root rows of the trees to which `in_tree` and `anchors` limit the query; None: no limit."""
    found = query.anchors
    for uuid in {group.in_tree for group in query.groups} - {None}:
        row = snapshot.row_of.get(str(uuid))
        tree = frozenset() if row is None else frozenset({int(snapshot.root[row])})
        found = tree if found is None else found & tree
    return None if found is None else np.array(sorted(found), dtype=np.int64)


def possible_trees(snapshot: Snapshot, query: CandidateQuery) -> Ints:
    """Root rows of a superset of the trees that can serve a query without sharing, ascending.

    For queries for which `named_trees` is None.
    """
    roots = snapshot.trees.distinct
    least, holders = len(roots) // _RARE, None
    for many, found in _named_things(snapshot, query):
        if many < least:
            least, holders = many, found
    if holders is None:
        return roots
    each = [np.flatnonzero(one) if one.dtype == np.bool_ else one for one in holders]
    if len(each) == 1 and snapshot.trees.is_single:
        return each[0].astype(np.int64, copy=False)
    return distinct(snapshot.root[np.concatenate(each)], len(snapshot.root))


def _named_things(
    snapshot: Snapshot, query: CandidateQuery
) -> Iterator[tuple[int, list[NDArray[Any]]]]:
    """For each trait set and aggregate set that a query requires: a count, and the providers.

    The providers are masks over all rows, or ascending rows; the count is an upper bound of how
    many they are. Every tree that serves the query has one of them.
    """
    for any_of in query.root_required:
        yield _with_any_trait(snapshot, any_of)
    for group in query.groups:
        for any_of in group.required:
            yield _with_any_trait(snapshot, any_of)
        for aggregates in group.member_of:
            members: list[NDArray[Any]] = [
                snapshot.aggregates[one] for one in aggregates if one in snapshot.aggregates
            ]
            yield sum(map(len, members)), members or [_NO_ROWS]


def _with_any_trait(snapshot: Snapshot, traits: Iterable[Trait]) -> tuple[int, list[NDArray[Any]]]:
    masks: list[NDArray[Any]] = [snapshot.traits[one] for one in traits if one in snapshot.traits]
    return sum(int(np.count_nonzero(mask)) for mask in masks), masks or [_NO_ROWS]


_NO_ROWS: Final = np.zeros(0, dtype=np.int64)


def distinct(rows: Rows, size: int) -> Ints:
    """The distinct rows, ascending; all are below `size`."""
    if len(rows) <= _FEW:
        return np.array(sorted(set(rows.tolist())), dtype=np.int64)
    if (rows[1:] > rows[:-1]).all():
        return rows.astype(np.int64, copy=False)
    if len(rows) * _SPARSE < size:
        return np.unique(rows).astype(np.int64, copy=False)
    mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return np.flatnonzero(mask)
