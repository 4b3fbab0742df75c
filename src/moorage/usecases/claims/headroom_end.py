"""The end of an ensemble's headroom: it is given back when nothing is left that could grow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import DropBookings, PutEnsemble
from moorage.usecases.decide.member_places import locate_members

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.usecases.ports import Store


def headroom_end(ensemble: Ensemble, now: Instant) -> tuple[Change, ...]:
    """The changes that give an ensemble's headroom back; none if it has no headroom.

    The new generation makes whoever sets the headroom meanwhile read the ensemble again.
    """
    if not ensemble.headroom:
        return ()
    without = replace(ensemble, headroom=(), updated_at=now)
    return PutEnsemble(without, ensemble.generation), DropBookings(ensemble.spares)


def end_beside_no_place(
    store: Store, ensemble: Ensemble, now: Instant, losing: MemberName | None = None
) -> tuple[Change, ...]:
    """As `headroom_end`, unless a member has a place, but for one that is `losing` it."""
    if not ensemble.headroom:
        return ()
    places = locate_members(store.snapshot(), ensemble).places
    return () if places.keys() - {losing} else headroom_end(ensemble, now)
