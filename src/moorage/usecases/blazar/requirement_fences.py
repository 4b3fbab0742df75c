"""Fences of open leases, kept in step with the hosts that are offered and their properties.

A requirement is a fence around the hosts that meet it. When an operator offers or withdraws a host,
or changes its properties, the fences that it enters or leaves change with it in one changeset, so
that no lease is moved later to a host that does not meet its requirement any more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import PutEnsemble
from moorage.domain.errors import Conflict
from moorage.usecases.blazar.lease_request import (
    HOST,
    INSTANCE,
    REQUIREMENTS,
    RESERVATIONS,
    OfferedResources,
)
from moorage.usecases.blazar.requirements import meets, read_requirement
from moorage.usecases.blazar.reservation_changes import current_policies
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.relocation.lease_health import open_leases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.blazar.reservables import OfferedHost
    from moorage.usecases.ports import Store


class PropertyRequired(Conflict):
    """A lease on the host requires the property as it is."""


def fence_changes(
    store: Store,
    snapshot: Snapshot,
    before: OfferedHost | None,
    after: OfferedHost | None,
    others: Sequence[OfferedHost],
) -> Iterator[PutEnsemble]:
    """The ensembles of open leases with the fences that change for one host.

    `before` and `after` are the host, None where it is not offered; `others` are all other offered
    hosts.

    Raises:
        PropertyRequired: a lease has a place on the host, which would not meet it any more.
    """
    offered = OfferedResources(store, hosts=(*others, *(() if after is None else (after,))))
    for lease in open_leases(store):
        left, entered = _roles(lease, before, after)
        if not left and not entered:
            continue
        ensemble = store.ensemble(lease.ensemble_id)
        if before is not None and left & _roles_on(snapshot, ensemble, before.root):
            raise PropertyRequired(
                f"Can't change properties of host {before.reservable.id}: lease {lease.id} has a"
                " place there and requires them"
            )
        if after is not None and entered and _roles_on(snapshot, ensemble, after.root):
            continue  # instances of the lease are there, which would have to leave it
        policies = current_policies(lease, ensemble, offered)
        if policies != ensemble.policies:
            changed = replace(ensemble, policies=policies, updated_at=snapshot.taken_at)
            yield PutEnsemble(changed, ensemble.generation, ensemble)


def _roles(
    lease: Lease, before: OfferedHost | None, after: OfferedHost | None
) -> tuple[frozenset[str], frozenset[str]]:
    """The roles of the lease whose requirement the host ceases, and begins, to meet."""
    said = lease.annotations.get(RESERVATIONS)
    words: Mapping[str, Mapping[str, object]] = said if isinstance(said, dict) else {}
    met_before = {role for role, one in words.items() if _meets(one, before)}
    met_after = {role for role, one in words.items() if _meets(one, after)}
    return frozenset(met_before - met_after), frozenset(met_after - met_before)


def _meets(words: Mapping[str, object], host: OfferedHost | None) -> bool:
    """Whether a host is among those that a reservation may be placed on by its requirements."""
    kind = words["resource_type"]
    if host is None or kind not in {HOST, INSTANCE}:
        return False
    required = [term for key in REQUIREMENTS for term in read_requirement(words.get(key))]
    # Instances without a requirement are not restricted to offered hosts.
    return (kind == HOST or bool(required)) and meets(tuple(required), host.properties)


def _roles_on(snapshot: Snapshot, ensemble: Ensemble, root: str) -> frozenset[str]:
    """The roles with a place on the host."""
    places = locate_members(snapshot, ensemble).places
    return frozenset(name.role for name, place in places.items() if place.host == root)
