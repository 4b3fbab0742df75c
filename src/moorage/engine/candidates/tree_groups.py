"""The trees that may serve a query, in groups of equal ones, each with its selections.

Trees are searched in row order and in growing blocks (`tree_cache`). In a block, masks select the
trees that can serve every slot (`supply`), trees that are equal to the query are grouped, and each
group is searched once (`tree_search`).

Equal are trees of one *key*: what of a tree matters to the query, as bytes. A tree's *reach* is its
own providers and the sharing ones that serve it. A key has per provider in reach: which slots it
can serve, which required trait sets it helps to meet, how much of each class is free (capped at
what the query could use), and, where subtrees matter, its parent. Trees with equal keys have the
same candidates up to the providers' names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.providers import SHARING_TRAIT
from moorage.engine.candidates.supply import supply
from moorage.engine.candidates.tree_cache import blocks, eligible_trees, tree_blocks
from moorage.engine.candidates.tree_pattern import unpack
from moorage.engine.candidates.tree_search import selections, uses_sharing_only
from moorage.engine.state import provider_filters
from moorage.engine.state.fleet_view import SubsetView
from moorage.engine.state.provider_trees import values_by_key
from moorage.engine.state.sharing import sharing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

    from numpy.typing import NDArray

    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.candidates.query_shape import QueryShape
    from moorage.engine.candidates.supply import Eligible, Supply
    from moorage.engine.candidates.tree_cache import EligibleTrees
    from moorage.engine.candidates.tree_search import Selection
    from moorage.engine.state.fleet_view import Bools, FleetView, Ints
    from moorage.engine.state.sharing import Sharing
    from moorage.engine.state.snapshot import Snapshot

    Rows: TypeAlias = NDArray[np.int32]
    Bytes: TypeAlias = NDArray[np.uint8]

_MAX_CACHED: Final = 64
"""Selections of a pattern that are cached; if there are more, a query that takes them searches."""
_PATTERNS_CACHED: Final = 2048
"""Patterns cached for later queries."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """A query's shape with the providers that can serve its slots."""

    shape: QueryShape
    eligible: Eligible
    supply: Supply
    pairs: Sharing
    """All pairs of an anchor and a lender that serves it."""
    used: Ints
    """[n, 2] pairs of an anchor and a provider that its candidates use, or -1 for one elsewhere."""


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
        for key, trees in _by_tree_key(view, plan, roots).items():
            yield _of_key(plan.shape, key), trees


@lru_cache(maxsize=_PATTERNS_CACHED)
def _of_key(shape: QueryShape, key: bytes) -> TreeSelections:
    """Cached across queries: clients request the same flavors again, from trees that are alike."""
    return TreeSelections(shape, key)


def _allowed_anchors(anchors: frozenset[int] | None, roots: Ints) -> Ints:
    return roots if anchors is None else roots[np.isin(roots, list(anchors))]


# --- keys --------------------------------------------------------------------------------------


def _by_tree_key(view: FleetView, plan: SearchPlan, roots: Ints) -> Mapping[bytes, Ints]:
    """Group the trees with these roots: key -> provider rows [trees of that key, positions]."""
    shape = plan.shape
    if view.trees.is_single and not (len(plan.pairs) or shape.number_count or shape.uses):
        # Trees of one provider: those in the supply serve every slot and meet every trait set.
        return {b"\1" * (shape.flag_count - 1) + b"\0": roots[:, None]}
    tree, row, lent = _entries(view, plan, roots)
    bits = _flags(view, plan, (row, lent), roots[tree])
    if shape.uses:
        _flag_used(plan, bits, tree, row, roots)
    if not shape.same_subtrees:
        # Providers that serve no slot are dropped, unless they are needed to connect subtrees.
        useful = bits[:, : len(shape.slots)].any(axis=1)
        if shape.uses:
            useful |= bits[:, -1].astype(np.bool_)
        if not useful.all():
            tree, row, lent, bits = tree[useful], row[useful], lent[useful], bits[useful]
    numbers = _numbers(view, plan, tree, (row, lent))
    features = np.concatenate((bits, numbers.view(np.uint8).reshape(len(row), -1)), axis=1)
    if len(roots) == 1:
        return {features.tobytes(): row[None, :]}
    return _by_key(features, row, np.searchsorted(tree, np.arange(1, len(roots) + 1)))


