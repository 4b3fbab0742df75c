"""A reservation in Placement's API: its resource class, its places, and why none can be taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.errors import WrongState
from moorage.domain.leases import LeaseState, reservation_class
from moorage.domain.period import format_instant
from moorage.domain.virtual_classes import reservation_of
from moorage.usecases.decide.member_places import bookings_of, place_of
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.leases import Lease, Reservation
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store


@dataclass(frozen=True, slots=True)
class ReservedPlaces:
    """A reservation of a lease with its members' places at one instant."""

    lease: Lease
    reservation: Reservation
    ensemble: Ensemble
    unclaimed: Mapping[Member, Place]
    """Members whose places are not claimed yet, in order."""
    servers: tuple[str, ...]
    """UUIDs of servers with places of the reservation."""

    @property
    def name(self) -> str:
        """The reservation's resource class."""
        return reservation_class(self.reservation.id)

    def check_open(self, now: Instant) -> None:
        """Check that a server may take a place of the reservation.

        Raises:
            WrongState: the lease is not active, or no place is left.
        """
        lease, period = self.lease, self.lease.terms.period
        told = f"lease {lease.id}, which reservation {self.reservation.id} is of,"
        if lease.state in {LeaseState.ENDING, LeaseState.CLOSED} or period.end <= now:
            raise WrongState(f"{told} has ended")
        if not lease.claimable(now):
            begins = format_instant(period.start)
            raise WrongState(f"{told} is {lease.state}: it begins at {begins}")
        if self.unclaimed:
            return
        if lease.terms.expires_at <= now:
            expired = format_instant(lease.terms.expires_at)
            raise WrongState(f"reservation {self.reservation.id} expired at {expired}")
        raise WrongState(f"reservation {self.reservation.id} has no place left")


def lease_of_class(store: Store, name: str) -> Lease | None:
    """The lease whose reservation has this resource class; None if it is no reservation's class."""
    lease = if_stored(store.lease_of_reservation, reservation_of(name))
    if lease is None or all(reservation_class(one.id) != name for one in lease.reservations):
        return None
    return lease


def leases_of_classes(store: Store, names: Iterable[str]) -> dict[str, Lease]:
    """Those of the names that are reservations' resource classes, with their leases."""
    found = ((name, lease_of_class(store, name)) for name in names)
    return {name: lease for name, lease in found if lease is not None}


def reserved_places(store: Store, snapshot: Snapshot, name: str, lease: Lease) -> ReservedPlaces:
    """The reservation of a lease with this resource class, and its places in the snapshot.

    Raises:
        NotFound: the lease's ensemble is gone.
    """
    reservation = next(one for one in lease.reservations if reservation_class(one.id) == name)
    ensemble = store.ensemble(lease.ensemble_id)
    unclaimed: dict[Member, Place] = {}
    servers: list[str] = []
    for member in ensemble.members:
        if member.name.role != reservation.role:
            continue
        kept = bookings_of(snapshot, member.uuid)
        if kept and kept[0].state is BookingState.RESERVED:
            unclaimed[member] = place_of(snapshot, kept)
        if member.server_id is not None and bookings_of(snapshot, member.server_id):
            servers.append(member.server_id)
    return ReservedPlaces(lease, reservation, ensemble, unclaimed, tuple(servers))
