"""Lease queries: access, listing, and the numbers of claimed and unclaimed places."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.errors import NotFound
from moorage.domain.leases import LeaseState
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.paging import Page
from moorage.usecases.preemption.victims import displaced_for
from moorage.usecases.relocation.lease_health import without_place
from moorage.usecases.shared.access import sees, visible_project
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease, Reservation
    from moorage.domain.period import Period
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.search_result import DisplacedConsumer
    from moorage.usecases.ports import Caller, Store

_WHOLE = Page()
_CLAIMED = {MemberStatus.BUILDING, MemberStatus.ACTIVE}


@dataclass(frozen=True, slots=True)
class Remaining:
    """A reservation's numbers of places: in all, claimed, and still to be claimed.

    Neither claimed nor remaining is a place that was freed unclaimed, whose server is gone, or that
    is missing.
    """

    reservation: Reservation
    flavor: str | None
    count: int
    claimed: int
    remaining: int


def own_lease(store: Store, caller: Caller, lease_id: str) -> Lease:
    """The lease, if the caller may see it.

    Raises:
        NotFound: there is no such lease, it belongs to another project, or it is an offer.
    """
    lease = store.lease(lease_id)
    if lease.proposed or not sees(caller, lease.project_id):
        raise NotFound("lease", lease_id)
    return lease


def list_leases(  # noqa: PLR0913 - each filter of a listing has its name
    store: Store,
    caller: Caller,
    *,
    all_projects: bool = False,
    project_id: str | None = None,
    name: str | None = None,
    state: LeaseState | None = None,
    series_id: str | None = None,
    reservation_id: str | None = None,
    overlaps: Period | None = None,
    page: Page = _WHOLE,
) -> Sequence[Lease]:
    """The caller's leases by creation time; for operators those of any or every project.

    With `series_id` only the occurrences of that series; none if there is no such series. With
    `reservation_id` only the lease that it is of, whatever the other filters are.

    Raises:
        Forbidden: a tenant asked for another project's leases.
        NotFound: the page's marker is no lease that the caller may see.
    """
    project = visible_project(caller, all_projects=all_projects, project_id=project_id)
    if page.marker is not None:
        own_lease(store, caller, page.marker)
    if reservation_id is not None:
        found = if_stored(store.lease_of_reservation, reservation_id)
        hidden = found is None or found.proposed or not sees(caller, found.project_id)
        return () if found is None or hidden or page.marker == found.id else (found,)
    return store.leases(
        project_id=project,
        name=name,
        state=state,
        series_id=series_id,
        overlaps=overlaps,
        page=page,
    )


def displaced_by(store: Store, lease: Lease) -> tuple[DisplacedConsumer, ...]:
    """Consumers displaced for a lease, the youngest first; none once it is closed.

    Deleted consumers are only in the lease's events. A displaced server that still exists after the
    lease is closed is overrun, and no longer belongs to the lease.
    """
    return () if lease.state is LeaseState.CLOSED else displaced_for(store, lease.id)


def remaining(store: Store, lease: Lease) -> tuple[Remaining, ...]:
    """The places of each of a lease's reservations, at this instant.

    A closed lease has no places to claim; claimed places are those of servers that still exist.
    """
    if lease.state is not LeaseState.CLOSED:
        return remaining_in(lease, store.ensemble(lease.ensemble_id), store.snapshot())
    ensemble = if_stored(store.ensemble, lease.ensemble_id)
    return _nothing(lease) if ensemble is None else _staying(store, lease, ensemble)


def remaining_in(lease: Lease, ensemble: Ensemble, snapshot: Snapshot) -> tuple[Remaining, ...]:
    """As `remaining`, from an ensemble and a snapshot that were read already."""
    if lease.state is LeaseState.CLOSED:
        return _nothing(lease)
    member_places = locate_members(snapshot, ensemble)
    missing = without_place(snapshot, lease.decision_id)
    flavor = {role.name: role.flavor for role in ensemble.roles}
    found = []
    for one in lease.reservations:
        own = [member for member in ensemble.members if member.name.role == one.role]
        states = [member_places.of(member.name) for member in own]
        sound = [member_places.of(member.name) for member in own if member.uuid not in missing]
        found.append(
            Remaining(
                reservation=one,
                flavor=flavor.get(one.role),
                count=len(states),
                claimed=sum(status in _CLAIMED for status in states),
                remaining=sound.count(MemberStatus.HELD),
            )
        )
    return tuple(found)


def _staying(store: Store, lease: Lease, ensemble: Ensemble) -> tuple[Remaining, ...]:
    """The places of a closed lease's remaining servers, by reservation."""
    member_places = locate_members(store.snapshot(), ensemble)
    decisions = {name: some[0].decision for name, some in member_places.bookings.items()}
    own = {
        one
        for one in set(decisions.values())
        if one is not None and store.decision(one).lease_id == lease.id
    }
    flavor = {role.name: role.flavor for role in ensemble.roles}
    there = Counter(
        name.role
        for name, decision in decisions.items()
        if decision in own and member_places.of(name) in _CLAIMED
    )
    return tuple(
        Remaining(one, flavor.get(one.role), there[one.role], there[one.role], 0)
        for one in lease.reservations
    )


def _nothing(lease: Lease) -> tuple[Remaining, ...]:
    return tuple(Remaining(one, None, 0, 0, 0) for one in lease.reservations)
