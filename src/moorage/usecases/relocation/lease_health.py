"""Detection and recording of leases with missing places, found from the hosts' bookings.

An unclaimed place is missing while its host is closed and no end of that is known (see
`engine.state.host_states`), or while its inventories have no room for it because capacity was lost
or a server is overrun. If several leases hold places in the remaining capacity, those of the
highest priority keep theirs, among equals the oldest bookings.
`members_without_place` returns the members concerned, for `repair`; `write_health` records the
number of missing ones.

A server of a lease is missing too while its host is not in service, be the host drained or failed.
Moorage never moves it; it is no longer missing once its allocations are elsewhere or the host is
in service again.

A place without bookings is missing too: its host was removed, or capacity that a server gave up was
taken by others. The change that takes it also writes the lease as degraded; see `unplaced`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, PutLease
from moorage.domain.decisions import DecisionState
from moorage.domain.effects import EffectKind, EffectState
from moorage.domain.errors import ConcurrentUpdate, DuplicateName, NotFound
from moorage.domain.leases import LeaseState
from moorage.domain.period import FOREVER
from moorage.engine.state.host_states import host_states
from moorage.engine.state.overlay import first_shortage
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.effects import notifications
from moorage.usecases.shared.lookup import every_record, if_stored, lease_of_decision

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import PutEffect
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.engine.state.columns import ProviderState
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.environment import Environment

    Bools: TypeAlias = NDArray[np.bool_]

_PAGE: Final = 1000
OPEN: Final = (LeaseState.PENDING, LeaseState.STARTING, LeaseState.ACTIVE)
"""States of leases that can have missing places."""
_TAKEN: Final = (BookingState.CLAIMED, BookingState.ALLOCATED)
NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
"""No proposal."""


def members_without_place(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """Members with unclaimed places that cannot be kept, by decision.

    Returns:
        Decision -> consumers (UUIDs of members) with a reserved booking that cannot be kept.
    """
    found: dict[str, set[str]] = defaultdict(set)
    unusable = host_states(snapshot).lasting
    for row in _suspects(snapshot, unusable):
        state = snapshot.state(row)
        reserved = [one for one in snapshot.bookings_of(row) if _kept_for_a_lease(one)]
        if not reserved:
            continue
        crowded = _without_room(snapshot, state, state.bookings, reserved)
        for one in reserved if unusable[row] else crowded:
            found[str(one.decision)].add(one.consumer)
    return {decision: frozenset(members) for decision, members in found.items()}


def servers_out_of_service(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """Servers of leases on hosts that are not in service, by the decision whose place they took.

    Returns:
        Decision -> consumers with a claimed place: servers, and members whose server is being
        built. It includes ensembles with an end and without a lease.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for row in np.flatnonzero(~host_states(snapshot).in_service & snapshot.alive).tolist():
        for one in snapshot.bookings_of(row):
            # The booking of a claimed place of a lease has an end.
            if one.decision is not None and one.state in _TAKEN and not one.period.open_ended:
                found[one.decision].add(one.consumer)
    return {decision: frozenset(consumers) for decision, consumers in found.items()}


def without_place(snapshot: Snapshot, decision: str) -> frozenset[str]:
    """Members of a decision whose unclaimed places cannot be claimed now."""
    return members_without_place(snapshot).get(decision, frozenset())


def _suspects(snapshot: Snapshot, unusable: Bools) -> list[int]:
    """Rows of unusable providers, and of those with an overage at some time."""
    bad = unusable.copy()
    for columns in snapshot.classes.values():
        bad[columns.rows[columns.peak > columns.capacity]] = True
    rows: list[int] = np.flatnonzero(bad & snapshot.alive).tolist()
    return rows


def _without_room(
    snapshot: Snapshot, state: ProviderState, there: Iterable[Booking], reserved: list[Booking]
) -> Iterator[Booking]:
    """Reserved bookings that do not fit after all other bookings and those of higher priority."""
    now = snapshot.taken_at
    kept = [one for one in there if not _kept_for_a_lease(one)]
    for one in sorted(reserved, key=lambda one: -one.priority):
        if first_shortage(state, kept, one.amounts, one.period, now) is None:
            kept.append(one)
        else:
            yield one


