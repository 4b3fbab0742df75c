"""Allocation candidates: every way a request could be satisfied now, made lazily.

Placement's semantics (its API reference, microversion 1.39): a candidate comes from one anchor
tree plus the sharing providers (trait `MISC_SHARES_VIA_AGGREGATE`) that have an aggregate in
common with any provider of that tree. One class of one group is never split over providers.

Masks over all provider rows find the trees worth looking at; only those are walked, in row order,
and only until the caller has enough. Room is judged by `peak`, so holds and future bookings
reduce candidates although they never show in usages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.engine import filters
from moorage.engine.choices import (
    Choice,
    Rules,
    combinations,
    suffixed_choices,
    unsuffixed_choices,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from moorage.domain.requests import RequestGroup
    from moorage.domain.resources import Amounts, ResourceClass, Trait
    from moorage.engine.snapshot import Bools, Snapshot

SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"


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


def candidates(snapshot: Snapshot, query: CandidateQuery) -> Iterator[Candidate]:
    """Yield each distinct candidate once, in a stable order."""
    sharing = _sharing_by_anchor(snapshot)
    supplies = [_supply(snapshot, group, sharing) for group in query.groups]
    worth = reduce(np.logical_and, (supply.trees for supply in supplies), _anchors(snapshot, query))
    lone = _lone_roots(snapshot, sharing) if len(supplies) == 1 else None
    seen: set[Candidate] = set()
    for root in np.flatnonzero(worth).tolist():
        if lone is not None and lone[root]:
            group = query.groups[0]
            yield Candidate(((root, group.resources),), ((group.suffix, (root,)),))
            continue
        for found in _of_tree(snapshot, query, supplies, root):
            if sharing:
                if found in seen:
                    continue
                seen.add(found)
            yield found


def summary_rows(
    snapshot: Snapshot, found: Iterable[Candidate], *, whole_trees: bool
) -> Sequence[int]:
    """Rows to summarise beside the candidates: providers used, or every one of their trees."""
    rows = sorted({row for candidate in found for row, _ in candidate.allocations})
    if not whole_trees:
        return rows
    wanted = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    wanted[snapshot.root[rows]] = True
    whole: list[int] = np.flatnonzero(snapshot.alive & wanted[snapshot.root]).tolist()
    return whole


# --- which trees are worth a look -----------------------------------------------------------


def _anchors(snapshot: Snapshot, query: CandidateQuery) -> Bools:
    """Living roots that meet the query's rules about roots."""
    rows = np.arange(len(snapshot.uuids))
    mask: Bools = snapshot.alive & (snapshot.root == rows)
    if query.anchors is not None:
        mask = mask & np.isin(rows, list(query.anchors))
    for any_of in query.root_required:
        mask = mask & filters.has_any_trait(snapshot, any_of)
    if query.root_forbidden:
        mask = mask & ~filters.has_any_trait(snapshot, query.root_forbidden)
    return mask


def _lone_roots(snapshot: Snapshot, sharing: Mapping[int, Sequence[int]]) -> Bools:
    """Roots without children that neither borrow nor lend: at most one candidate, theirs alone."""
    sizes = np.bincount(snapshot.root[snapshot.alive], minlength=len(snapshot.uuids))
    lone: Bools = sizes == 1
    for anchor, lenders in sharing.items():
        lone[anchor] = False
        lone[list(lenders)] = False
    return lone


def _sharing_by_anchor(snapshot: Snapshot) -> Mapping[int, Sequence[int]]:
    """Anchor root row -> rows of the sharing providers of other trees that serve it."""
    shares = filters.has_trait(snapshot, SHARES) & snapshot.alive
    if not shares.any():
        return {}
    found: dict[int, set[int]] = {}
    for members in snapshot.aggregates.values():
        givers = members[shares[members]].tolist()
        if not givers:
            continue
        for anchor in np.unique(snapshot.root[members]).tolist():
            strangers = [row for row in givers if snapshot.root[row] != anchor]
            if strangers:
                found.setdefault(anchor, set()).update(strangers)
    return {anchor: sorted(rows) for anchor, rows in found.items()}


# --- what a group can get, and where --------------------------------------------------------


class _ByTree:
    """Rows of a mask, looked up by root."""

    def __init__(self, snapshot: Snapshot, mask: Bools) -> None:
        rows = np.flatnonzero(mask)
        order = np.argsort(snapshot.root[rows], kind="stable")
        self._rows = rows[order]
        self._roots = snapshot.root[self._rows]

    def of(self, root: int) -> list[int]:
        start, end = np.searchsorted(self._roots, [root, root + 1])
        rows: list[int] = self._rows[start:end].tolist()
        return rows


@dataclass(frozen=True, slots=True)
class _Supply:
    """Who can give what to one group. Key "" of `local` and `shared`: all classes together."""

    group: RequestGroup
    trees: Bools
    """Roots of trees that can possibly serve the group."""
    local: Mapping[ResourceClass, _ByTree]
    shared: Mapping[ResourceClass, Mapping[int, Sequence[int]]]
    """Anchor root -> usable sharing providers of other trees."""
    required: Sequence[Bools]

    def givers(self, resource_class: ResourceClass, root: int) -> list[int]:
        return [*self.local[resource_class].of(root), *self.shared[resource_class].get(root, ())]

    def choices(self, root: int) -> list[Choice]:
        group = self.group
        if group.suffix:
            return list(suffixed_choices(group.suffix, group.resources, self.givers("", root)))
        givers = {name: self.givers(name, root) for name in group.resources}
        return list(unsuffixed_choices("", group.resources, givers, self.required))


