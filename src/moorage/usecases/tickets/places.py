"""The places that a ticket class or a reservation's class stands for, and whether they are open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.errors import InvalidDescription, WrongState
from moorage.domain.host_states import HostOutOfService
from moorage.domain.leases import LeaseState
from moorage.domain.period import format_instant
from moorage.domain.refusal_commands import to_place, to_see_lease, to_see_places
from moorage.domain.tickets import parse_ticket_class
from moorage.domain.virtual_classes import MOST, RESERVATION, TICKET, reservation_of
from moorage.engine.state.host_states import host_states
from moorage.usecases.decide.member_places import bookings_of, place_of
from moorage.usecases.shared.allocation_write import named_by_request
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.shared.ticket_flavors import held_decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.domain.providers import Inventory
    from moorage.domain.resources import ResourceClass
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store


@dataclass(frozen=True, slots=True)
class PlaceHolder:
    """The lease or the held decision whose places a class stands for."""

    name: ResourceClass
    """The class."""
    words: str
    """For errors, such as `reservation 0b1e...` or `the ticket of role db`."""
    decision_id: str
    """The decision that placed the members."""
    ensemble_id: str
    project_id: str
    role: str
    index: int | None = None
    """The only member's; None: any member of the role."""
    lease: Lease | None = None
    decision: Decision | None = None
    """The held decision; None: a lease's."""

    @property
    def until(self) -> Instant | None:
        """The end of servers in places of a lease; None: as each place's bookings say."""
        return None if self.lease is None else self.lease.terms.occupied.end

    @property
    def remedy(self) -> str:
        """The end of a refusal: how its places are shown."""
        if self.lease is not None:
            return to_see_lease(self.lease.id)
        return to_see_places(self.ensemble_id)

    def check_open(self, now: Instant) -> None:
        """Check that the lease has begun and has not ended.

        Raises:
            WrongState: it has not, or it has.
        """
        if self.lease is None:
            return
        lease, period = self.lease, self.lease.terms.period
        subject = f"lease {lease.id}, which {self.words} is of,"
        if lease.state in {LeaseState.ENDING, LeaseState.CLOSED} or period.end <= now:
            raise WrongState(f"{subject} has ended{self.remedy}")
        if not lease.claimable(now):
            begins = format_instant(period.start)
            raise WrongState(f"{subject} is {lease.state}: it begins at {begins}{self.remedy}")

    def no_place_left(self, now: Instant, found: TicketPlaces) -> WrongState:
        """The error of a server that finds every place taken, or its host out of service."""
        if found.out_of_service:
            remedy = self.remedy if self.lease else to_place(found.ensemble.name)
            return HostOutOfService(f"a place of {self.words}", remedy)
        if self.lease is not None and self.lease.terms.expires_at <= now:
            expired = format_instant(self.lease.terms.expires_at)
            return WrongState(f"{self.words} expired at {expired}{self.remedy}")
        return WrongState(f"{self.words} has no place left{self.remedy}")


@dataclass(frozen=True, slots=True)
class TicketPlaces:
    """The places of one class at one instant."""

    ensemble: Ensemble
    unclaimed: Mapping[Member, Place]
    """Members whose places are not claimed yet, in order; on hosts in service."""
    servers: tuple[str, ...]
    """UUIDs of servers with places of the class."""
    out_of_service: bool
    """Whether there are unclaimed places on hosts that are not in service."""


def place_holder(store: Store, name: ResourceClass) -> PlaceHolder | None:
    """The lease or held decision whose places a class stands for.

    None: there is none, or the decision is not held any more. Servers request the class of their
    ticket for life; from then on it means nothing.
    """
    return _of_lease(store, name) if name.startswith(RESERVATION) else _of_decision(store, name)


def place_holders(store: Store, names: Iterable[ResourceClass]) -> dict[ResourceClass, PlaceHolder]:
    """Those of the classes that stand for places."""
    found = ((name, place_holder(store, name)) for name in names)
    return {name: holder for name, holder in found if holder is not None}