def members_in_grace(
    store: Store, snapshot: Snapshot, now: Instant, grace: Duration
) -> tuple[frozenset[str], Instant]:
    """Members whose place is taken by a server past its end, but within its grace period.

    It begins with the server's end, and if its deletion was tried once, which may have been later,
    with that: a service that was away first catches up.

    Returns:
        UUIDs of members whose reserved bookings would have room without such servers, and the first
        instant at which such a server's grace period ends.
    """
    members: set[str] = set()
    over = FOREVER
    unusable = host_states(snapshot).lasting
    for row in _suspects(snapshot, unusable):
        if unusable[row]:
            continue
        state, bookings = snapshot.state(row), snapshot.bookings_of(row)
        reserved = [one for one in bookings if _kept_for_a_lease(one)]
        if not reserved:
            continue
        ends = [_late_since(store, one, now, grace) + grace for one in bookings]
        recent = [one for one, until in zip(bookings, ends, strict=True) if now < until]
        if recent:
            others = [one for one in state.bookings if one not in recent]
            lost = {one.consumer for one in _without_room(snapshot, state, others, reserved)}
            members |= {one.consumer for one in reserved} - lost
            over = min(over, *(until for until in ends if now < until))
    return frozenset(members), over


def _late_since(store: Store, booking: Booking, now: Instant, grace: Duration) -> Instant:
    """The instant since which a server past its end is late; long ago if it is none."""
    end = booking.period.end
    if booking.state is not BookingState.ALLOCATED or end > now:
        return -grace
    if now < end + grace:
        return end
    return max(
        (
            one.updated_at
            for one in store.effects(booking.consumer)
            if one.kind is EffectKind.DELETE
            and one.state is EffectState.PENDING
            and one.attempts == 1
        ),
        default=end,
    )


def _kept_for_a_lease(booking: Booking) -> bool:
    return booking.state is BookingState.RESERVED and booking.decision is not None


@dataclass(frozen=True, slots=True)
class UnhealthyLease:
    """The members and servers of a lease whose places are missing."""

    decision: str
    """The lease's present decision."""
    members: frozenset[str] = frozenset()
    """UUIDs of members whose unclaimed places are missing."""
    servers: frozenset[str] = frozenset()
    """Consumers with claimed places; see `servers_out_of_service`."""
    priority: int = 0
    start: Instant = 0

    @property
    def turn(self) -> tuple[int, Instant]:
        """Sort key: the highest priority first, then the earliest start."""
        return -self.priority, self.start


def unhealthy_leases(
    store: Store, snapshot: Snapshot, noted: Collection[str] = ()
) -> dict[str, UnhealthyLease]:
    """Open leases with missing places, by lease id.

    `noted` are ids of leases that are stored as degraded; only for these are places without
    bookings looked up, as the change that takes such bookings marks the lease.
    """
    found: dict[str, UnhealthyLease] = {}
    for decision_id, members in members_without_place(snapshot).items():
        lease = _open_lease(store, decision_id)
        if lease is not None and lease.decision_id == decision_id:
            found[lease.id] = replace(_of(lease), members=members)
    for decision_id, servers in servers_out_of_service(snapshot).items():
        # A changed lease has another decision, but its older servers keep the old one.
        lease = _open_lease(store, decision_id)
        if lease is not None:
            known = found.get(lease.id, _of(lease))
            found[lease.id] = replace(known, servers=known.servers | servers)
    for lease_id in noted:
        lease = _lease_if_open(store, lease_id)
        members = frozenset() if lease is None else unplaced(store, snapshot, lease)
        if lease is not None and members:
            known = found.get(lease.id, _of(lease))
            found[lease.id] = replace(known, members=known.members | members)
    return found


