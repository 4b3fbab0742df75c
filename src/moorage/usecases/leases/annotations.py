"""Annotations of leases, and the reservations to which bookings belong."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutLease
from moorage.usecases.shared.lookup import if_stored, lease_of_decision
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.leases import Lease
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Store


def annotate(env: UseCaseEnvironment, lease: Lease, annotations: Mapping[str, object]) -> Lease:
    """Replace a lease's annotations and return the stored lease; nothing else of it changes.

    Raises:
        NotFound: the lease is gone.
        Busy: concurrent changes of the lease kept conflicting.
    """

    def write() -> Lease:
        stored = env.store.lease(lease.id)
        changed = replace(stored, annotations=MappingProxyType(dict(annotations)))
        env.store.commit(Changeset((PutLease(changed, stored.generation),)))
        return env.store.lease(lease.id)

    return retry(env, write)


def reservations_of(store: Store, booked: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Lease]]:
    """Yield the reservations of booked places with their leases, each reservation once.

    `booked` are pairs of a decision's id and the UUID of a consumer with a place of that decision.
    """
    found: dict[str, Lease] = {}
    for decision_id, consumer in sorted(booked):
        lease = lease_of_decision(store, decision_id)
        ensemble = None if lease is None else if_stored(store.ensemble, lease.ensemble_id)
        if lease is None or ensemble is None:
            continue
        roles = {
            member.name.role
            for member in ensemble.members
            if consumer in {member.uuid, member.server_id}
        }
        found.update((one.id, lease) for one in lease.reservations if one.role in roles)
    yield from found.items()
