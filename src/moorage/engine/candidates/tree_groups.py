"""The trees that may serve a query, in groups of equal ones, each with its selections.

Trees are searched in row order and in growing blocks (`tree_cache`). In a block, masks select the
trees that can serve every slot (`supply`), trees that are equal to the query are grouped
(`tree_keys`), and each group is searched once (`tree_search`).
"""

from __future__ import annotations

from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.engine.candidates.supply import supply
from moorage.engine.candidates.tree_cache import blocks, eligible_trees, tree_blocks
from moorage.engine.candidates.tree_keys import SearchPlan, group_equal_trees
from moorage.engine.candidates.tree_pattern import unpack
from moorage.engine.candidates.tree_search import selections, uses_sharing_only
from moorage.engine.state.fleet_view import SubsetView
from moorage.engine.state.sharing import sharing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.candidates.query_shape import QueryShape
    from moorage.engine.candidates.tree_cache import EligibleTrees
    from moorage.engine.candidates.tree_search import Selection
    from moorage.engine.state.fleet_view import FleetView, Ints
    from moorage.engine.state.snapshot import Snapshot

_MAX_CACHED: Final = 64
"""Selections of a pattern that are cached; if there are more, a query that takes them searches."""
_PATTERNS_CACHED: Final = 2048
"""Patterns cached for later queries."""


class TreeSelections:
    """The selections of equal trees; searched once if there are few."""

    def __init__(self, shape: QueryShape, key: bytes) -> None:
        self._shape = shape
        self._pattern = unpack(shape, key)

    @cached_property
    def first(self) -> Selection | None:
        """The first selection: all that is needed while every tree gives one."""
        return next(self._search(), None)

    @cached_property
    def _known(self) -> Sequence[Selection]:
        return tuple(islice(self._search(), _MAX_CACHED + 1))

    @property
    def cached(self) -> Sequence[Selection] | None:
        """All selections, or None if there are more than `_MAX_CACHED`."""
        return self._known if len(self._known) <= _MAX_CACHED else None

    def __iter__(self) -> Iterator[Selection]:
        if self.first is None:
            return
        yield self.first
        yield from islice(self._known, 1, None)
        if len(self._known) > _MAX_CACHED:
            yield from islice(self._search(), len(self._known), None)

    def shuffled(self, random: Random) -> Iterator[Selection]:
        """All selections in random order; of many, successive ones are alike."""
        few = self.cached
        if few is None:
            return selections(self._shape, self._pattern, random)
        mixed = random.sample(few, len(few))
        return iter(sorted(mixed, key=partial(uses_sharing_only, self._pattern)))

    def _search(self) -> Iterator[Selection]:
        return selections(self._shape, self._pattern)


def equal_trees(
    snapshot: Snapshot, query: CandidateQuery, limit: int | None, random: Random | None = None
) -> Iterator[Iterator[tuple[TreeSelections, Ints]]]:
    """Per block the trees that may serve the query: groups of equal ones, with their selections.

    A group has [trees, positions] provider rows. With `random`, each block is a random sample.
    """
    pairs = sharing(snapshot)
    if query.closed_lenders:
        pairs = pairs.selected(~np.isin(pairs.lender, list(query.closed_lenders)))
    if len(pairs):
        # Lenders may be anywhere, and several trees may give a candidate of lenders only.
        eligible = eligible_trees(snapshot, query, pairs)
        plan = _plan(snapshot, query.shape, eligible, _used(query))
        anchors = _allowed_anchors(query.anchors, _roots(plan, eligible))
        for roots in blocks(anchors, limit, random):
            yield _grouped(snapshot, plan, roots)
        return
    for block in tree_blocks(snapshot, query, limit, random):
        part = SubsetView(block.subset, snapshot.classes)
        plan = _plan(part, query.shape, block.eligible, _used(query, part.rows))
        found = _grouped(part, plan, _roots(plan, block.eligible))
        yield ((selected, part.rows[trees]) for selected, trees in found)


def _plan(view: FleetView, shape: QueryShape, prepared: EligibleTrees, used: Ints) -> SearchPlan:
    found = supply(view, shape, prepared.eligible)
    return SearchPlan(shape, prepared.eligible, found, prepared.pairs, used)


def _used(query: CandidateQuery, rows: Ints | None = None) -> Ints:
    """The query's pairs of an anchor and a provider to be used, as numbered in a part of the fleet.

    `rows` are the part's; None: it is the whole. A provider outside of it is -1.
    """
    pairs: list[tuple[int, int]] = sorted(query.used)
    if rows is not None and pairs:
        at = {row: number for number, row in enumerate(rows.tolist())}
        pairs = [(at[anchor], at.get(row, -1)) for anchor, row in pairs if anchor in at]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _roots(plan: SearchPlan, prepared: EligibleTrees) -> Ints:
    """Roots of the trees that may serve the query."""
    return np.flatnonzero(plan.supply.trees & prepared.anchors)


def _grouped(
    view: FleetView, plan: SearchPlan, roots: Ints
) -> Iterator[tuple[TreeSelections, Ints]]:
    if len(roots):
        for key, trees in group_equal_trees(view, plan, roots).items():
            yield _of_key(plan.shape, key), trees


@lru_cache(maxsize=_PATTERNS_CACHED)
def _of_key(shape: QueryShape, key: bytes) -> TreeSelections:
    """Cached across queries: clients request the same flavors again, from trees that are alike."""
    return TreeSelections(shape, key)


def _allowed_anchors(anchors: frozenset[int] | None, roots: Ints) -> Ints:
    return roots if anchors is None else roots[np.isin(roots, list(anchors))]
