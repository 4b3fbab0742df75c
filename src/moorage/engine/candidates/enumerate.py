"""Allocation candidates: every way a request could be satisfied now, made lazily.

Placement's semantics (its API reference, microversion 1.39): a candidate comes from one anchor
tree plus the sharing providers (trait `MISC_SHARES_VIA_AGGREGATE`) that have an aggregate in
common with any provider of that tree. One class of one group is never split over providers.

Promising trees (`promising`) are looked at in row order and in growing blocks (`prospects`), only
until the caller has enough: masks over the rows of a block find those worth a search (`supply`),
and trees that are equal as far as the query goes (`reach`) are searched once (`search`). Room is
judged by `peak`, so holds and future bookings reduce candidates although they never show in usages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.engine.candidates.supply import supply
from moorage.engine.candidates.tree_cache import blocks, prepared, prospects
from moorage.engine.candidates.tree_keys import Plan, reaches
from moorage.engine.candidates.tree_pattern import terms
from moorage.engine.candidates.tree_prefilter import distinct
from moorage.engine.candidates.tree_search import selections
from moorage.engine.state.fleet_view import SubsetView
from moorage.engine.state.sharing import sharing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from moorage.domain.resources import Amounts, ResourceClass
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.candidates.query_shape import Shape, Want
    from moorage.engine.candidates.tree_cache import Prepared
    from moorage.engine.candidates.tree_search import Picks
    from moorage.engine.state.fleet_view import FleetView, Ints
    from moorage.engine.state.snapshot import Snapshot

__all__ = ["Batch", "Candidate", "batches", "candidates"]

_FEW: Final = 64
"""Selections of one pattern that are kept for all trees like it; more are searched per tree."""
_PATTERNS: Final = 256
"""Patterns kept for later queries."""
_CHUNK: Final = 256
"""Selections of one tree that are found at once."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to satisfy the query, by provider rows of the snapshot it was made from."""

    allocations: tuple[tuple[int, Amounts], ...]
    mappings: tuple[tuple[str, tuple[int, ...]], ...]
    """Suffix -> provider rows, ascending."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The same selections in several equal trees: tree by tree, each selection is a candidate."""

    selections: Sequence[Picks]
    """Per slot of the query's shape: the position, in a tree's rows, of who gives it."""
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


def batches(
    snapshot: Snapshot, query: CandidateQuery, wanted: int | None = None
) -> Iterator[Batch]:
    """Yield each distinct candidate once, those that differ only by their tree together.

    Args:
        snapshot: the fleet.
        query: what is asked.
        wanted: how many candidates will be taken, if that is known: so much is looked at first.
    """
    pairs = sharing(snapshot)
    shape = query.shape
    if len(pairs):
        # Lenders may stand anywhere, and what they give alone may be had from several trees.
        look = _Look(snapshot, shape, prepared(snapshot, query, pairs))
        for roots in blocks(_among(query.anchors, look.worth), wanted):
            yield from look.at(roots)
        return
    for prospect in prospects(snapshot, query, wanted):
        part = SubsetView(prospect.plot, snapshot.classes)
        look = _Look(part, shape, prospect.prepared)
        for batch in look.at(look.worth):
            yield Batch(batch.selections, part.rows[batch.trees])


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
    return np.sort(snapshot.trees.rows_of_all(distinct(snapshot.root[used], len(snapshot.uuids))))


def _candidate(slots: Sequence[Want], bare: Sequence[str], rows: Sequence[int]) -> Candidate:
    """Sum what the slots take, provider by provider."""
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


class _Look:
    """One query over the whole fleet or some of its trees."""

    def __init__(self, view: FleetView, shape: Shape, prepared: Prepared) -> None:
        self._view = view
        found = supply(view, shape, prepared.eligible)
        self._plan = Plan(shape, prepared.eligible, found, prepared.pairs)
        self.worth = np.flatnonzero(found.trees & prepared.anchors)
        """Roots of the trees that can possibly serve the query."""
        self._seen: set[tuple[int, ...]] = set()

    def at(self, roots: Ints) -> Iterator[Batch]:
        """The candidates of some trees worth a look."""
        if not len(roots):
            return
        for key, trees in reaches(self._view, self._plan, roots).items():
            yield from self._of_pattern(_pattern(self._plan.shape, key), trees)

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

    def __init__(self, shape: Shape, key: bytes) -> None:
        self._shape = shape
        self._terms = terms(shape, key)
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
        return selections(self._shape, self._terms)


@lru_cache(maxsize=_PATTERNS)
def _pattern(shape: Shape, key: bytes) -> _Pattern:
    """Kept from query to query: clients ask for the same flavors again, of trees that are alike."""
    return _Pattern(shape, key)


def _among(anchors: frozenset[int] | None, roots: Ints) -> Ints:
    return roots if anchors is None else roots[np.isin(roots, list(anchors))]
