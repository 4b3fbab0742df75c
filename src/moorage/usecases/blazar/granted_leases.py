"""Lease requests for leases that a Blazar service has granted.

Each keeps what it was granted: a host reservation its number of hosts, and once it has begun the
hosts themselves. Servers that use a reservation already are assigned to its members.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.bookings import BookingState
from moorage.domain.errors import InvalidDescription
from moorage.domain.leases import Terms, reservation_class
from moorage.domain.nova.server_request import NovaRules, translate
from moorage.domain.nova_servers import FlavorSize, NovaServer
from moorage.usecases.blazar.lease_request import (
    BEFORE_END,
    FLAVOR,
    HOST,
    MOST,
    BlazarLeaseRequest,
    ReservationRequest,
    at_size,
    count_sizes,
    read_count,
    read_part,
    separate_hosts,
)
from moorage.usecases.blazar.reservables import UNIT, is_used
from moorage.usecases.leases.requests import ExistingGrant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.reservation_content import GrantedLease, GrantedReservation
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.blazar.lease_request import OfferedResources
    from moorage.usecases.leases.requests import LeaseRequest

_SPACE: Final = uuid.UUID("5f0c3a2e-7d5b-4b6c-9a55-3c1f2f6d8e01")
"""The UUID namespace for ids that are not UUIDs."""


def kept_id(id_: str) -> str:
    """The id itself if it is a UUID, else a UUID that is derived from it."""
    try:
        plain = str(uuid.UUID(id_))
    except ValueError:
        plain = ""
    return id_ if plain == id_ else str(uuid.uuid5(_SPACE, id_))


def sized_requests(
    lease: GrantedLease, offered: OfferedResources, snapshot: Snapshot
) -> tuple[int, Callable[[int], LeaseRequest]]:
    """The number of sizes of the lease, and the request that grants it in a size, from 0.

    Raises:
        InvalidDescription, Conflict: a reservation of the lease cannot be read.
    """
    if not 0 < len(lease.reservations) <= MOST:
        raise InvalidDescription(f"a lease has 1 to {MOST} reservations")
    begun = lease.period.start <= snapshot.taken_at
    named = {f"r{number}": one for number, one in enumerate(lease.reservations)}
    parts = tuple(
        _bound(_part(role, one, offered), one, snapshot) if begun else _part(role, one, offered)
        for role, one in named.items()
    )
    annotations = {} if lease.before_end is None else {BEFORE_END: lease.before_end}
    ids = {role: kept_id(one.id) for role, one in named.items()}
    existing_grant = ExistingGrant(ids, _servers(snapshot, ids))
    every = separate_hosts(parts, offered)

    def request_at(number: int) -> LeaseRequest:
        some = at_size(every, number)
        requested = BlazarLeaseRequest(
            lease.name, Terms(lease.period), some, MappingProxyType(annotations)
        )
        return replace(requested.lease_request(), existing_grant=existing_grant)

    return count_sizes(every), request_at


def _part(role: str, one: GrantedReservation, offered: OfferedResources) -> ReservationRequest:
    if one.words.get("resource_type") == FLAVOR and (flavor := _flavor(one.words)):
        return _flavored(role, one.words, flavor)
    part = read_part(role, one.words, offered)
    if part.resource_type != HOST or not one.hosts:
        return part
    count = len(one.hosts)
    return replace(part, least=count).of(count)


def _bound(
    part: ReservationRequest, one: GrantedReservation, snapshot: Snapshot
) -> ReservationRequest:
    """The reservation of a lease that has begun, restricted to its present hosts."""
    if part.resource_type != HOST or not one.hosts:
        return part
    roots = [row for row in snapshot.hosts.tolist() if snapshot.names[row] in one.hosts]
    if any(is_used(snapshot, row) for row in roots):
        # Servers on these hosts belong to the lease, but the ledger cannot tell them from others.
        kept = tuple(policy for policy in part.policies if policy["type"] != "exclusive")
        part = replace(part, policies=kept)
    return replace(part, only_on=frozenset(one.hosts))


# --- flavors --------------------------------------------------------------------------------


def _flavor(words: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Nova's flavor at the lease's creation; None if the service has not stored it."""
    text = words.get("resource_properties")
    try:
        found = json.loads(text) if isinstance(text, str) and text else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and "vcpus" in found else None


def _flavored(role: str, words: Mapping[str, Any], flavor: Mapping[str, Any]) -> ReservationRequest:
    """The reservation of members with a flavor's demands, known to the ledger or not."""
    amount = read_count(words, "amount")
    specs = flavor.get("extra_specs") or {}
    if not isinstance(specs, dict):
        raise InvalidDescription("a flavor's extra_specs are an object")
    asked = translate(
        NovaServer(_size(flavor), {str(key): str(value) for key, value in specs.items()}),
        NovaRules(),
        specs_path="resource_properties.extra_specs",
    )
    members: dict[str, Any] = {
        "name": role,
        "count": amount,
        "resources": dict(asked.resources),
    }
    stated = {
        "required": sorted(asked.root_required.union(*asked.required)),
        "forbidden": sorted(asked.forbidden),
        "groups": [
            {
                "name": group.name,
                "resources": dict(group.resources),
                "required": sorted(trait for some in group.required for trait in some),
                "forbidden": sorted(group.forbidden),
            }
            for group in asked.groups
        ],
        "group_policy": "isolate" if asked.isolate else "",
    }
    said = {
        "amount": amount,
        "affinity": None,
        "vcpus": flavor["vcpus"],
        "memory_mb": flavor.get("ram", 0),
        "disk_gb": flavor.get("disk", 0),
        "resource_properties": words["resource_properties"],
    }
    members |= {key: value for key, value in stated.items() if value}
    return ReservationRequest(role, FLAVOR, said, amount, amount, members)


def _size(flavor: Mapping[str, Any]) -> FlavorSize:
    return FlavorSize(
        vcpus=_units(flavor["vcpus"]),
        memory_mb=_units(flavor.get("ram", 0)),
        root_gb=_units(flavor.get("disk", 0)),
        ephemeral_gb=_units(flavor.get("OS-FLV-EXT-DATA:ephemeral", 0)),
        swap_mb=_units(flavor.get("swap") or 0),
    )


def _units(value: object) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise InvalidDescription(f"a flavor has {value!r} where a number is needed")
    return int(text)


_DIGITS: Final = 9


# --- servers --------------------------------------------------------------------------------


def _servers(snapshot: Snapshot, ids: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The servers with a unit of each role's reservation, on Blazar's own providers."""
    classes = {reservation_class(id_): role for role, id_ in ids.items()}
    found: dict[str, set[str]] = {}
    for row in snapshot.row_of.values():
        if not snapshot.names[row].startswith(UNIT):
            continue
        for booking in snapshot.bookings_of(row):
            if booking.state is BookingState.ALLOCATED:
                for name in booking.amounts.keys() & classes.keys():
                    found.setdefault(classes[name], set()).add(booking.consumer)
    return {role: tuple(sorted(servers)) for role, servers in found.items()}
