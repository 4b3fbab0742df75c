"""Leases that may be moved before their start, and the changes that move one.

Offers move as leases do: what is offered is a window, and its hosts are shown to nobody. A lease
does not move if its places are bound, if it asks for devices, or if it is exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain import deadline
from moorage.domain.bookings import Binding, Booking, BookingState
from moorage.domain.changes import EndBookings, ExpectLease, PutBookings, PutDecision
from moorage.domain.decisions import DecisionState
from moorage.domain.period import FOREVER, Period
from moorage.engine.state.host_states import host_states
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.decide.search_result import Concession
from moorage.usecases.decide.writes import member_consumer
from moorage.usecases.preemption.eviction import warnings
from moorage.usecases.preemption.pending_leases import PendingLease, pending_lease
from moorage.usecases.relocation.displacements import ended_bookings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.request import Proposal
    from moorage.usecases.decide.search_result import DisplacedConsumer
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.environment import Environment

MOST: Final = 50
"""How many leases are moved for one request at most."""
MOST_MEMBERS: Final = 1_000


@dataclass(frozen=True, eq=False)
class LeaseMove(Concession):
    """The move of a planned lease to other places."""

    planned: PendingLease
    places: Mapping[MemberName, Place]
    displaced: tuple[DisplacedConsumer, ...] = ()
    """Preemptible consumers displaced by the move."""
    evicted: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Displaced consumer -> the providers it is booked on."""

    def changes(self, now: Instant) -> Iterator[Change]:
        """The changes of the lease's places, without those of displaced consumers."""
        decision = self.planned.decision
        places = MappingProxyType({**decision.places, **self.places})
        yield ExpectLease(self.planned.lease.id, self.planned.lease.generation)
        yield PutDecision(replace(decision, places=places, updated_at=now), decision.generation)
        bookings = self.planned.bookings(self.places)
        for member in self.planned.ensemble.members:
            if member.uuid in bookings:
                consumer = member_consumer(self.planned.ensemble, member)
                yield PutBookings(consumer, bookings[member.uuid])

    def frees(
        self,
        env: Environment,  # noqa: ARG002 - all is known
        now: Instant,
    ) -> Iterator[Change]:
        """The changes of the lease's places."""
        return self.changes(now)

    def endings(self, store: Store, now: Instant) -> Iterator[Change]:
        """The early ends of displaced consumers, with their warnings."""
        for gone in self.displaced:
            yield EndBookings(frozenset({gone.consumer}), gone.end, self.planned.lease.id)
        placement = replace(self.planned.decision, created_at=now)
        yield from warnings(store, self.displaced, placement)

    def ends(
        self,
        env: Environment,
        proposal: Proposal,  # noqa: ARG002 - the same for every request
        decision: Decision,
    ) -> Iterator[Change]:
        """The early ends of displaced consumers, with their warnings."""
        return self.endings(env.store, decision.updated_at)

    def leases(self) -> tuple[str, ...]:
        """The id of the moved lease."""
        return (self.planned.lease.id,)

    def bookings(self, snapshot: Snapshot) -> Mapping[str, tuple[Booking, ...]]:
        """The lease's bookings in its new places, and displaced consumers' shortened bookings."""
        return {**self.planned.bookings(self.places), **ended_bookings(snapshot, self.displaced)}

    def providers(self) -> frozenset[str]:
        """Providers of the new places."""
        return frozenset(uuid for place in self.places.values() for uuid in place.allocations)

    def relied(self) -> dict[str, frozenset[str]]:
        """Moved and displaced consumers, with providers on which each must still be booked."""
        return {**self.evicted, **self.planned.booked_on(frozenset(self.places))}


def movable_sets(
    store: Store, snapshot: Snapshot, period: Period, own: frozenset[str]
) -> Iterator[Sequence[PendingLease]]:
    """Sets of leases that may be moved together for a period; leases of `own` are left out.

    First the leases of the period; then these and the leases that overlap them, directly or through
    others, if there are more. None if the first set is empty.
    """
    times = movable_periods(snapshot, own)
    near = [id_ for id_, one in times.items() if one.overlaps(period)]
    first = _movable(store, snapshot, near, times)
    if not first:
        return
    yield first
    if len(first) == MOST:
        return
    ring, reached = near, list(near)
    while ring and len(reached) < MOST:
        hull = Period(min(times[one].start for one in ring), max(times[one].end for one in ring))
        known = set(reached)
        ring = [id_ for id_, one in times.items() if id_ not in known and one.overlaps(hull)]
        reached += ring
    more = _movable(store, snapshot, reached[len(near) :], times)
    every = _few([*first, *more])
    if len(every) > len(first):
        yield every


def movable_in(
    store: Store, snapshot: Snapshot, period: Period, own: frozenset[str]
) -> Sequence[PendingLease]:
    """The movable leases of a period, the earliest first, without those of `own`."""
    times = movable_periods(snapshot, own)
    near = [id_ for id_, one in times.items() if one.overlaps(period)]
    return _movable(store, snapshot, near, times)


def movable_periods(snapshot: Snapshot, own: frozenset[str]) -> dict[str, Period]:
    """The periods of planned leases, by decision id, without those of consumers in `own`."""
    return {
        one.decision: one.period
        for row in np.flatnonzero(snapshot.next_change < FOREVER).tolist()
        for one in snapshot.bookings_of(row)
        if one.state is BookingState.RESERVED
        and one.binding is Binding.PLANNED
        and one.decision is not None
        and one.consumer not in own
    }


def _movable(
    store: Store, snapshot: Snapshot, some: Sequence[str], times: Mapping[str, Period]
) -> Sequence[PendingLease]:
    """The movable leases of these decisions, the earliest first, within one request's limits."""
    found: list[PendingLease] = []
    for decision_id in sorted(some, key=lambda id_: (times[id_].start, id_)):
        deadline.check()
        planned = movable(store, snapshot, decision_id)
        if planned is None or any(role.decided_alone for role in planned.ensemble.roles):
            continue
        found.append(planned)
        if len(_few(found)) < len(found):
            break
    return _few(found)


def _few(some: Sequence[PendingLease]) -> Sequence[PendingLease]:
    """The first of these leases, within the limits of one request."""
    members = 0
    for number, one in enumerate(some):
        members += len(one.member_places.places)
        if number == MOST or members > MOST_MEMBERS:
            return some[:number]
    return some


def movable(store: Store, snapshot: Snapshot, decision_id: str) -> PendingLease | None:
    """The lease of a decision, if all of its places may change; else None."""
    found = pending_lease(store, snapshot, decision_id)
    if (
        found is None
        or found.lease.binding is not Binding.PLANNED
        or found.decision.state is not DecisionState.HELD
        or found.ensemble.keeps_others_out
    ):
        return None
    member_places = found.member_places
    if any(member_places.of(name) is not MemberStatus.HELD for name in found.decision.places):
        return None
    closed = host_states(snapshot).lasting
    if any(closed[snapshot.row_of[place.host]] for place in member_places.places.values()):
        # A lease on a closed host needs other places itself, and must not make this request fail.
        return None
    return found