def _by_key(features: Bytes, row: Ints, ends: Ints) -> Mapping[bytes, Ints]:
    """Group the trees by key; `ends` has the end of each tree's entries."""
    sizes = np.diff(ends, prepend=0)
    size = int(sizes[0])
    if size and (sizes == size).all():
        each = features.reshape(len(ends), -1)
        if (each == each[0]).all():
            return {each[0].tobytes(): row.reshape(-1, size)}
    text, width = features.tobytes(), features.shape[1]
    found: dict[bytes, list[int]] = {}
    start = 0
    for end in (ends * width).tolist():
        found.setdefault(text[start:end], []).append(start // width)
        start = end
    return {
        key: row[np.array(starts)[:, None] + np.arange(len(key) // width)]
        for key, starts in found.items()
    }


def _entries(view: FleetView, plan: SearchPlan, roots: Ints) -> tuple[Ints, Ints, Bools]:
    """Per provider in reach: index of the tree in `roots`, row, whether it is a lender."""
    trees = view.trees
    tree, row = values_by_key(trees.keys, trees.order, roots)
    lent = np.zeros(len(row), dtype=np.bool_)
    if len(plan.pairs):
        for_tree, lender = values_by_key(plan.pairs.anchor, plan.pairs.lender, roots)
        tree = np.concatenate((tree, for_tree))
        row = np.concatenate((row, lender))
        lent = np.concatenate((lent, np.ones(len(lender), dtype=np.bool_)))
        order = np.argsort(tree, kind="stable")
        tree, row, lent = tree[order], row[order], lent[order]
    return tree, row, lent


def _flags(view: FleetView, plan: SearchPlan, entries: tuple[Ints, Bools], anchor: Ints) -> Bytes:
    row, lent = entries
    slots = len(plan.shape.slots)
    bits = np.zeros((len(row), plan.shape.flag_count), dtype=np.uint8)
    for number, mask in enumerate(plan.supply.own):
        bits[:, number] = mask[row]
    for number, mask in enumerate(plan.eligible.required, slots):
        bits[:, number] = mask[row]
    if len(plan.pairs):
        borrowed = np.flatnonzero(lent)
        lender = row[borrowed]
        for number, (mask, pairs) in enumerate(
            zip(plan.supply.lends, plan.eligible.pairs, strict=True)
        ):
            lends = mask[lender]
            if pairs is not plan.pairs:
                code = lender + anchor[borrowed] * len(view.alive)
                lends &= np.isin(code, pairs.lender + pairs.anchor * len(view.alive))
            bits[borrowed, number] = lends
        sharing = slots + plan.shape.required_sets
        bits[:, sharing] = provider_filters.has_trait(view, SHARING_TRAIT)[row]
    return bits


def _flag_used(plan: SearchPlan, bits: Bytes, tree: Ints, row: Ints, roots: Ints) -> None:
    """Flag the providers that are to be used; a tree that lacks one serves no slot."""
    width = int(max(row.max(initial=0), plan.used.max(initial=0))) + 2
    wanted = plan.used[:, 0] * width + plan.used[:, 1] + 1
    flagged = np.isin(roots[tree] * width + row + 1, wanted)
    bits[:, -1] = flagged
    found = np.bincount(tree[flagged], minlength=len(roots))
    asked = np.array([np.count_nonzero(plan.used[:, 0] == root) for root in roots.tolist()])
    lacking = (found != asked)[tree]
    bits[lacking] = 0
    bits[lacking, -1] = 1


def _numbers(view: FleetView, plan: SearchPlan, tree: Ints, entries: tuple[Ints, Bools]) -> Ints:
    row, lent = entries
    shape = plan.shape
    numbers = np.zeros((len(row), shape.number_count), dtype=np.int64)
    for number, (name, most) in enumerate(shape.shared_classes):
        columns = view.classes.get(name)
        if columns is None:
            continue
        at = columns.position[row]
        has = np.flatnonzero(at >= 0)
        at = at[has]
        room = columns.capacity[at] - columns.peak[at]
        numbers[has, 2 * number] = np.clip(room, 0, most)
        numbers[has, 2 * number + 1] = np.minimum(columns.max_unit[at], most)
    last = shape.number_count
    if shape.one_provider_per_tree:
        last -= 1
        numbers[:, last] = _first_with(tree, view.root[row].astype(np.int64))
    if shape.same_subtrees:
        numbers[:, last - 1] = _parents(view, plan, tree, (row, lent))
    return numbers


def _first_with(tree: Ints, value: Ints) -> Ints:
    """Per entry: the position within its tree of the first entry with the same value."""
    start = np.searchsorted(tree, tree)
    first: dict[tuple[int, int], int] = {}
    found = np.empty(len(tree), dtype=np.int64)
    for index, key in enumerate(zip(tree.tolist(), value.tolist(), strict=True)):
        found[index] = first.setdefault(key, index) - start[index]
    return found


def _parents(view: FleetView, plan: SearchPlan, tree: Ints, entries: tuple[Ints, Bools]) -> Rows:
    """Per entry: the position within its tree of its nearest ancestor in reach, or -1."""
    row, lent = entries
    found = view.parent_position[row]  # all of a tree is in reach, and its lenders follow it
    if len(plan.pairs):
        start = tree.searchsorted(tree)
        for entry in np.flatnonzero(lent).tolist():
            at = _lent_parent(plan.pairs.parent, tree, row, entry)
            found[entry] = max(at - start[entry], -1)
    return found


def _lent_parent(above: NDArray[np.integer], tree: Ints, row: Ints, entry: int) -> int:
    """The entry of a lender's nearest ancestor in the same reach, or -1."""
    first, last = np.searchsorted(tree, [tree[entry], tree[entry] + 1])
    there = {one: first + number for number, one in enumerate(row[first:last].tolist())}
    parent = int(above[row[entry]])
    while parent >= 0 and parent not in there:
        parent = int(above[parent])
    return int(there.get(parent, -1))
