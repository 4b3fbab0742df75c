"""Allocation candidates: every way a request could be satisfied now, made lazily.

Placement's semantics (its API reference, microversion 1.39): a candidate comes from one anchor
tree plus the sharing providers (trait `MISC_SHARES_VIA_AGGREGATE`) that have an aggregate in
common with any provider of that tree. One class of one group is never split over providers.

Masks over all provider rows find the trees worth looking at (`supply`). Those are looked at in
row order and in growing blocks, only until the caller has enough; trees that are equal as far as
the query goes (`reach`) are searched once (`search`). Room is judged by `peak`, so holds and
future bookings reduce candidates although they never show in usages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.engine import filters
from moorage.engine.pattern import terms
from moorage.engine.reach import Plan, reaches
from moorage.engine.search import selections
from moorage.engine.sharing import NOBODY, SHARES, sharing
from moorage.engine.supply import supply
from moorage.engine.view import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.requests import RequestGroup
    from moorage.domain.resources import Amounts, ResourceClass, Trait
    from moorage.engine.search import Picks
    from moorage.engine.snapshot import Bools, Snapshot
    from moorage.engine.view import Ints, View

__all__ = ["SHARES", "Batch", "Candidate", "CandidateQuery", "Rules", "batches", "candidates"]

_FIRST_BLOCK: Final = 128
"""Trees looked at at once to begin with; each block is four times the one before."""
_LARGEST_BLOCK: Final = 8192
_SPARSE: Final = 32
"""Fewer rows than one in so many are sorted; more are marked in the fleet's length."""
_FEW: Final = 64
"""Selections of one pattern that are kept for all trees like it; more are searched per tree."""
_CHUNK: Final = 256
"""Selections of one tree that are found at once."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What binds the groups of one candidate together."""

    isolate: bool = False
    same_subtrees: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """What one query asks: its groups and what binds them."""

    groups: tuple[RequestGroup, ...]
    rules: Rules = field(default_factory=Rules)
    root_required: tuple[frozenset[Trait], ...] = ()
    """Trait sets the anchor's root must have one of each of."""
    root_forbidden: frozenset[Trait] = frozenset()
    one_provider_per_tree: bool = False
    """As before microversion 1.29: no candidate takes from two providers of one tree."""
    anchors: frozenset[int] | None = None
    """Root rows of the only trees that may be anchors; None for all."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to satisfy the query, by provider rows of the snapshot it was made from."""

    allocations: tuple[tuple[int, Amounts], ...]
    mappings: tuple[tuple[str, tuple[int, ...]], ...]
    """Suffix -> provider rows, ascending."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one provider gives in one piece: of a suffixed group all, of the unsuffixed a class."""

    suffix: str
    wants: Amounts


@dataclass(frozen=True, slots=True)
class Batch:
    """The same selections in several equal trees: tree by tree, each selection is a candidate."""

    selections: Sequence[Picks]
    """Per piece of the query: the position, in a tree's rows, of the provider that gives it."""
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


def pieces(query: CandidateQuery) -> tuple[Piece, ...]:
    """The pieces of a query, in the order of every selection."""
    found: list[Piece] = []
    for group in query.groups:
        if group.suffix:
            found.append(Piece(group.suffix, group.resources))
        else:
            found.extend(Piece("", {name: most}) for name, most in group.resources.items())
    return tuple(found)


def candidates(snapshot: Snapshot, query: CandidateQuery) -> Iterator[Candidate]:
    """Yield each distinct candidate once, in a stable order."""
    parts = pieces(query)
    bare = [group.suffix for group in query.groups if not group.suffix and not group.resources]
    for batch in batches(snapshot, query):
        for tree in batch.trees.tolist():
            for picks in batch.selections:
                yield _candidate(parts, bare, [tree[position] for position in picks])


def batches(snapshot: Snapshot, query: CandidateQuery) -> Iterator[Batch]:
    """Yield each distinct candidate once, those that differ only by their tree together."""
    anchor = _only_anchor(snapshot, query)
    if anchor is None:
        yield from _Fleet(snapshot, query, snapshot).batches()
    elif anchor >= 0:
        tree = Tree(snapshot, anchor)
        for batch in _Fleet(snapshot, query, tree).batches():
            yield Batch(batch.selections, tree.rows[batch.trees].astype(np.int64))


def first(found: Iterable[Batch], limit: int | None) -> list[Batch]:
    """The first `limit` candidates, or all; looks no further than it must."""
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
    """Rows to summarise beside candidates: the providers used, or every one of their trees.

    Returns:
        Ascending, each once.
    """
    if not whole_trees or snapshot.trees.is_single:
        return distinct(used, len(snapshot.uuids))
    return np.sort(snapshot.trees.of_all(distinct(snapshot.root[used], len(snapshot.uuids))))


def distinct(rows: NDArray[np.integer], size: int) -> Ints:
    """Ascending, each once, of rows below `size`."""
    if len(rows) * _SPARSE < size:
        return np.unique(rows).astype(np.int64, copy=False)
    mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return np.flatnonzero(mask)


def _candidate(parts: Sequence[Piece], bare: Sequence[str], rows: Sequence[int]) -> Candidate:
    """Sum what the pieces take, provider by provider."""
    sums: dict[int, dict[ResourceClass, int]] = {}
    maps: dict[str, set[int]] = {suffix: set() for suffix in bare}
    for part, row in zip(parts, rows, strict=True):
        maps.setdefault(part.suffix, set()).add(row)
        for name, amount in part.wants.items():
            of_row = sums.setdefault(row, {})
            of_row[name] = of_row.get(name, 0) + amount
    return Candidate(
        tuple(sorted(sums.items())),
        tuple((suffix, tuple(sorted(of))) for suffix, of in sorted(maps.items())),
    )


