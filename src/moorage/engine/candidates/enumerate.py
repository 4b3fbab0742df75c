"""Enumerates allocation candidates lazily: every way in which a request could be satisfied now.

Placement's semantics (its API reference, microversion 1.39): a candidate comes from one anchor
tree plus the sharing providers (trait `MISC_SHARES_VIA_AGGREGATE`) that have an aggregate in
common with any provider of that tree. One class of one group is never split over providers.

Trees that may serve the query (`tree_prefilter`) are searched in row order and in growing blocks
(`tree_cache`), until the caller has enough candidates. In a block, masks select the trees that can
serve every slot (`supply`), trees that are equal to the query are grouped (`tree_keys`), and each
group is searched once (`tree_search`). Capacity is judged by `peak`, so holds and future bookings
reduce candidates although usages do not show them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.engine.candidates.supply import supply
from moorage.engine.candidates.tree_cache import blocks, eligible_trees, tree_blocks
from moorage.engine.candidates.tree_keys import SearchPlan, group_equal_trees
from moorage.engine.candidates.tree_pattern import unpack
from moorage.engine.candidates.tree_prefilter import distinct
from moorage.engine.candidates.tree_search import selections
from moorage.engine.state.fleet_view import SubsetView
from moorage.engine.state.sharing import sharing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from moorage.domain.resources import Amounts, ResourceClass
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.candidates.query_shape import QueryShape, SlotRequest
    from moorage.engine.candidates.tree_cache import EligibleTrees
    from moorage.engine.candidates.tree_search import Selection
    from moorage.engine.state.fleet_view import FleetView, Ints
    from moorage.engine.state.snapshot import Snapshot

__all__ = ["Batch", "Candidate", "batches", "candidates"]

_MAX_CACHED: Final = 64
"""Selections of a pattern that are cached at most; if there are more, each tree is searched."""
_PATTERNS_CACHED: Final = 256
"""Patterns cached for later queries."""
_CHUNK: Final = 256
"""Selections of one tree in a batch at most."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate, by provider rows of the snapshot it was made from."""

    allocations: tuple[tuple[int, Amounts], ...]
    mappings: tuple[tuple[str, tuple[int, ...]], ...]
    """Suffix -> provider rows, ascending."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Candidates of several equal trees: every selection in every tree is one, tree by tree."""

    selections: Sequence[Selection]
    """Per slot of the query's shape: the provider's position among the tree's rows."""
    trees: Ints
    """[trees, positions] provider rows."""

    def __len__(self) -> int:
        return len(self.selections) * len(self.trees)

    def cut(self, count: int) -> Iterator[Batch]:
        """Its first `count` candidates."""
        whole, rest = divmod(count, len(self.selections))
        if whole:
            yield Batch(self.selections, self.trees[:whole])
        if rest:
            yield Batch(self.selections[:rest], self.trees[whole : whole + 1])


def candidates(snapshot: Snapshot, query: CandidateQuery) -> Iterator[Candidate]:
    """Yield each distinct candidate once, in a stable order."""
    slots = query.shape.slots
    bare = [group.suffix for group in query.groups if not group.suffix and not group.resources]
    for batch in batches(snapshot, query):
        for tree in batch.trees.tolist():
            for picks in batch.selections:
                yield _candidate(slots, bare, [tree[position] for position in picks])


def batches(snapshot: Snapshot, query: CandidateQuery, limit: int | None = None) -> Iterator[Batch]:
    """Yield each distinct candidate once, in batches of those that differ only by their tree.

    `limit` is how many candidates the caller will take, if known; it sizes the first block.
    """
    pairs = sharing(snapshot)
    shape = query.shape
    if len(pairs):
        # Lenders may be anywhere, and several trees may give a candidate of lenders only.
        searcher = _Searcher(snapshot, shape, eligible_trees(snapshot, query, pairs))
        for roots in blocks(_allowed_anchors(query.anchors, searcher.roots), limit):
            yield from searcher.search(roots)
        return
    for block in tree_blocks(snapshot, query, limit):
        part = SubsetView(block.subset, snapshot.classes)
        searcher = _Searcher(part, shape, block.eligible)
        for batch in searcher.search(searcher.roots):
            yield Batch(batch.selections, part.rows[batch.trees])


def first_candidates(found: Iterable[Batch], limit: int | None) -> list[Batch]:
    """The first `limit` candidates, or all if `limit` is None."""
    if limit is None:
        return list(found)
    kept: list[Batch] = []
    for batch in found:
        kept.extend([batch] if len(batch) <= limit else batch.cut(limit))
        limit -= len(batch)
        if limit <= 0:
            break
    return kept


