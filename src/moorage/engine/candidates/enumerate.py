"""Enumerates allocation candidates lazily: every way in which a request could be satisfied now.

Placement's semantics (its API reference, microversion 1.39): a candidate comes from one anchor
tree plus the sharing providers (trait `MISC_SHARES_VIA_AGGREGATE`) that have an aggregate in
common with any provider of that tree. One class of one group is never split over providers.

Trees are searched (`tree_groups`) until the caller has enough candidates. Capacity is judged by
`peak`, so holds and future bookings reduce candidates although usages do not show them.

There are two orders. Breadth first, every tree gives one candidate before any gives its second;
depth first, a tree gives all of its candidates before the next gives any. `limit` has the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from moorage.domain.providers import SHARING_TRAIT
from moorage.engine.candidates.tree_cache import distinct
from moorage.engine.candidates.tree_groups import equal_trees
from moorage.engine.state import provider_filters
from moorage.engine.state.sharing import sharing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from random import Random

    from numpy.typing import NDArray

    from moorage.domain.resources import Amounts, ResourceClass
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.candidates.query_shape import SlotRequest
    from moorage.engine.candidates.tree_groups import TreeSelections
    from moorage.engine.candidates.tree_search import Selection
    from moorage.engine.state.fleet_view import Bools, Ints
    from moorage.engine.state.snapshot import Snapshot

__all__ = ["Batch", "Candidate", "Turn", "breadth_first", "candidates", "depth_first", "in_turns"]

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


class Turn(NamedTuple):
    """Trees that take turns together: each gives the same selections, one at a time."""

    selections: Iterator[Selection]
    trees: Ints
    """[trees, positions] provider rows."""


def candidates(snapshot: Snapshot, query: CandidateQuery) -> Iterator[Candidate]:
    """Yield each distinct candidate once, breadth first and in a stable order."""
    slots = query.shape.slots
    bare = [group.suffix for group in query.groups if not group.suffix and not group.resources]
    for batch in breadth_first(snapshot, query):
        for tree in batch.trees.tolist():
            for picks in batch.selections:
                yield _candidate(slots, bare, [tree[position] for position in picks])


def breadth_first(
    snapshot: Snapshot,
    query: CandidateQuery,
    limit: int | None = None,
    random: Random | None = None,
) -> Iterator[Batch]:
    """Yield each distinct candidate once: one of each tree before the second of any.

    `limit` is how many candidates the caller will take, if known; it sizes the first block. With
    `random`, the trees and the candidates of each tree are in random order.
    """
    found = equal_trees(snapshot, query, limit, random)
    turns = chain.from_iterable(_turns(block, random) for block in found)
    return _without_repeats(snapshot, in_turns(snapshot, turns))


def depth_first(
    snapshot: Snapshot, query: CandidateQuery, limit: int | None = None
) -> Iterator[Batch]:
    """Yield each distinct candidate once: all of a tree before any of the next."""
    found = chain.from_iterable(equal_trees(snapshot, query, limit))
    return _without_repeats(snapshot, _tree_by_tree(found))


def in_turns(snapshot: Snapshot, turns: Iterable[Turn]) -> Iterator[Batch]:
    """One selection of each, then the second of each, and so on; `turns` are read once, lazily.

    Trees that have only selections of sharing providers come last the first time.
    """
    shares = _sharing_mask(snapshot)
    later: list[Turn] = []
    last: list[Batch] = []
    for turn in turns:
        picks = next(turn.selections, None)
        if picks is None:
            continue
        later.append(turn)
        first = Batch((picks,), turn.trees)
        if shares is not None and _uses_sharing_only(first, picks, shares):
            last.append(first)
        else:
            yield first
    yield from last
    while later:
        if len(later) == 1 and len(later[0].trees) == 1:  # no other tree: any number at a time
            while some := tuple(islice(later[0].selections, _CHUNK)):
                yield Batch(some, later[0].trees)
            return
        before, later = later, []
        for turn in before:
            picks = next(turn.selections, None)
            if picks is not None:
                yield Batch((picks,), turn.trees)
                later.append(turn)


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


def _turns(found: Iterable[tuple[TreeSelections, Ints]], random: Random | None) -> Iterable[Turn]:
    """The turns of one block's trees; equal trees share one, unless the order is random."""
    if random is None:
        return (Turn(iter(selected), trees) for selected, trees in found)
    each = [
        Turn(selected.shuffled(random), trees[number : number + 1])
        for selected, trees in found
        for number in range(len(trees))
    ]
    random.shuffle(each)
    return each


def _tree_by_tree(found: Iterable[tuple[TreeSelections, Ints]]) -> Iterator[Batch]:
    for selected, trees in found:
        few = selected.cached
        if few is not None:
            if few:
                yield Batch(few, trees)
            continue
        for number in range(len(trees)):
            every = iter(selected)
            while some := tuple(islice(every, _CHUNK)):
                yield Batch(some, trees[number : number + 1])


def _without_repeats(snapshot: Snapshot, found: Iterator[Batch]) -> Iterator[Batch]:
    """Leave out candidates that another tree has given already.

    Only candidates of sharing providers alone can come from several trees.
    """
    shares = _sharing_mask(snapshot)
    if shares is None:
        yield from found
        return
    seen: set[tuple[int, ...]] = set()
    for batch in found:
        yield from _fresh(batch, shares, seen)


def _fresh(batch: Batch, shares: Bools, seen: set[tuple[int, ...]]) -> Iterator[Batch]:
    sharing_only = [_uses_sharing_only(batch, picks, shares) for picks in batch.selections]
    uncommon = [p for p, common in zip(batch.selections, sharing_only, strict=True) if not common]
    if uncommon:
        yield Batch(uncommon, batch.trees)
    for picks, common in zip(batch.selections, sharing_only, strict=True):
        if common:
            rows = list(map(tuple, batch.trees[:, list(picks)].tolist()))
            fresh = [number for number, one in enumerate(rows) if _is_new(one, seen)]
            if fresh:
                yield Batch((picks,), batch.trees[fresh])


def _sharing_mask(snapshot: Snapshot) -> Bools | None:
    """[P] the sharing providers; None if none serves another tree."""
    if not len(sharing(snapshot)):
        return None
    return provider_filters.has_trait(snapshot, SHARING_TRAIT)


def _uses_sharing_only(batch: Batch, picks: Selection, shares: Bools) -> bool:
    return bool(shares[batch.trees[0, list(picks)]].all())


def _is_new(rows: tuple[int, ...], seen: set[tuple[int, ...]]) -> bool:
    before = len(seen)
    seen.add(rows)
    return len(seen) > before
