"""Who can give what to each request group: masks over all rows, before any tree is walked.

A *slot* is what one provider gives in one piece: a suffixed group as a whole (Placement lets
one provider serve it), or one resource class of the unsuffixed group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from moorage.engine import filters
from moorage.engine.sharing import NOBODY, Sharing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.requests import RequestGroup
    from moorage.domain.resources import Amounts
    from moorage.engine.view import Bools, Site, View


@dataclass(frozen=True, slots=True)
class Slot:
    """One piece, and who can give it."""

    suffix: str
    wants: Amounts
    own: Bools
    """[P] providers of the anchor's own tree that can give it."""
    lends: Bools
    """[P] sharing providers of other trees that can, where `pairs` admits them."""
    pairs: Sharing


@dataclass(frozen=True, slots=True)
class Supply:
    """One group's slots. `required` masks, per required set, who has any of its traits."""

    slots: tuple[Slot, ...]
    required: tuple[Bools, ...]
    """Only of the unsuffixed group, whose providers meet them together."""
    trees: Bools
    """[P] roots of trees that can possibly serve the group."""


@dataclass(frozen=True, slots=True)
class Eligible:
    """Who may serve one group if there is enough left of what it asks: masks over all rows."""

    own: Bools
    """[P] providers of the anchor's own tree."""
    lends: Bools
    """[P] sharing providers of other trees, where `pairs` admits them."""
    pairs: Sharing
    required: tuple[Bools, ...] = ()
    """As of `Supply`."""


def eligible(site: Site, group: RequestGroup, pairs: Sharing) -> Eligible:
    """What a group asks of providers themselves: traits, aggregates, trees."""
    if group.suffix:
        right = filters.passing(site.alive, filters.right_provider(site, group))
        return Eligible(right, right, pairs)
    own = filters.passing(site.alive, filters.any_provider(site, group))
    lends = own
    admitted = NOBODY
    if len(pairs) and not group.in_tree:
        lends = filters.passing(site.alive, filters.forbidden_traits(site, group))
        admitted = _admitted(site, group, pairs)
    required = tuple(filters.has_any_trait(site, any_of) for any_of in group.required)
    if _alone(site, admitted):
        # Who gives is alone, and must meet alone what providers elsewhere meet together.
        own = lends = reduce(np.logical_and, required, own)
    return Eligible(own, lends, admitted, required)


def supply(view: View, group: RequestGroup, who: Eligible) -> Supply:
    """Who of the eligible has enough left."""
    if group.suffix:
        mask = reduce(
            np.logical_and,
            (filters.gives(view, name, most) for name, most in group.resources.items()),
            who.own,
        )
        slot = Slot(group.suffix, group.resources, mask, mask, who.pairs)
        return Supply((slot,), (), _trees_of(view, slot))
    slots = tuple(_slots(view, group, who))
    trees = reduce(np.logical_and, (_trees_of(view, slot) for slot in slots), view.alive)
    for mask in () if _alone(view, who.pairs) else who.required:
        trees = trees & _carriers(view, slots, mask)
    return Supply(slots, who.required, trees)


def _alone(site: Site, pairs: Sharing) -> bool:
    return site.trees.is_single and not len(pairs)


def _slots(view: View, group: RequestGroup, who: Eligible) -> Iterator[Slot]:
    for name, amount in group.resources.items():
        gives = filters.gives(view, name, amount)
        own = who.own & gives
        lends = own if who.lends is who.own else who.lends & gives
        yield Slot("", {name: amount}, own, lends, who.pairs)


def _admitted(site: Site, group: RequestGroup, pairs: Sharing) -> Sharing:
    """The pairs that meet the unsuffixed group's aggregate rules.

    Lenders must be members themselves; to be forbidden, membership of the anchor is enough.
    """
    if not group.member_of and not group.not_member_of:
        return pairs
    wanted = filters.in_every_set(site, group.member_of)
    unwanted = filters.in_any_aggregate(site, group.not_member_of)
    return pairs.where(wanted[pairs.lender] & ~unwanted[pairs.lender] & ~unwanted[pairs.anchor])


def _trees_of(view: View, slot: Slot) -> Bools:
    """Roots of trees whose own provider, or a lender to which, can give the slot."""
    trees = roots_of(view, slot.own)
    if len(slot.pairs):
        trees = trees.copy()
        trees[slot.pairs.anchors(slot.lends)] = True
    return trees


def roots_of(site: Site, mask: Bools) -> Bools:
    """Roots of the rows of a mask; in a fleet without nesting every row is one."""
    if site.trees.is_single:
        return mask
    trees = np.zeros(len(site.alive), dtype=np.bool_)
    trees[site.root[mask]] = True
    return trees


def _carriers(view: View, slots: Sequence[Slot], mask: Bools) -> Bools:
    """Roots of trees in which some giver is in the mask."""
    trees = np.zeros(len(view.alive), dtype=np.bool_)
    for slot in slots:
        trees |= roots_of(view, slot.own & mask)
        if len(slot.pairs):
            trees[slot.pairs.anchors(slot.lends & mask)] = True
    return trees