def _supply(
    snapshot: Snapshot, group: RequestGroup, sharing: Mapping[int, Sequence[int]]
) -> _Supply:
    if group.suffix:
        return _suffixed_supply(snapshot, group, sharing)
    return _unsuffixed_supply(snapshot, group, sharing)


def _suffixed_supply(
    snapshot: Snapshot, group: RequestGroup, sharing: Mapping[int, Sequence[int]]
) -> _Supply:
    mask, _ = filters.narrow(snapshot.alive, filters.same_provider(snapshot, group))
    shared = _usable(sharing, mask)
    trees = _trees_of(snapshot, mask, shared)
    return _Supply(group, trees, {"": _ByTree(snapshot, mask)}, {"": shared}, ())


def _unsuffixed_supply(
    snapshot: Snapshot, group: RequestGroup, sharing: Mapping[int, Sequence[int]]
) -> _Supply:
    base, _ = filters.narrow(snapshot.alive, filters.any_provider(snapshot, group))
    lendable, _ = filters.narrow(snapshot.alive, filters.forbidden_traits(snapshot, group))
    lenders = {} if group.in_tree else _admitted(snapshot, group, sharing)
    required = [filters.has_any_trait(snapshot, any_of) for any_of in group.required]
    trees = snapshot.alive
    local, shared = {}, {}
    carriers = [np.zeros_like(trees) for _ in required]
    for name, amount in group.resources.items():
        gives = (
            filters.unit_rules(snapshot, name, amount).passes
            & filters.room(snapshot, name, amount).passes
        )
        local[name] = _ByTree(snapshot, base & gives)
        shared[name] = _usable(lenders, lendable & gives)
        trees = trees & _trees_of(snapshot, base & gives, shared[name])
        for carrier, mask in zip(carriers, required, strict=True):
            np.logical_or(
                carrier,
                _trees_of(snapshot, base & gives & mask, _usable(shared[name], mask)),
                out=carrier,
            )
    return _Supply(group, reduce(np.logical_and, carriers, trees), local, shared, required)


def _admitted(
    snapshot: Snapshot, group: RequestGroup, sharing: Mapping[int, Sequence[int]]
) -> Mapping[int, Sequence[int]]:
    """Sharing providers that meet the unsuffixed group's aggregate rules, per anchor.

    They must be members themselves; to be forbidden, membership of the anchor is enough.
    """
    if not group.member_of and not group.not_member_of:
        return sharing
    wanted = filters.in_every_set(snapshot, group.member_of)
    unwanted = filters.in_any_aggregate(snapshot, group.not_member_of)
    admitted = {
        anchor: [row for row in rows if wanted[row] and not unwanted[row]]
        for anchor, rows in sharing.items()
        if not unwanted[anchor]
    }
    return {anchor: rows for anchor, rows in admitted.items() if rows}


def _usable(sharing: Mapping[int, Sequence[int]], mask: Bools) -> Mapping[int, Sequence[int]]:
    """The sharing providers that pass the mask, per anchor."""
    usable = {anchor: [row for row in rows if mask[row]] for anchor, rows in sharing.items()}
    return {anchor: rows for anchor, rows in usable.items() if rows}


def _trees_of(snapshot: Snapshot, mask: Bools, shared: Mapping[int, Sequence[int]]) -> Bools:
    """Roots of trees with a row of the mask, or with a usable sharing provider."""
    trees = np.zeros_like(mask)
    trees[snapshot.root[mask]] = True
    if shared:
        trees[list(shared)] = True
    return trees


# --- candidates of one tree -----------------------------------------------------------------


def _of_tree(
    snapshot: Snapshot, query: CandidateQuery, supplies: Sequence[_Supply], root: int
) -> Iterator[Candidate]:
    options = [supply.choices(root) for supply in supplies]
    for chosen in combinations(snapshot, options, query.rules):
        found = _merged(chosen)
        if query.one_provider_per_tree and _nested(snapshot, found):
            continue
        yield found


def _merged(chosen: Sequence[Choice]) -> Candidate:
    """Sum what the groups take, provider by provider."""
    sums: dict[int, dict[ResourceClass, int]] = {}
    for choice in chosen:
        for row, resource_class, amount in choice.takes:
            of_row = sums.setdefault(row, {})
            of_row[resource_class] = of_row.get(resource_class, 0) + amount
    return Candidate(
        tuple((row, _Taken(amounts)) for row, amounts in sorted(sums.items())),
        tuple(sorted((choice.suffix, choice.rows) for choice in chosen)),
    )


class _Taken(dict["ResourceClass", int]):
    """Amounts that can be an element of a set; never changed once made."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def _nested(snapshot: Snapshot, found: Candidate) -> bool:
    """Whether two of the candidate's providers stand in one tree."""
    roots = [int(snapshot.root[row]) for row, _ in found.allocations]
    return len(set(roots)) < len(roots)
