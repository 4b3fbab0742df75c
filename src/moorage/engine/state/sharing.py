"""Which sharing providers serve which trees, as pairs of columns.

Placement's rule: a provider with the trait `MISC_SHARES_VIA_AGGREGATE` serves every tree of which
some provider is a member of an aggregate it is a member of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.state import provider_filters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.state.fleet_view import Site
    from moorage.engine.state.snapshot import Snapshot

    Rows: TypeAlias = NDArray[np.integer]
    Bools: TypeAlias = NDArray[np.bool_]

SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"
_NONE: Final = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Sharing:
    """q pairs, sorted by anchor, then lender; each lender stands in another tree."""

    anchor: Rows
    """[q] root row of a tree."""
    lender: Rows
    """[q] row of a sharing provider that serves it."""
    parent: Rows
    """[P] parent row or -1 of every provider of the fleet; lenders may stand below others."""
    made_from: tuple[object, object] = (None, None)

    def __len__(self) -> int:
        return len(self.anchor)

    def where(self, mask: Bools) -> Sharing:
        """The pairs a mask [q] selects."""
        return Sharing(self.anchor[mask], self.lender[mask], self.parent)

    def lenders(self, anchor: int) -> Rows:
        """The sharing providers that serve one tree."""
        first, last = np.searchsorted(self.anchor, [anchor, anchor + 1])
        return self.lender[first:last]

    def anchors(self, lends: Bools) -> Rows:
        """Anchors, repeated, of pairs whose lender a mask [P] selects."""
        return self.anchor[lends[self.lender]]


NOBODY: Final = Sharing(_NONE, _NONE, _NONE)


def sharing(snapshot: Snapshot) -> Sharing:
    """Every pair of the fleet; found once as long as traits, aggregates and trees stay."""
    mask = snapshot.traits.get(SHARES)
    if mask is None:
        return NOBODY
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


def _pairs(site: Site) -> tuple[Rows, Rows]:
    shares = provider_filters.has_trait(site, SHARES) & site.alive
    size = len(site.alive)
    codes = []
    for members in site.aggregates.values():
        givers = members[shares[members]].astype(np.int64)
        if len(givers):
            anchors = np.unique(site.root[members]).astype(np.int64)
            codes.append((anchors[:, None] * size + givers[None, :]).ravel())
    if not codes:
        return _NONE, _NONE
    pairs = np.unique(np.concatenate(codes))
    anchor, lender = pairs // size, pairs % size
    strangers = site.root[lender] != anchor
    return anchor[strangers], lender[strangers]
