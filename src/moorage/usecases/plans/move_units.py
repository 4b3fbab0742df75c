"""The units of a plan: servers on hosts, of which ensembles they are, and what each needs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.bookings import BookingState
from moorage.domain.ensembles import MemberKind, Role
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.request_groups import Group
from moorage.domain.resources import total
from moorage.usecases.decide.member_places import host_row
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.member_names import MemberName
    from moorage.domain.resources import Amounts
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store

MEMORY: Final = "MEMORY_MB"
MOVING: Final = "Nova is moving it"
HELD: Final = (
    "its place is held and has no server: `moorage decision create` places it anew elsewhere"
)
"""Why a member's place that no server has is not moved by a plan."""


@dataclass(frozen=True, eq=False, slots=True)
class PlacedServer:
    """A consumer with a place on a host: a server, or a member whose place is held."""

    consumer: str
    project_id: str
    host: int
    """Row of its host in the snapshot."""
    bookings: tuple[Booking, ...]
    role: Role
    """What it needs of a host: its member's role, with the amounts that it has booked."""
    ensemble: Ensemble | None = None
    member: Member | None = None
    pinned: str = ""
    """Why it cannot be moved; empty: it can."""

    @property
    def memory_mb(self) -> int:
        """Its memory, in MiB."""
        return sum(one.amounts.get(MEMORY, 0) for one in self.bookings)


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A member for which room is made."""

    ensemble: Ensemble
    member: MemberName
    role: Role


@dataclass(frozen=True, slots=True)
class MoveGoal:
    """What the moves attain."""

    leave: frozenset[int] = frozenset()
    """Rows, in the snapshot, of hosts that become empty of units."""
    mended: frozenset[str] = frozenset()
    """Ids of ensembles whose policies all hold at the end; others are broken no more than now."""
    closed: frozenset[int] = frozenset()
    """Rows of hosts that nothing enters."""
    lenient: bool = False
    """Whether servers that leave a host may violate a policy as much as they do now; otherwise they
    add nothing to what the others violate."""


Unit: TypeAlias = PlacedServer | Newcomer


def member_of(unit: Unit) -> MemberName | None:
    """The member that a unit is; None: it is of no ensemble."""
    if isinstance(unit, Newcomer):
        return unit.member
    return None if unit.member is None else unit.member.name


def servers_on(
    store: Store, snapshot: Snapshot, hosts: Iterable[int]
) -> tuple[list[PlacedServer], tuple[Ensemble, ...]]:
    """What is placed on these hosts (rows), and the ensembles of which it is.

    Nova's migrations are none; the servers that they move are pinned.
    """
    consumers: dict[str, str] = {}
    decisions: set[str] = set()
    for host in hosts:
        for row in snapshot.tree(host).tolist():
            live = {one.consumer: one for one in snapshot.bookings_of(row)}
            decisions |= {one.decision for one in live.values() if one.decision is not None}
            for occupant in snapshot.state(row).occupants:
                if occupant.consumer in live:
                    consumers[occupant.consumer] = occupant.project_id
    ids = store.compliance.ensembles_of(frozenset(consumers), decisions)
    ensembles = tuple(one.ensemble for one in store.compliance.ensembles_by_id(sorted(ids)))
    return list(_placed(store, snapshot, consumers, ensembles)), ensembles


def fellows(
    store: Store, snapshot: Snapshot, ensembles: Iterable[Ensemble], known: Collection[str]
) -> list[PlacedServer]:
    """The placed members of ensembles whose consumers are not `known`."""
    found: dict[str, str] = {}
    every = tuple(ensembles)
    for ensemble in every:
        for member in ensemble.members:
            consumer = member.server_id or member.uuid
            if consumer not in known:
                found[consumer] = ensemble.project_of(member.name.role)
    return list(_placed(store, snapshot, found, every))


def _placed(
    store: Store,
    snapshot: Snapshot,
    consumers: Mapping[str, str],
    ensembles: Iterable[Ensemble],
) -> Iterator[PlacedServer]:
    member_of = {
        (member.server_id or member.uuid): (ensemble, member)
        for ensemble in ensembles
        for member in ensemble.members
    }
    migrations = {
        member.migration: member.server_id
        for _, member in member_of.values()
        if member.migration is not None
    }
    # A member names its last migration; one that is over has nothing any more.
    moving = {server for one, server in migrations.items() if snapshot.rows_of_consumer(one)}
    others = {}
    for consumer in consumers.keys() - member_of.keys() - migrations.keys():
        found = if_stored(store.consumer, consumer)
        if found is None:
            continue
        if found[0].migration_of is not None:
            moving.add(found[0].migration_of)
        else:
            others[consumer] = found[0]
    every = snapshot.live_bookings([one for one in consumers if one in member_of or one in others])
    for consumer, bookings in sorted(every.items()):
        host = host_row(snapshot, (snapshot.row_of[one.provider] for one in bookings))
        ensemble, member = member_of.get(consumer, (None, None))
        if ensemble is not None and member is not None:
            role = _with_booked(snapshot, ensemble.role_of(member.name), bookings, host)
            pinned = _pinned(role, bookings)
        else:
            role, pinned = _undescribed(snapshot, bookings, host), ""
            if any(one.state is not BookingState.ALLOCATED for one in bookings):
                pinned = HELD
        yield PlacedServer(
            consumer=consumer,
            project_id=consumers[consumer],
            host=host,
            bookings=bookings,
            role=role,
            ensemble=ensemble,
            member=member,
            pinned=MOVING if consumer in moving else pinned,
        )


def _pinned(role: Role, bookings: Iterable[Booking]) -> str:
    if role.kind != MemberKind.SERVER:
        return f"a {role.kind} is not moved"
    if any(one.state is not BookingState.ALLOCATED for one in bookings):
        return HELD
    return ""


def _with_booked(snapshot: Snapshot, role: Role, bookings: Iterable[Booking], host: int) -> Role:
    """A member's role with what its server has booked, which a resize may have changed."""
    booked = Counter(total(one.amounts for one in bookings))
    described = Counter(role.resources)
    for group in role.groups:
        described.update(group.resources)
    if booked == described:
        return role
    if role.groups:
        return replace(_undescribed(snapshot, bookings, host), name=role.name, kind=role.kind)
    return replace(role, resources=MappingProxyType(dict(booked)))


def _undescribed(snapshot: Snapshot, bookings: Iterable[Booking], host: int) -> Role:
    """What a server needs of a host, as far as its bookings say: like devices for its devices.

    A group for what each device gives it, with all of the device's traits.
    """
    own: Counter[str] = Counter()
    groups: dict[int, Counter[str]] = {}
    sharing = snapshot.traits.get(SHARING_TRAIT)
    for one in bookings:
        row = snapshot.row_of[one.provider]
        shared = sharing is not None and bool(sharing[snapshot.root[row]])
        mine = own if row == host or shared else groups.setdefault(row, Counter())
        mine.update(one.amounts)
    return Role(
        name="server",
        resources=MappingProxyType(dict(own)),
        groups=tuple(
            Group(
                name=f"g{number}",
                resources=_amounts(amounts),
                required=tuple(frozenset({trait}) for trait in sorted(snapshot.traits_of(row))),
            )
            for number, (row, amounts) in enumerate(sorted(groups.items()))
        ),
        isolate=True,
    )


def _amounts(counted: Counter[str]) -> Amounts:
    return MappingProxyType(dict(counted))
