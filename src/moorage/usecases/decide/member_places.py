"""The places and status of an ensemble's members, read from the bookings of a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.placement import Place
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.resources import total
from moorage.engine.state.server_locations import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant, Period
    from moorage.engine.state.snapshot import Snapshot


class MemberStatus(StrEnum):
    """The placement status of a member."""

    UNPLACED = "unplaced"
    HELD = "held"
    BUILDING = "building"
    """Its place is claimed for a server that is being built."""
    ACTIVE = "active"
    """A server has its place."""


_STATUS = {
    BookingState.HELD: MemberStatus.HELD,
    BookingState.CLAIMED: MemberStatus.BUILDING,
    BookingState.RESERVED: MemberStatus.HELD,
    BookingState.ALLOCATED: MemberStatus.ACTIVE,
}


@dataclass(frozen=True, slots=True)
class MemberPlaces:
    """The places, status and bookings of an ensemble's members at an instant."""

    at: Instant
    places: Mapping[MemberName, Place]
    status: Mapping[MemberName, MemberStatus]
    bookings: Mapping[MemberName, tuple[Booking, ...]]
    consumers: frozenset[str]
    """UUIDs of all members, their servers and migrations, placed or not, and of the ensemble's
    headroom: none is foreign to the ensemble."""
    references: Mapping[str, frozenset[str]]
    """Id of another ensemble to which policies refer -> UUIDs of its members' hosts."""

    def of(self, member: MemberName) -> MemberStatus:
        """The status of a member."""
        return self.status.get(member, MemberStatus.UNPLACED)


def consumer_of(member: Member) -> str:
    """The consumer of the member's bookings: its server, or the member itself while held."""
    return member.server_id or member.uuid


def locate_members(snapshot: Snapshot, ensemble: Ensemble) -> MemberPlaces:
    """Read the places of the members at the snapshot's revision and instant.

    The place of a member with a server is the server's allocations; without any it is unplaced.
    """
    places: dict[MemberName, Place] = {}
    status: dict[MemberName, MemberStatus] = {}
    placed = member_bookings(snapshot, ensemble)
    for name, bookings in placed.items():
        places[name] = place_of(snapshot, bookings)
        status[name] = _STATUS[bookings[0].state]
    return MemberPlaces(
        at=snapshot.taken_at,
        places=MappingProxyType(places),
        status=MappingProxyType(status),
        bookings=placed,
        consumers=ensemble.consumers | ensemble.spares,
        references=MappingProxyType(
            {
                other: frozenset(
                    snapshot.uuids[row]
                    for consumer in consumers
                    if (bookings := bookings_of(snapshot, consumer))
                    for row in _stands_at(snapshot, place_of(snapshot, bookings))
                )
                for other, consumers in ensemble.references.items()
            }
        ),
    )


def member_bookings(
    snapshot: Snapshot, ensemble: Ensemble
) -> Mapping[MemberName, tuple[Booking, ...]]:
    """The live bookings of each member that has some."""
    found = snapshot.live_bookings(map(consumer_of, ensemble.members))
    every = ((one.name, found.get(consumer_of(one))) for one in ensemble.members)
    return MappingProxyType({name: bookings for name, bookings in every if bookings})


def _stands_at(snapshot: Snapshot, place: Place) -> set[int]:
    """Rows of a place's host, and of the server on it where it is a slice."""
    row = snapshot.row_of[place.host]
    return {row, int(snapshot.locations.hosts[row])} - {NOWHERE}


def bookings_of(snapshot: Snapshot, consumer: str) -> tuple[Booking, ...]:
    """The live bookings of a consumer."""
    return snapshot.live_bookings((consumer,)).get(consumer, ())


def hosts_of(snapshot: Snapshot, members: Iterable[Member], period: Period) -> list[int]:
    """Rows of the hosts on which any of these members is booked at any time in `period`."""
    found: set[int] = set()
    for member in members:
        consumer = consumer_of(member)
        rows = [
            row
            for row in snapshot.rows_of_consumer(consumer)
            if consumer in snapshot.consumers_in(row, period)
        ]
        if rows:
            found.add(host_row(snapshot, rows))
    return sorted(found)


def host_row(snapshot: Snapshot, rows: Iterable[int]) -> int:
    """The row of the host of a consumer with bookings on these rows.

    That is the root of the first provider that is no sharing provider: bookings on shared storage
    do not tell the host. If all are sharing providers, it is the root of the first.
    """
    roots = [int(snapshot.root[row]) for row in rows]
    sharing = snapshot.traits.get(SHARING_TRAIT)
    own = roots if sharing is None else [root for root in roots if not sharing[root]]
    return (own or roots)[0]


def hosts_occupied(snapshot: Snapshot, member: Member) -> tuple[str, ...]:
    """UUIDs of the hosts on which a member's server may run at the moment, sorted.

    While Nova moves it, these are the host that it goes to, and the one that it comes from: a
    migration has its allocations there, or, in an evacuation, the server itself.
    """
    consumers = [one for one in (consumer_of(member), member.migration) if one is not None]
    found: set[str] = set()
    for consumer in consumers:
        rows = [snapshot.row_of[one.provider] for one in bookings_of(snapshot, consumer)]
        if rows:
            own = host_row(snapshot, rows)
            sharing = snapshot.traits.get(SHARING_TRAIT)
            roots = {int(snapshot.root[row]) for row in rows}
            hosts = {root for root in roots if sharing is None or not sharing[root]} or {own}
            found |= {snapshot.uuids[root] for root in hosts}
    return tuple(sorted(found))


def place_of(snapshot: Snapshot, bookings: Iterable[Booking]) -> Place:
    """The place made of the bookings of one consumer."""
    allocations: dict[str, list[Booking]] = {}
    for booking in bookings:
        allocations.setdefault(booking.provider, []).append(booking)
    return Place(
        host=snapshot.uuids[host_row(snapshot, (snapshot.row_of[uuid] for uuid in allocations))],
        allocations=MappingProxyType(
            {uuid: total(one.amounts for one in some) for uuid, some in allocations.items()}
        ),
    )