def summary_rows(snapshot: Snapshot, used: NDArray[np.integer], *, whole_trees: bool) -> Ints:
    """Rows for the provider summaries: the providers used, or all providers of their trees.

    Returns:
        Ascending, each once.
    """
    if not whole_trees or snapshot.trees.is_single:
        return distinct(used, len(snapshot.uuids))
    return np.sort(snapshot.trees.rows_of_all(distinct(snapshot.root[used], len(snapshot.uuids))))


def _candidate(slots: Sequence[SlotRequest], bare: Sequence[str], rows: Sequence[int]) -> Candidate:
    """The candidate in which each slot is allocated from one row: amounts summed by provider."""
    sums: dict[int, dict[ResourceClass, int]] = {}
    maps: dict[str, set[int]] = {suffix: set() for suffix in bare}
    for slot, row in zip(slots, rows, strict=True):
        maps.setdefault(slot.suffix, set()).add(row)
        for name, amount in slot.amounts:
            of_row = sums.setdefault(row, {})
            of_row[name] = of_row.get(name, 0) + amount
    return Candidate(
        tuple(sorted(sums.items())),
        tuple((suffix, tuple(sorted(of))) for suffix, of in sorted(maps.items())),
    )


class _Searcher:
    """Searches the trees of a view for one query."""

    def __init__(self, view: FleetView, shape: QueryShape, prepared: EligibleTrees) -> None:
        self._view = view
        found = supply(view, shape, prepared.eligible)
        self._plan = SearchPlan(shape, prepared.eligible, found, prepared.pairs)
        self.roots = np.flatnonzero(found.trees & prepared.anchors)
        """Roots of the trees that may serve the query."""
        self._seen: set[tuple[int, ...]] = set()

    def search(self, roots: Ints) -> Iterator[Batch]:
        """The candidates of some of `roots`."""
        if not len(roots):
            return
        for key, trees in group_equal_trees(self._view, self._plan, roots).items():
            yield from self._of_pattern(_cached_pattern(self._plan.shape, key), trees)

    def _of_pattern(self, pattern: _CachedPattern, trees: Ints) -> Iterator[Batch]:
        few = pattern.cached
        if few is not None:
            yield from self._without_repeats(pattern, few, trees)
            return
        for number in range(len(trees)):
            found = iter(pattern)
            while some := tuple(islice(found, _CHUNK)):
                yield from self._without_repeats(pattern, some, trees[number : number + 1])

    def _without_repeats(
        self, pattern: _CachedPattern, selections: Sequence[Selection], trees: Ints
    ) -> Iterator[Batch]:
        """Leave out candidates that another tree has given already.

        Only candidates of sharing providers alone can come from several trees.
        """
        uncommon = selections
        if pattern.sharing:
            uncommon = [picks for picks in selections if not pattern.uses_sharing_only(picks)]
            for picks in selections:
                if pattern.uses_sharing_only(picks):
                    rows = map(tuple, trees[:, list(picks)].tolist())
                    fresh = [number for number, one in enumerate(rows) if self._is_new(one)]
                    if fresh:
                        yield Batch((picks,), trees[fresh])
        if uncommon:
            yield Batch(uncommon, trees)

    def _is_new(self, rows: tuple[int, ...]) -> bool:
        before = len(self._seen)
        self._seen.add(rows)
        return len(self._seen) > before


class _CachedPattern:
    """The selections of equal trees; searched once if there are few."""

    def __init__(self, shape: QueryShape, key: bytes) -> None:
        self._shape = shape
        self._pattern = unpack(shape, key)
        self.sharing = any(self._pattern.shares)

    @cached_property
    def cached(self) -> Sequence[Selection] | None:
        """All selections, or None if there are more than `_MAX_CACHED`."""
        found = tuple(islice(self, _MAX_CACHED + 1))
        return found if len(found) <= _MAX_CACHED else None

    def uses_sharing_only(self, picks: Selection) -> bool:
        """Whether every slot is allocated from a sharing provider."""
        return all(self._pattern.shares[position] for position in picks)

    def __iter__(self) -> Iterator[Selection]:
        return selections(self._shape, self._pattern)


@lru_cache(maxsize=_PATTERNS_CACHED)
def _cached_pattern(shape: QueryShape, key: bytes) -> _CachedPattern:
    """Cached across queries: clients request the same flavors again, from trees that are alike."""
    return _CachedPattern(shape, key)


def _allowed_anchors(anchors: frozenset[int] | None, roots: Ints) -> Ints:
    return roots if anchors is None else roots[np.isin(roots, list(anchors))]
