"""Leases that have not started, and offers, with their places: others move or preempt them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import Binding
from moorage.domain.errors import NotFound
from moorage.domain.leases import LeaseState
from moorage.engine.state.overlay import with_bookings
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.writes import hold_bookings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.member_names import MemberName
    from moorage.domain.placement import Place
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.ports import Store


@dataclass(frozen=True, eq=False)
class PendingLease:
    """A pending lease or an offer, with its members' present places."""

    lease: Lease
    decision: Decision
    ensemble: Ensemble
    member_places: MemberPlaces

    @property
    def consumers(self) -> frozenset[str]:
        """UUIDs of the consumers that hold its places."""
        return frozenset(one[0].consumer for one in self.member_places.bookings.values())

    def booked_on(self, members: frozenset[MemberName]) -> dict[str, frozenset[str]]:
        """Consumer -> the providers it is booked on, for the placed ones of these members."""
        return {
            some[0].consumer: frozenset(one.provider for one in some)
            for name, some in self.member_places.bookings.items()
            if name in members
        }

    def bookings(self, places: Mapping[MemberName, Place]) -> dict[str, tuple[Booking, ...]]:
        """Its members' bookings in other places, by consumer."""
        return {
            member.uuid: hold_bookings(
                member, places[member.name], self.decision, binding=Binding.PLANNED
            )
            for member in self.ensemble.members
            if member.name in places
        }


_UNBEGUN: Final = frozenset({LeaseState.OFFERED, LeaseState.PENDING})


def pending_lease(store: Store, snapshot: Snapshot, decision_id: str) -> PendingLease | None:
    """The pending lease or the offer of a decision, if that is its present decision."""
    try:
        decision = store.decision(decision_id)
        lease = None if decision.lease_id is None else store.lease(decision.lease_id)
        ensemble = store.ensemble(decision.ensemble_id)
    except NotFound:
        return None
    if lease is None or lease.decision_id != decision.id or lease.state not in _UNBEGUN:
        return None
    return PendingLease(lease, decision, ensemble, locate_members(snapshot, ensemble))


def without_leases(snapshot: Snapshot, leases: Iterable[PendingLease]) -> Snapshot:
    """The fleet without the places of some leases."""
    return with_bookings(snapshot, {name: () for one in leases for name in one.consumers})
