"""The servers on the whole hosts of a lease: they end with it, whenever that is.

They have no places of their own in the lease (see `tickets.lease_hosts`), so what changes the
lease's end changes theirs by this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.changes import EndBookings
from moorage.domain.reservables import takes_whole_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease, Terms
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces


def with_end_of_lease(
    snapshot: Snapshot, lease: Lease, ensemble: Ensemble, member_places: MemberPlaces, terms: Terms
) -> Iterator[EndBookings]:
    """The change that gives a lease's servers on whole hosts its new end; none if it has none.

    `lease` is as before, `terms` are its new ones.
    """
    if terms.occupied.end != lease.terms.occupied.end:
        servers = host_servers(snapshot, lease, ensemble, member_places)
        if servers:
            yield EndBookings(frozenset(servers), terms.occupied.end)


def host_servers(
    snapshot: Snapshot, lease: Lease, ensemble: Ensemble, member_places: MemberPlaces
) -> tuple[str, ...]:
    """The project's servers on the lease's whole hosts that end with it, sorted.

    One that yields to another lease ends earlier, and is none.
    """
    found: set[str] = set()
    hosts = {
        snapshot.row_of[place.host]
        for name, place in member_places.places.items()
        if takes_whole_host(ensemble.role(name.role))
    }
    for host in hosts:
        for row in snapshot.tree(host).tolist():
            own = {
                one.consumer
                for one in snapshot.state(row).occupants
                if one.project_id == lease.project_id
            }
            for booking in snapshot.bookings_of(row):
                if (
                    booking.consumer in own
                    and booking.state is BookingState.ALLOCATED
                    and booking.yields_to is None
                    and booking.period.end == lease.terms.occupied.end
                ):
                    found.add(booking.consumer)
    return tuple(sorted(found))
