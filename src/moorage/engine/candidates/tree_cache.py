"""The trees that a query searches, in blocks, cached across queries.

Clients repeat queries for the same flavors while bookings change. So a query's rules on traits,
aggregates and trees are applied once and cached; only free capacity is judged at each query. The
newest queries are cached; a change of traits, aggregates or trees discards the cache.

The trees of a query are first narrowed to a superset without scanning the fleet, by the tree,
aggregate or trait of the query that the fewest providers have. All rules are applied later, so a
tree too many costs time only; one too few would be an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from moorage.engine.candidates.supply import eligible_providers, trees_of
from moorage.engine.state import provider_filters
from moorage.engine.state.fleet_view import TreeSubset
from moorage.engine.state.sharing import NO_SHARING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from random import Random

    from numpy.typing import NDArray

    from moorage.domain.resources import Trait
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.candidates.supply import Eligible
    from moorage.engine.state.fleet_view import TreeView
    from moorage.engine.state.sharing import Sharing
    from moorage.engine.state.snapshot import Snapshot

    Rows: TypeAlias = NDArray[np.integer]
    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

_FIRST_BLOCK: Final = 128
"""Trees in the first block; each block is four times as large as the one before."""
_LARGEST_BLOCK: Final = 16_384
_ROWS_KEPT: Final = 500_000
"""Rows of all cached blocks together; a row takes some tens of bytes."""
_QUERIES_KEPT: Final = 256
_FEW: Final = 32
"""Up to this many rows, `distinct` uses a Python set."""
_SPARSE: Final = 32
"""`distinct` sorts if fewer than one row in this many is given, and uses a mask otherwise."""
_RARE: Final = 2
"""A prefilter must leave fewer than one tree in this many."""


@dataclass(frozen=True, slots=True)
class EligibleTrees:
    """The providers of a view that meet a query's rules, before capacity is judged."""

    anchors: Bools
    """[P] living roots that meet the query's `root_required` and `root_forbidden`."""
    eligible: Eligible
    pairs: Sharing


@dataclass(frozen=True, slots=True)
class TreeBlock:
    """A block of trees with the providers that are eligible for one query."""

    subset: TreeSubset
    eligible: EligibleTrees


def eligible_trees(snapshot: Snapshot, query: CandidateQuery, pairs: Sharing) -> EligibleTrees:
    """Apply a query's rules, except capacity, to the whole fleet."""
    trees = {
        group.suffix: provider_filters.tree_of(snapshot, group.in_tree)
        for group in query.groups
        if group.in_tree is not None
    }
    who = eligible_providers(snapshot, query.groups, pairs, trees)
    return EligibleTrees(_anchors(snapshot, query), who, pairs)


def tree_blocks(
    snapshot: Snapshot, query: CandidateQuery, limit: int | None, random: Random | None = None
) -> Iterator[TreeBlock]:
    """The trees that may serve a query in a fleet without sharing, in blocks, in row order.

    With `random`, the blocks are random samples.
    """
    roots = named_trees(snapshot, query)
    if roots is None and random is not None:
        roots = possible_trees(snapshot, query)
    if roots is not None:  # few trees, or others each time: not cached
        for some in blocks(roots, limit, random):
            yield _block(snapshot, query, some)
        return
    cached = _cache(snapshot).query(snapshot, query, limit)
    for number, some in enumerate(blocks(cached.roots, limit)):
        found = cached.blocks.get(number)
        if found is None:
            found = cached.blocks[number] = _servable_block(snapshot, query, some)
        yield found


def blocks(roots: Ints, limit: int | None, random: Random | None = None) -> Iterator[Ints]:
    """Root rows in blocks of growing size; the first has slightly more than `limit` trees.

    With `random`, each block is a random sample of the rest, in row order.
    """
    if random is not None:
        roots = np.array(random.sample(roots.tolist(), len(roots)), dtype=np.int64)
    size = _LARGEST_BLOCK if limit is None else limit + limit // 4
    start, size = 0, max(size, _FIRST_BLOCK)
    while start < len(roots):
        some = roots[start : start + size]
        yield some if random is None else np.sort(some)
        start, size = start + size, max(size, min(4 * size, _LARGEST_BLOCK))


def _block(snapshot: Snapshot, query: CandidateQuery, roots: Ints) -> TreeBlock:
    """The block of these trees, which must respect the query's `in_tree`."""
    subset = TreeSubset(snapshot, roots)
    who = eligible_providers(subset, query.groups, NO_SHARING)
    return TreeBlock(subset, EligibleTrees(_anchors(subset, query), who, NO_SHARING))


def _servable_block(snapshot: Snapshot, query: CandidateQuery, roots: Ints) -> TreeBlock:
    """The block of the trees among these that can serve the query if they have capacity."""
    found = _block(snapshot, query, roots)
    subset, judged = found.subset, found.eligible
    worth = judged.anchors & np.logical_and.reduce(trees_of(subset, judged.eligible.own))
    able = subset.rows[np.flatnonzero(worth)]
    return found if len(able) == len(roots) else _block(snapshot, query, able)


def _anchors(view: TreeView, query: CandidateQuery) -> Bools:
    mask: Bools = view.alive
    if not view.trees.is_single:
        mask = mask & (view.root == np.arange(len(mask)))
    for any_of in query.root_required:
        mask = mask & provider_filters.has_any_trait(view, any_of)
    if query.root_forbidden:
        mask = mask & ~provider_filters.has_any_trait(view, query.root_forbidden)
    return mask


# --- trees that a query names ------------------------------------------------------------------


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


# --- cache ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _CachedQuery:
    """The blocks of one query that have been made so far."""

    query: CandidateQuery
    roots: Ints
    blocks: dict[int, TreeBlock] = field(default_factory=dict)
    """By number of the block. Two threads may make the same block; both are equal."""

    @property
    def rows(self) -> int:
        """Rows of all its blocks."""
        return sum(len(one.subset.rows) for one in list(self.blocks.values()))


class _BlockCache:
    """Cache of the newest queries' blocks. Thread-safe: at worst an entry is made twice."""

    def __init__(self, made_from: tuple[object, object]) -> None:
        self.made_from = made_from
        self._queries: dict[tuple[int, int | None], _CachedQuery] = {}
        """By the query's `id`, which is unique while the entry refers to it; the newest last."""

    def query(self, snapshot: Snapshot, query: CandidateQuery, limit: int | None) -> _CachedQuery:
        """The query's entry, made if there is none."""
        key = (id(query), limit)
        found = self._queries.pop(key, None)
        if found is None:
            self._evict()
            found = _CachedQuery(query, possible_trees(snapshot, query))
        self._queries[key] = found
        return found

    def _evict(self) -> None:
        kept = list(self._queries.items())
        rows, many = sum(one.rows for _, one in kept), len(kept)
        for key, one in kept:
            if rows <= _ROWS_KEPT and many < _QUERIES_KEPT:
                return
            self._queries.pop(key, None)
            rows, many = rows - one.rows, many - 1


def _cache(snapshot: Snapshot) -> _BlockCache:
    # `snapshot.cache` is new when names or trees change, but not for traits or aggregates.
    made_from = (snapshot.traits, snapshot.aggregates)
    found = snapshot.cache.get("tree_blocks")
    if isinstance(found, _BlockCache) and all(
        a is b for a, b in zip(found.made_from, made_from, strict=True)
    ):
        return found
    fresh = snapshot.cache["tree_blocks"] = _BlockCache(made_from)
    return fresh