def presented_reservation(store: Store, request_id: str | None) -> ResourceClass | None:
    """The class of the reservation whose id a request has as its `X-Openstack-Request-Id`."""
    if request_id is None:
        return None
    reservation = named_by_request(request_id)
    lease = if_stored(store.lease_of_reservation, reservation)
    named = () if lease is None else lease.reservations
    return next((one.resource_class for one in named if one.id == reservation), None)


def is_ticket(name: ResourceClass) -> bool:
    """Whether a class is a held decision's, or was one's: no inventory can have it."""
    return name.startswith(TICKET)


def stands_for_places(store: Store, name: ResourceClass) -> bool:
    """Whether it is a ticket's class, or a reservation's of a lease."""
    return is_ticket(name) or (
        name.startswith(RESERVATION) and place_holder(store, name) is not None
    )


def is_virtual(store: Store, name: ResourceClass) -> bool:
    """Whether it is a virtual class: one of terms, a ticket's, or a lease's reservation's."""
    return name in MOST or stands_for_places(store, name)


def check_stock(store: Store, inventories: Iterable[Inventory]) -> None:
    """Check that no inventory is of a virtual class: Moorage itself answers for these.

    Raises:
        InvalidDescription: one is.
    """
    for one in inventories:
        if is_virtual(store, one.resource_class):
            raise InvalidDescription(
                f"{one.resource_class} is a virtual resource class of Moorage: no provider can have"
                " an inventory of it",
                path=f"inventories.{one.resource_class}",
            )


def _of_lease(store: Store, name: ResourceClass) -> PlaceHolder | None:
    lease = if_stored(store.lease_of_reservation, reservation_of(name))
    if lease is None:
        return None
    for one in lease.reservations:
        if one.resource_class == name:
            return PlaceHolder(
                name=name,
                words=f"reservation {one.id}",
                decision_id=lease.decision_id,
                ensemble_id=lease.ensemble_id,
                project_id=lease.project_id,
                role=one.role,
                lease=lease,
            )
    return None


def _of_decision(store: Store, name: ResourceClass) -> PlaceHolder | None:
    parsed = parse_ticket_class(name)
    if parsed is None:
        return None
    decision = held_decision(store, parsed.ticket)
    ensemble = None if decision is None else if_stored(store.ensemble, decision.ensemble_id)
    if decision is None or ensemble is None:
        return None
    role = next((one.name for one in ensemble.roles if parsed.is_of(one.name)), None)
    if role is None:
        return None
    member = f"role {role}" if parsed.index is None else f"member {role}[{parsed.index}]"
    return PlaceHolder(
        name=name,
        words=f"the ticket of {member} of ensemble {ensemble.name}",
        decision_id=decision.id,
        ensemble_id=ensemble.id,
        project_id=ensemble.project_of(role),
        role=role,
        index=parsed.index,
        decision=decision,
    )


def ticket_places(store: Store, snapshot: Snapshot, holder: PlaceHolder) -> TicketPlaces:
    """The places of a class in the snapshot.

    Raises:
        NotFound: the ensemble is gone.
    """
    ensemble = store.ensemble(holder.ensemble_id)
    state = BookingState.HELD if holder.lease is None else BookingState.RESERVED
    unclaimed: dict[Member, Place] = {}
    servers: list[str] = []
    in_service, out_of_service = host_states(snapshot).in_service, False
    for member in ensemble.members:
        if member.name.role != holder.role or holder.index not in {None, member.name.index}:
            continue
        kept = bookings_of(snapshot, member.uuid)
        if kept and kept[0].state is state:
            place = place_of(snapshot, kept)
            if in_service[snapshot.row_of[place.host]]:
                unclaimed[member] = place
            else:
                out_of_service = True
        if member.server_id is not None and bookings_of(snapshot, member.server_id):
            servers.append(member.server_id)
    return TicketPlaces(ensemble, unclaimed, tuple(servers), out_of_service)
