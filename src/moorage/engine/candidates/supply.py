"""Masks of the providers that can serve each slot of a query, computed before trees are searched.

A *slot* is what one provider allocates: a suffixed group as a whole, or one resource class of the
unsuffixed group. There is one mask per slot, in the order of the query's shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.engine.state import provider_filters
from moorage.engine.state.sharing import NO_SHARING, Sharing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.requests import RequestGroup
    from moorage.engine.candidates.query_shape import QueryShape
    from moorage.engine.state.fleet_view import Bools, FleetView, TreeView


_ANY_TREE: Final[Mapping[str, Bools]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Eligible:
    """Providers that meet each of s slots' rules, whatever capacity they have left."""

    own: Bools
    """[s, P] providers of the anchor's own tree."""
    lends: Bools
    """[s, P] sharing providers of other trees, where `pairs` admits them."""
    pairs: tuple[Sharing, ...]
    """[s] anchor and lender pairs per slot."""
    required: tuple[Bools, ...] = ()
    """Per required trait set of the unsuffixed group: [P] providers with any of its traits. The
    group's providers meet the sets together."""
    unsuffixed_pairs: Sharing = NO_SHARING
    """Anchor and lender pairs for the unsuffixed group."""


@dataclass(frozen=True, slots=True)
class Supply:
    """The eligible providers with enough free capacity, per slot."""

    own: Bools
    """[s, P]"""
    lends: Bools
    """[s, P]"""
    trees: Bools
    """[P] roots of trees in which every slot has a provider."""


def eligible_providers(
    view: TreeView,
    groups: Sequence[RequestGroup],
    pairs: Sharing,
    trees: Mapping[str, Bools] = _ANY_TREE,
) -> Eligible:
    """Apply the groups' rules on traits, aggregates and trees to every provider.

    `pairs` are the sharing providers in the view, with the trees that they serve. `trees` has, by
    suffix, [P] the providers to which `in_tree` limits the group; missing: no limit.
    """
    found: list[tuple[Bools, Bools, Sharing]] = []
    required: tuple[Bools, ...] = ()
    admitted = NO_SHARING
    for group in groups:
        if group.suffix:
            right = provider_filters.apply_filters(
                view.alive, provider_filters.provider_rules(view, group)
            )
            right = right & trees[group.suffix] if group.suffix in trees else right
            found.append((right, right, pairs))
            continue
        own = lends = provider_filters.apply_filters(
            view.alive, provider_filters.unsuffixed_rules(view, group)
        )
        if group.suffix in trees:
            own = lends = own & trees[group.suffix]
        elif len(pairs):
            lends = provider_filters.apply_filters(
                view.alive, provider_filters.forbidden_traits(view, group)
            )
            admitted = _pairs_in_aggregates(view, group, pairs)
        required = tuple(provider_filters.has_any_trait(view, any_of) for any_of in group.required)
        if _is_single(view, admitted):
            # A tree of one provider without sharing: it must meet all required sets alone.
            own = lends = reduce(np.logical_and, required, own)
        found += [(own, lends, admitted)] * len(group.resources)
    masks = _stacked(view, [own for own, _, _ in found])
    return Eligible(
        own=masks,
        lends=_stacked(view, [lends for _, lends, _ in found]) if len(pairs) else masks,
        pairs=tuple(some for _, _, some in found),
        required=required,
        unsuffixed_pairs=admitted,
    )


def _stacked(view: TreeView, masks: Sequence[Bools]) -> Bools:
    return np.array(masks, dtype=np.bool_).reshape(len(masks), len(view.alive))


def supply(view: FleetView, shape: QueryShape, eligible: Eligible) -> Supply:
    """Select the eligible providers with enough free capacity for each slot."""
    own = eligible.own.copy()
    lends = own if eligible.lends is eligible.own else eligible.lends.copy()
    both = (own,) if lends is own else (own, lends)
    for number, slot in enumerate(shape.slots):
        for name, amount in slot.amounts:
            gives = provider_filters.can_allocate(view, name, amount)
            for masks in both:
                masks[number] &= gives
    trees: Bools = np.logical_and.reduce(_anchors(view, own, lends, eligible.pairs))
    if eligible.required and not _is_single(view, eligible.unsuffixed_pairs):
        plain = [number for number, slot in enumerate(shape.slots) if not slot.suffix]
        trees &= _trees_with_traits(
            view, eligible, np.logical_or.reduce(own[plain]), np.logical_or.reduce(lends[plain])
        )
    return Supply(own, lends, trees)


def _trees_with_traits(view: FleetView, eligible: Eligible, own: Bools, lends: Bools) -> Bools:
    """[P] roots of trees in which each required trait set is met by a provider in the masks."""
    required = np.array(eligible.required)
    pairs = [eligible.unsuffixed_pairs] * len(required)
    found: Bools = np.logical_and.reduce(_anchors(view, own & required, lends & required, pairs))
    return found


def _anchors(view: FleetView, own: Bools, lends: Bools, pairs: Sequence[Sharing]) -> Bools:
    """[k, P] per mask: roots of trees with an own provider or a lender in the mask."""
    trees = trees_of(view, own)
    if any(map(len, pairs)):
        trees = trees.copy()
        for number, some in enumerate(pairs):
            trees[number, some.anchors(lends[number])] = True
    return trees


def _is_single(view: TreeView, pairs: Sharing) -> bool:
    return view.trees.is_single and not len(pairs)


def _pairs_in_aggregates(view: TreeView, group: RequestGroup, pairs: Sharing) -> Sharing:
    """The pairs that meet the unsuffixed group's `member_of` rules.

    A lender must itself be a member of the required aggregates. A pair is excluded if the lender or
    the anchor is a member of a forbidden one.
    """
    if not group.member_of and not group.not_member_of:
        return pairs
    allowed = provider_filters.in_every_set(view, group.member_of)
    unwanted = provider_filters.in_any_aggregate(view, group.not_member_of)
    return pairs.selected(allowed[pairs.lender] & ~unwanted[pairs.lender] & ~unwanted[pairs.anchor])


def trees_of(view: TreeView, masks: Bools) -> Bools:
    """[k, P] roots of the rows of each mask [k, P]; without nested providers the masks."""
    if view.trees.is_single:
        return masks
    trees = np.zeros(masks.shape, dtype=np.bool_)
    for roots, mask in zip(trees, masks, strict=True):
        roots[view.root[mask.nonzero()[0]]] = True
    return trees