def _only_anchor(snapshot: Snapshot, query: CandidateQuery) -> int | None:
    """The one tree every candidate is in (its root row; -1: there is none), or None if unknown.

    A group's `in_tree` or the query's anchors name it, unless sharing providers may come from
    elsewhere.
    """
    named = {group.in_tree for group in query.groups if group.in_tree is not None}
    if not named and query.anchors is None:
        return None
    known = {snapshot.row_of.get(uuid, -1) for uuid in named}
    if -1 in known:
        return -1
    if len(sharing(snapshot)):
        return None
    roots = {int(snapshot.root[row]) for row in known}
    if query.anchors is not None:
        roots = roots & query.anchors if named else set(query.anchors)
    if len(roots) > 1 and not named:
        return None
    return roots.pop() if len(roots) == 1 else -1


class _Fleet:
    """One query over the whole fleet or one tree."""

    def __init__(self, snapshot: Snapshot, query: CandidateQuery, view: View) -> None:
        self._view = view
        pairs = sharing(snapshot) if view is snapshot else NOBODY
        supplies = [supply(view, group, pairs) for group in query.groups]
        self._plan = Plan(
            slots=tuple(slot for one in supplies for slot in one.slots),
            required=tuple(mask for one in supplies for mask in one.required),
            summed=_summed(query),
            isolate=query.rules.isolate,
            same_subtrees=query.rules.same_subtrees,
            one_provider_per_tree=query.one_provider_per_tree,
            pairs=pairs,
        )
        worth = reduce(np.logical_and, (one.trees for one in supplies), _anchors(view, query))
        if view is snapshot:
            worth = _among(query.anchors, worth)
        self._roots = np.flatnonzero(worth)
        self._patterns: dict[bytes, _Pattern] = {}
        self._seen: set[tuple[int, ...]] = set()

    def batches(self) -> Iterator[Batch]:
        start, size = 0, _FIRST_BLOCK
        while start < len(self._roots):
            yield from self._block(self._roots[start : start + size])
            start, size = start + size, min(4 * size, _LARGEST_BLOCK)

    def _block(self, roots: Ints) -> Iterator[Batch]:
        for key, trees in reaches(self._view, self._plan, roots).items():
            pattern = self._patterns.get(key)
            if pattern is None:
                pattern = self._patterns[key] = _Pattern(self._plan, key)
            yield from self._of_pattern(pattern, trees)

    def _of_pattern(self, pattern: _Pattern, trees: Ints) -> Iterator[Batch]:
        few = pattern.few
        if few is not None:
            yield from self._fresh(pattern, few, trees)
            return
        for number in range(len(trees)):
            found = iter(pattern)
            while some := tuple(islice(found, _CHUNK)):
                yield from self._fresh(pattern, some, trees[number : number + 1])

    def _fresh(
        self, pattern: _Pattern, selections: Sequence[Picks], trees: Ints
    ) -> Iterator[Batch]:
        """Leave out candidates that another tree has shown already.

        Only what sharing providers give alone can be had from several trees.
        """
        own = selections
        if pattern.sharing:
            own = [picks for picks in selections if not pattern.is_lent(picks)]
            for picks in selections:
                if pattern.is_lent(picks):
                    rows = map(tuple, trees[:, list(picks)].tolist())
                    fresh = [number for number, one in enumerate(rows) if self._is_new(one)]
                    if fresh:
                        yield Batch((picks,), trees[fresh])
        if own:
            yield Batch(own, trees)

    def _is_new(self, rows: tuple[int, ...]) -> bool:
        before = len(self._seen)
        self._seen.add(rows)
        return len(self._seen) > before


class _Pattern:
    """The selections of equal trees: searched once where they are few."""

    def __init__(self, plan: Plan, key: bytes) -> None:
        self._plan = plan
        self._terms = terms(plan, key)
        self.sharing = any(self._terms.shares)

    @cached_property
    def few(self) -> Sequence[Picks] | None:
        """All selections; None if there are many. Looks no further than that takes."""
        found = tuple(islice(self, _FEW + 1))
        return found if len(found) <= _FEW else None

    def is_lent(self, picks: Picks) -> bool:
        """Whether sharing providers give everything."""
        return all(self._terms.shares[position] for position in picks)

    def __iter__(self) -> Iterator[Picks]:
        return selections(self._plan, self._terms)


def _summed(query: CandidateQuery) -> Mapping[ResourceClass, int]:
    """Classes that several pieces want, with all they want together."""
    found: dict[ResourceClass, list[int]] = {}
    for group in query.groups:
        for name, amount in group.resources.items():
            found.setdefault(name, []).append(amount)
    return {name: sum(amounts) for name, amounts in found.items() if len(amounts) > 1}


def _anchors(view: View, query: CandidateQuery) -> Bools:
    """Living roots that meet the query's rules about roots."""
    mask: Bools = view.alive & (view.root == np.arange(len(view.uuids)))
    for any_of in query.root_required:
        mask = mask & filters.has_any_trait(view, any_of)
    if query.root_forbidden:
        mask = mask & ~filters.has_any_trait(view, query.root_forbidden)
    return mask


def _among(anchors: frozenset[int] | None, mask: Bools) -> Bools:
    if anchors is None:
        return mask
    named = np.zeros_like(mask)
    named[list(anchors)] = True
    return mask & named
