"""Providers that can give what a query asks for: masks over all rows, before trees are searched.

A *slot* is what one provider gives in one piece: a suffixed group as a whole (Placement lets
one provider serve it), or one resource class of the unsuffixed group. Slots are judged together,
a mask each, in the order of the query's shape.
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
    from moorage.engine.candidates.query_shape import Shape
    from moorage.engine.state.fleet_view import Bools, FleetView, TreeView


_ANY_TREE: Final[Mapping[str, Bools]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Eligible:
    """Who may give each of s slots if there is enough left of what it asks."""

    own: Bools
    """[s, P] providers of the anchor's own tree."""
    lends: Bools
    """[s, P] sharing providers of other trees, where `pairs` admits them."""
    pairs: tuple[Sharing, ...]
    """[s]"""
    required: tuple[Bools, ...] = ()
    """Per required set of the unsuffixed group, whose providers meet them together: who has any
    of its traits, [P]."""
    plain_pairs: Sharing = NO_SHARING
    """Who lends to whom what the unsuffixed group asks for."""


@dataclass(frozen=True, slots=True)
class Supply:
    """Who of the eligible has enough left."""

    own: Bools
    """[s, P]"""
    lends: Bools
    """[s, P]"""
    trees: Bools
    """[P] roots of trees that can possibly serve every slot."""


def eligible(
    site: TreeView,
    groups: Sequence[RequestGroup],
    pairs: Sharing,
    trees: Mapping[str, Bools] = _ANY_TREE,
) -> Eligible:
    """What request groups ask of providers themselves: traits, aggregates, trees.

    Args:
        site: where they are sought.
        groups: what is asked.
        pairs: who lends to whom there.
        trees: by suffix, the rows [P] that a group must keep to; any where it is left out.
    """
    found: list[tuple[Bools, Bools, Sharing]] = []
    required: tuple[Bools, ...] = ()
    admitted = NO_SHARING
    for group in groups:
        if group.suffix:
            right = provider_filters.apply_filters(
                site.alive, provider_filters.provider_rules(site, group)
            )
            right = right & trees[group.suffix] if group.suffix in trees else right
            found.append((right, right, pairs))
            continue
        own = lends = provider_filters.apply_filters(
            site.alive, provider_filters.unsuffixed_rules(site, group)
        )
        if group.suffix in trees:
            own = lends = own & trees[group.suffix]
        elif len(pairs):
            lends = provider_filters.apply_filters(
                site.alive, provider_filters.forbidden_traits(site, group)
            )
            admitted = _admitted(site, group, pairs)
        required = tuple(provider_filters.has_any_trait(site, any_of) for any_of in group.required)
        if _alone(site, admitted):
            # Who gives is alone, and must meet alone what providers elsewhere meet together.
            own = lends = reduce(np.logical_and, required, own)
        found += [(own, lends, admitted)] * len(group.resources)
    masks = _stacked(site, [own for own, _, _ in found])
    return Eligible(
        own=masks,
        lends=_stacked(site, [lends for _, lends, _ in found]) if len(pairs) else masks,
        pairs=tuple(some for _, _, some in found),
        required=required,
        plain_pairs=admitted,
    )


def _stacked(site: TreeView, masks: Sequence[Bools]) -> Bools:
    return np.array(masks, dtype=np.bool_).reshape(len(masks), len(site.alive))


def supply(view: FleetView, shape: Shape, who: Eligible) -> Supply:
    """Who of the eligible has enough left."""
    own = who.own.copy()
    lends = own if who.lends is who.own else who.lends.copy()
    both = (own,) if lends is own else (own, lends)
    for number, slot in enumerate(shape.slots):
        for name, amount in slot.amounts:
            gives = provider_filters.can_allocate(view, name, amount)
            for masks in both:
                masks[number] &= gives
    trees: Bools = np.logical_and.reduce(_anchors(view, own, lends, who.pairs))
    if who.required and not _alone(view, who.plain_pairs):
        plain = [number for number, slot in enumerate(shape.slots) if not slot.suffix]
        trees &= _covered(
            view, who, np.logical_or.reduce(own[plain]), np.logical_or.reduce(lends[plain])
        )
    return Supply(own, lends, trees)


def _covered(view: FleetView, who: Eligible, own: Bools, lends: Bools) -> Bools:
    """Roots of trees in which, for each required set, somebody in the masks helps to meet it."""
    required = np.array(who.required)
    pairs = [who.plain_pairs] * len(required)
    found: Bools = np.logical_and.reduce(_anchors(view, own & required, lends & required, pairs))
    return found


def _anchors(view: FleetView, own: Bools, lends: Bools, pairs: Sequence[Sharing]) -> Bools:
    """Roots of trees whose own provider, or a lender to which, is in a mask; each [k, P]."""
    trees = trees_of(view, own)
    if any(map(len, pairs)):
        trees = trees.copy()
        for number, some in enumerate(pairs):
            trees[number, some.anchors(lends[number])] = True
    return trees


def _alone(site: TreeView, pairs: Sharing) -> bool:
    return site.trees.is_single and not len(pairs)


def _admitted(site: TreeView, group: RequestGroup, pairs: Sharing) -> Sharing:
    """The pairs that meet the unsuffixed group's aggregate rules.

    Lenders must be members themselves; to be forbidden, membership of the anchor is enough.
    """
    if not group.member_of and not group.not_member_of:
        return pairs
    wanted = provider_filters.in_every_set(site, group.member_of)
    unwanted = provider_filters.in_any_aggregate(site, group.not_member_of)
    return pairs.selected(wanted[pairs.lender] & ~unwanted[pairs.lender] & ~unwanted[pairs.anchor])


def trees_of(site: TreeView, masks: Bools) -> Bools:
    """[k, P] roots of the rows of each mask [k, P]; without nesting every row is one."""
    if site.trees.is_single:
        return masks
    trees = np.zeros(masks.shape, dtype=np.bool_)
    for roots, mask in zip(trees, masks, strict=True):
        roots[site.root[mask.nonzero()[0]]] = True
    return trees
