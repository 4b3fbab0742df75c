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
    from moorage.engine.view import Bools, View


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


def supply(view: View, group: RequestGroup, pairs: Sharing) -> Supply:
    """The masks of one group."""
    if group.suffix:
        return _suffixed(view, group, pairs)
    return _unsuffixed(view, group, pairs)


def _suffixed(view: View, group: RequestGroup, pairs: Sharing) -> Supply:
    right = filters.passing(view.alive, filters.right_provider(view, group))
    mask = reduce(
        np.logical_and,
        (filters.gives(view, name, most) for name, most in group.resources.items()),
        right,
    )
    slot = Slot(group.suffix, group.resources, mask, mask, pairs)
    return Supply((slot,), (), _trees_of(view, slot))


def _unsuffixed(view: View, group: RequestGroup, pairs: Sharing) -> Supply:
    base = filters.passing(view.alive, filters.any_provider(view, group))
    lendable = base
    admitted = NOBODY
    if len(pairs) and not group.in_tree:
        lendable = filters.passing(view.alive, filters.forbidden_traits(view, group))
        admitted = _admitted(view, group, pairs)
    required = tuple(filters.has_any_trait(view, any_of) for any_of in group.required)
    alone = view.trees.is_single and not len(admitted)
    if alone:
        # Who gives is alone, and must meet alone what providers elsewhere meet together.
        base = lendable = reduce(np.logical_and, required, base)
    slots = tuple(_slots(view, group, (base, lendable), admitted))
    trees = reduce(np.logical_and, (_trees_of(view, slot) for slot in slots), view.alive)
    for mask in () if alone else required:
        trees = trees & _carriers(view, slots, mask)
    return Supply(slots, required, trees)


def _slots(
    view: View,
    group: RequestGroup,
    masks: tuple[Bools, Bools],
    pairs: Sharing,
) -> Iterator[Slot]:
    base, lendable = masks
    for name, amount in group.resources.items():
        gives = filters.gives(view, name, amount)
        yield Slot("", {name: amount}, base & gives, lendable & gives, pairs)


def _admitted(view: View, group: RequestGroup, pairs: Sharing) -> Sharing:
    """The pairs that meet the unsuffixed group's aggregate rules.

    Lenders must be members themselves; to be forbidden, membership of the anchor is enough.
    """
    if not group.member_of and not group.not_member_of:
        return pairs
    wanted = filters.in_every_set(view, group.member_of)
    unwanted = filters.in_any_aggregate(view, group.not_member_of)
    return pairs.where(wanted[pairs.lender] & ~unwanted[pairs.lender] & ~unwanted[pairs.anchor])


def _trees_of(view: View, slot: Slot) -> Bools:
    """Roots of trees whose own provider, or a lender to which, can give the slot."""
    trees = _roots_of(view, slot.own)
    if len(slot.pairs):
        trees = trees.copy()
        trees[slot.pairs.anchors(slot.lends)] = True
    return trees


def _roots_of(view: View, mask: Bools) -> Bools:
    """Roots of the rows of a mask; in a fleet without nesting every row is one."""
    if view.trees.is_single:
        return mask
    trees = np.zeros(len(view.alive), dtype=np.bool_)
    trees[view.root[mask]] = True
    return trees


def _carriers(view: View, slots: Sequence[Slot], mask: Bools) -> Bools:
    """Roots of trees in which some giver is in the mask."""
    trees = np.zeros(len(view.alive), dtype=np.bool_)
    for slot in slots:
        trees |= _roots_of(view, slot.own & mask)
        if len(slot.pairs):
            trees[slot.pairs.anchors(slot.lends & mask)] = True
    return trees
