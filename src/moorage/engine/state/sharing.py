"""Which sharing providers serve which trees: pairs of an anchor and a lender, as columns.

Placement's rule: a provider with the trait `MISC_SHARES_VIA_AGGREGATE` serves every tree of which
some provider is a member of an aggregate it is a member of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.providers import SHARING_TRAIT
from moorage.engine.state import provider_filters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.state.fleet_view import TreeView
    from moorage.engine.state.snapshot import Snapshot

    Rows: TypeAlias = NDArray[np.integer]
    Bools: TypeAlias = NDArray[np.bool_]

_NONE: Final = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Sharing:
    """q pairs of anchor tree and sharing provider (lender) of another tree, sorted."""

    anchor: Rows
    """[q] root row of a tree."""
    lender: Rows
    """[q] row of a sharing provider that serves it."""
    parent: Rows
    """[P] parent row or -1 of every provider; a lender may be a nested provider."""
    made_from: tuple[object, object] = (None, None)

    def __len__(self) -> int:
        return len(self.anchor)

    def selected(self, mask: Bools) -> Sharing:
        """The pairs that a mask [q] selects."""
        return Sharing(self.anchor[mask], self.lender[mask], self.parent)

    def lenders(self, anchor: int) -> Rows:
        """The sharing providers that serve one tree."""
        first, last = np.searchsorted(self.anchor, [anchor, anchor + 1])
        return self.lender[first:last]

    def anchors(self, lends: Bools) -> Rows:
        """Anchors (with repeats) of the pairs whose lender a mask [P] selects."""
        return self.anchor[lends[self.lender]]


NO_SHARING: Final = Sharing(_NONE, _NONE, _NONE)


def sharing(snapshot: Snapshot) -> Sharing:
    """All pairs of the fleet; cached while traits, aggregates and trees are unchanged."""
    mask = snapshot.traits.get(SHARING_TRAIT)
    if mask is None:
        return NO_SHARING
    kept = snapshot.cache.get("sharing")
    made_from = (mask, snapshot.aggregates)
    if isinstance(kept, Sharing) and all(
        a is b for a, b in zip(kept.made_from, made_from, strict=True)
    ):
        return kept
    anchor, lender = _pairs(snapshot)
    found = Sharing(anchor, lender, snapshot.parent, made_from)
    snapshot.cache["sharing"] = found
    return found


def _pairs(view: TreeView) -> tuple[Rows, Rows]:
    shares = provider_filters.has_trait(view, SHARING_TRAIT) & view.alive
    size = len(view.alive)
    codes = []
    for members in view.aggregates.values():
        givers = members[shares[members]].astype(np.int64)
        if len(givers):
            anchors = np.unique(view.root[members]).astype(np.int64)
            codes.append((anchors[:, None] * size + givers[None, :]).ravel())
    if not codes:
        return _NONE, _NONE
    pairs = np.unique(np.concatenate(codes))
    anchor, lender = pairs // size, pairs % size
    other_tree = view.root[lender] != anchor
    return anchor[other_tree], lender[other_tree]
