"""The trees that a query looks at, block by block, kept from query to query.

Clients ask for the same flavors again and again, while bookings come and go between: what a query
asks of providers themselves (traits, aggregates, trees) is judged once, and what is left of
their resources each time. Kept is what was found of the newest queries, and of these traits,
aggregates and trees only: other ones make all of it anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.candidates.supply import eligible, trees_of
from moorage.engine.candidates.tree_prefilter import named, promising
from moorage.engine.state import provider_filters
from moorage.engine.state.fleet_view import TreeSubset
from moorage.engine.state.sharing import NO_SHARING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.candidates.supply import Eligible
    from moorage.engine.state.fleet_view import TreeView
    from moorage.engine.state.sharing import Sharing
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

_FIRST_BLOCK: Final = 128
"""Trees looked at at once to begin with; each block is four times the one before."""
_LARGEST_BLOCK: Final = 16_384
_ROWS_KEPT: Final = 500_000
"""Rows of all blocks kept together; each takes some tens of bytes."""
_QUERIES_KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a query asks of providers themselves, judged for every row of a site."""

    anchors: Bools
    """[P] living roots that meet the query's rules about roots."""
    eligible: Eligible
    pairs: Sharing


@dataclass(frozen=True, slots=True)
class Prospect:
    """A block of trees, prepared for one query."""

    plot: TreeSubset
    prepared: Prepared


def prepared(snapshot: Snapshot, query: CandidateQuery, pairs: Sharing) -> Prepared:
    """Judge everything but what there is left of resources, in the length of the fleet."""
    trees = {
        group.suffix: provider_filters.tree_of(snapshot, group.in_tree)
        for group in query.groups
        if group.in_tree is not None
    }
    who = eligible(snapshot, query.groups, pairs, trees)
    return Prepared(_anchors(snapshot, query), who, pairs)


def prospects(snapshot: Snapshot, query: CandidateQuery, wanted: int | None) -> Iterator[Prospect]:
    """The trees that may serve a query in a fleet without sharing, in blocks, in row order."""
    roots = named(snapshot, query)
    if roots is not None:  # few, and seldom the same ones again
        for some in blocks(roots, wanted):
            yield _prospect(snapshot, query, some)
        return
    course = _kept(snapshot).course(snapshot, query, wanted)
    for number, some in enumerate(blocks(course.roots, wanted)):
        found = course.found.get(number)
        if found is None:
            found = course.found[number] = _narrowed(snapshot, query, some)
        yield found


def blocks(roots: Ints, wanted: int | None) -> Iterator[Ints]:
    """Root rows in order, some at a time, ever more; first so many as are likely to be enough."""
    size = _LARGEST_BLOCK if wanted is None else wanted + wanted // 4
    start, size = 0, max(size, _FIRST_BLOCK)
    while start < len(roots):
        yield roots[start : start + size]
        start, size = start + size, max(size, min(4 * size, _LARGEST_BLOCK))


def _prospect(snapshot: Snapshot, query: CandidateQuery, roots: Ints) -> Prospect:
    """These trees; if the query names any, then these."""
    plot = TreeSubset(snapshot, roots)
    who = eligible(plot, query.groups, NO_SHARING)
    return Prospect(plot, Prepared(_anchors(plot, query), who, NO_SHARING))


def _narrowed(snapshot: Snapshot, query: CandidateQuery, roots: Ints) -> Prospect:
    """The same without the trees that cannot serve the query, whatever there is left on them."""
    found = _prospect(snapshot, query, roots)
    plot, judged = found.plot, found.prepared
    worth = judged.anchors & np.logical_and.reduce(trees_of(plot, judged.eligible.own))
    able = plot.rows[np.flatnonzero(worth)]
    return found if len(able) == len(roots) else _prospect(snapshot, query, able)


def _anchors(site: TreeView, query: CandidateQuery) -> Bools:
    mask: Bools = site.alive
    if not site.trees.is_single:
        mask = mask & (site.root == np.arange(len(mask)))
    for any_of in query.root_required:
        mask = mask & provider_filters.has_any_trait(site, any_of)
    if query.root_forbidden:
        mask = mask & ~provider_filters.has_any_trait(site, query.root_forbidden)
    return mask


# --- what is kept ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Course:
    """One query's way through the fleet, as far as anybody has gone."""

    query: CandidateQuery
    roots: Ints
    found: dict[int, Prospect] = field(default_factory=dict)
    """By number of the block. Found twice at once, it is the same twice."""

    @property
    def rows(self) -> int:
        """How much is kept of it."""
        return sum(len(one.plot.rows) for one in list(self.found.values()))


class _Kept:
    """The newest courses over one fleet. Safe for threads: at worst one is begun twice."""

    def __init__(self, made_from: tuple[object, object]) -> None:
        self.made_from = made_from
        self._courses: dict[tuple[int, int | None], _Course] = {}
        """By the query's identity, which holds as long as the course does; the newest last."""

    def course(self, snapshot: Snapshot, query: CandidateQuery, wanted: int | None) -> _Course:
        """The query's own; begun if there is none."""
        key = (id(query), wanted)
        found = self._courses.pop(key, None)
        if found is None:
            self._make_room()
            found = _Course(query, promising(snapshot, query))
        self._courses[key] = found
        return found

    def _make_room(self) -> None:
        kept = list(self._courses.items())
        rows, many = sum(one.rows for _, one in kept), len(kept)
        for key, one in kept:
            if rows <= _ROWS_KEPT and many < _QUERIES_KEPT:
                return
            self._courses.pop(key, None)
            rows, many = rows - one.rows, many - 1


def _kept(snapshot: Snapshot) -> _Kept:
    # Names and trees have a cache of their own; traits and aggregates may change without them.
    made_from = (snapshot.traits, snapshot.aggregates)
    found = snapshot.cache.get("prospects")
    if isinstance(found, _Kept) and all(
        a is b for a, b in zip(found.made_from, made_from, strict=True)
    ):
        return found
    fresh = snapshot.cache["prospects"] = _Kept(made_from)
    return fresh