def unplaced(store: Store, snapshot: Snapshot, lease: Lease) -> frozenset[str]:
    """UUIDs of members to which a lease promises a place, and that have no bookings.

    Empty once the lease has expired. Once its decision is confirmed, by an action or its owner,
    only members with a server count. A place is not missing while Nova's migration of a server to
    another place of the lease has booked it.
    """
    if lease.state not in OPEN or lease.terms.expires_at <= snapshot.taken_at:
        return frozenset()
    try:
        ensemble = store.ensemble(lease.ensemble_id)
        decision = store.decision(lease.decision_id)
    except NotFound:
        return frozenset()
    places = decision.places
    keeps_unclaimed = decision.state is DecisionState.HELD
    member_places = locate_members(snapshot, ensemble)
    without = [
        one
        for one in ensemble.members
        if one.name in places
        and (keeps_unclaimed or one.server_id is not None)
        and member_places.of(one.name) is MemberStatus.UNPLACED
    ]
    if not without:
        return frozenset()
    moving = {
        booking.provider
        for consumer, booking in store.bookings(decision=lease.decision_id)
        if booking.state is BookingState.ALLOCATED and consumer.uuid not in member_places.consumers
    }
    return frozenset(one.uuid for one in without if moving.isdisjoint(places[one.name].allocations))


def _of(lease: Lease) -> UnhealthyLease:
    terms = lease.terms
    return UnhealthyLease(lease.decision_id, priority=terms.priority, start=terms.period.start)


def _open_lease(store: Store, decision_id: str) -> Lease | None:
    lease = lease_of_decision(store, decision_id)
    return None if lease is None or lease.state not in OPEN else lease


def _lease_if_open(store: Store, lease_id: str) -> Lease | None:
    lease = if_stored(store.lease, lease_id)
    return lease if lease is not None and lease.state in OPEN else None


def degraded(store: Store) -> frozenset[str]:
    """Ids of leases stored as degraded; reads all open leases."""
    return frozenset(one.id for one in open_leases(store) if one.degraded)


def open_leases(store: Store) -> Iterator[Lease]:
    """All open leases, of all projects."""
    for state in OPEN:
        yield from every_record(partial(store.leases, project_id=None, state=state))


def write_health(
    env: Environment,
    lease_id: str,
    missing: int,
    proposal: Mapping[str, object] = NOTHING,
    servers: Collection[str] = (),
) -> bool:
    """Store how many members of a lease are missing, and notify its owner.

    Nothing is written if nothing has changed, or the lease has ended. Other servers than last time
    count as a change, even if the number is the same.

    `missing` members have no place; 0 marks the lease as healthy. `servers` are the missing
    consumers with claimed places; for `proposal` see `Lease.proposal`.

    Returns:
        False if the lease was changed concurrently: its health must be computed again.
    """
    try:
        lease = env.store.lease(lease_id)
        if lease.state not in OPEN:
            return True
        same = (lease.missing, lease.proposal) == (missing, proposal)
        if same and (not servers or _servers_told(env.store, lease_id) == set(servers)):
            return True
        now = env.store.now()
        noted = with_missing(lease, missing, proposal, now)
        notice = health_notice(noted, now, servers=servers)
        env.store.commit(Changeset((PutLease(noted, lease.generation), notice)))
    except (ConcurrentUpdate, DuplicateName):
        return False
    except NotFound:
        return True  # it is gone
    return True


def _servers_told(store: Store, lease_id: str) -> set[object]:
    """The servers named in the newest notice of a lease's health."""
    found: set[object] = set()
    for one in every_record(partial(store.effects, lease_id)):
        servers = one.details.get("servers")
        if one.kind is EffectKind.NOTIFY and isinstance(servers, list):
            found = set(servers)
    return found


def with_missing(lease: Lease, missing: int, proposal: Mapping[str, object], now: Instant) -> Lease:
    """The lease with its health fields set."""
    return replace(
        lease,
        degraded=missing > 0,
        missing=missing,
        proposal=MappingProxyType(dict(proposal)),
        updated_at=now,
    )


def health_notice(
    lease: Lease, now: Instant, moved: Iterable[str] = (), servers: Iterable[str] = ()
) -> PutEffect:
    """The notice of a lease's health to its owner.

    The lease is as it will be stored; `moved` are names of members with new places.
    """
    return notifications.idempotent_effect(
        EffectKind.NOTIFY,
        lease.id,
        lease.project_id,
        due=now,
        now=now,
        details={
            **notifications.lease_details(lease),
            "state": lease.state.value,
            "degraded": lease.degraded,
            "missing": lease.missing,
            "moved": list(moved),
            "servers": sorted(servers),
            # Hosts are not disclosed to the owner.
            "proposal": {name: of for name, of in lease.proposal.items() if name != "places"},
        },
        same=notifications.health(lease.id, lease.generation),
    )
