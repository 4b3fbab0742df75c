"""Which candidates an answer has where not all are wanted: the first in turns over the trees.

Clients filter the candidates they get, so an answer that is cut has every tree that can serve the
query before it has any tree twice. The strategy, as in openstack-placement, says what the bound of
the service keeps; what a query's own limit takes of that is always in turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.engine.candidates.enumerate import (
    Batch,
    Turn,
    breadth_first,
    depth_first,
    in_turns,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.candidates.tree_search import Selection
    from moorage.engine.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CandidateLimit:
    """The service's own bound of candidates, whatever a query's limit is."""

    most: int | None = None
    """Candidates of one answer at most; None: no bound."""
    depth_first: bool = False
    """Whether the bound keeps all candidates of the first trees, and not some of every tree."""
    randomize: bool = False
    """Whether answers are random samples, in random order; depth first, of what the bound keeps."""
    by_room: bool = False
    """Whether the candidates of answers that nothing cuts are ordered, those first that leave most
    room for what others ask for."""
    every_tree: bool = False
    """Whether the bound is the number of the fleet's trees where there are more: then it leaves out
    further candidates of a tree, and never a tree. Such a bound is always breadth first."""

    def cuts(self, snapshot: Snapshot, limit: int | None, found: Iterable[Batch]) -> bool:
        """Whether there may be candidates that were left out of an answer with these."""
        least = self.least(snapshot, limit)
        return least is not None and sum(map(len, found)) >= least

    def bound(self, snapshot: Snapshot) -> int | None:
        """Candidates of one answer about this fleet at most; None: no bound."""
        if self.most is None or not self.every_tree:
            return self.most
        return max(self.most, len(snapshot.roots))

    def least(self, snapshot: Snapshot, limit: int | None) -> int | None:
        """The smaller one of the bound and a query's limit."""
        return min((n for n in (limit, self.bound(snapshot)) if n is not None), default=None)


ANY_NUMBER = CandidateLimit()


def first_candidates(
    snapshot: Snapshot,
    query: CandidateQuery,
    limit: int | None = None,
    service: CandidateLimit = ANY_NUMBER,
    seed: int = 0,
) -> list[Batch]:
    """The candidates of an answer: all, or `limit` of those that the service's bound keeps.

    With `randomize`, `seed` chooses the sample.
    """
    random = Random(seed) if service.randomize else None  # noqa: S311 - a sample, no secret
    count, most = service.least(snapshot, limit), service.most
    if service.depth_first and most is not None and not service.every_tree:
        kept = _first(depth_first(snapshot, query, most), most)
        if count == most and random is None:
            return kept
        return _first(in_turns(snapshot, turns_of(kept, random)), count)
    if count is None and random is None:
        return list(depth_first(snapshot, query))
    return _first(breadth_first(snapshot, query, count, random), count)


def _first(found: Iterable[Batch], count: int | None) -> list[Batch]:
    if count is None:
        return list(found)
    kept: list[Batch] = []
    for batch in found:
        kept.extend([batch] if len(batch) <= count else batch.cut(count))
        count -= len(batch)
        if count <= 0:
            break
    return kept


def turns_of(kept: Sequence[Batch], random: Random | None) -> Iterator[Turn]:
    """A turn for each tree of these batches, in random order if `random` is given."""
    trees: dict[tuple[int, ...], list[Selection]] = {}
    for batch in kept:
        for tree in map(tuple, batch.trees.tolist()):
            trees.setdefault(tree, []).extend(batch.selections)
    each: list[Any] = list(trees.items())
    if random is not None:
        random.shuffle(each)
        for _, selections in each:
            random.shuffle(selections)
    for tree, selections in each:
        yield Turn(iter(selections), np.array([tree]))
