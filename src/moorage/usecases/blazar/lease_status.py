"""Whether a lease that has begun is ready for its tenant: its flavors made, its hosts empty.

Servers take places of a reservation by a flavor, which the service creates in Nova when the lease
begins. A host that is leased whole may still have servers of others then, which should have ended
before.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.effects import EffectKind, EffectState
from moorage.domain.leases import LeaseState
from moorage.domain.reservables import takes_whole_host
from moorage.usecases.decide.member_places import hosts_of
from moorage.usecases.relocation.lease_health import (
    servers_out_of_service,
    unplaced,
    without_place,
)
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.shared.ticket_flavors import lease_flavors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.leases import Lease
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Store

_LASTING: Final = 3
"""Failed attempts after which a failure is no passing one."""
NOTHING_AMISS: Final[Mapping[str, Unreadiness]] = MappingProxyType({})


class Unreadiness(StrEnum):
    """Why a reservation of a lease that has begun cannot be used as it was granted."""

    NO_FLAVOR = "no flavor"
    """Nova's flavor for it is being created."""
    FAILING = "failing"
    """Several attempts to create it have failed; it is tried again while the lease lasts."""
    OCCUPIED = "occupied"
    """Servers of others are on a host of it still."""


def unready(env: UseCaseEnvironment, lease: Lease) -> Mapping[str, Unreadiness]:
    """The roles of an active lease that are not ready; nothing for leases in other states."""
    if lease.state is not LeaseState.ACTIVE:
        return NOTHING_AMISS
    ensemble = if_stored(env.store.ensemble, lease.ensemble_id)
    if ensemble is None:
        return NOTHING_AMISS
    found: dict[str, Unreadiness] = {}
    if env.limits.ticket_flavors:
        made = lease_flavors(lease, ensemble)
        missing = _missing_flavors(env.store, lease) if made else None
        ids = {one.id for one in made}
        found = {one.role: missing for one in lease.reservations if missing and one.id in ids}
    whole = [role for role in ensemble.roles if takes_whole_host(role)]
    if whole:
        snapshot = env.store.snapshot()
        occupied = [one for one in whole if _is_occupied(snapshot, lease, ensemble, one)]
        found |= {one.name: Unreadiness.OCCUPIED for one in occupied}
    return found


def missing_roles(env: UseCaseEnvironment, lease: Lease) -> frozenset[str]:
    """The roles of a lease with members that have no usable place."""
    if not lease.missing:
        return frozenset()
    ensemble, snapshot = env.store.ensemble(lease.ensemble_id), env.store.snapshot()
    lost = set(without_place(snapshot, lease.decision_id) | unplaced(env.store, snapshot, lease))
    for some in servers_out_of_service(snapshot).values():
        lost |= some
    return frozenset(
        one.name.role for one in ensemble.members if not lost.isdisjoint({one.uuid, one.server_id})
    )


def _missing_flavors(store: Store, lease: Lease) -> Unreadiness | None:
    """Why Nova does not have the lease's flavors; None if it has."""
    unfinished = [
        one
        for one in store.effects(lease.id)
        if one.kind is EffectKind.CREATE_FLAVORS and one.state is not EffectState.DONE
    ]
    if not unfinished:
        return None
    failing = any(
        one.state is EffectState.FAILED or (one.outcome and one.attempts >= _LASTING)
        for one in unfinished
    )
    return Unreadiness.FAILING if failing else Unreadiness.NO_FLAVOR


def _is_occupied(snapshot: Snapshot, lease: Lease, ensemble: Ensemble, role: Role) -> bool:
    """Whether a server that should have ended before the lease is on a host of the role.

    Nobody else can be there: allocations that reach into the lease are refused.
    """
    period = lease.terms.period
    members = [one for one in ensemble.members if one.name.role == role.name]
    return any(
        booking.state is BookingState.ALLOCATED and booking.period.end <= period.start
        for root in set(hosts_of(snapshot, members, period))
        for row in snapshot.tree(root).tolist()
        for booking in snapshot.bookings_of(row)
    )
