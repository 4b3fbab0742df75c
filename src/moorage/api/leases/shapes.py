"""Leases, reservations, events, hosts, allocations and addresses on the wire."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from moorage.api.leases.dates import stamped, written
from moorage.domain.leases import LeaseState
from moorage.domain.period import HOUR
from moorage.usecases.blazar.lease_request import BEFORE_END, FLAVOR, INSTANCE, RESERVATIONS
from moorage.usecases.blazar.lease_status import NOTHING_AMISS, Unreadiness
from moorage.usecases.blazar.reservables import FACTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.leases import Lease, Reservation
    from moorage.domain.period import Instant
    from moorage.domain.reservables import Reservable
    from moorage.usecases.blazar.reservables import OfferedHost

DELETED: Final = "deleted"
"""The annotation of a deleted lease, which Blazar's API hides."""
UPDATING: Final = "UPDATING"
BEFORE: Final = HOUR
"""How long before its end a lease's owner is notified by default."""

_STATUS: Final[Mapping[LeaseState, str]] = {
    LeaseState.PENDING: "PENDING",
    LeaseState.STARTING: "PENDING",
    LeaseState.ENDING: "TERMINATED",
    LeaseState.CLOSED: "TERMINATED",
}
_PART: Final[Mapping[LeaseState, str]] = {
    LeaseState.PENDING: "pending",
    LeaseState.STARTING: "pending",
    LeaseState.ENDING: "deleted",
    LeaseState.CLOSED: "deleted",
}

_BEGINNING: Final = ("STARTING", "pending", "IN_PROGRESS")
_FAILED: Final = ("ERROR", "error", "ERROR")
_BEGUN: Final = ("ACTIVE", "active", "DONE")
"""Status of a lease in its period, of its reservation, and of the event of its start."""


def lease(
    one: Lease,
    now: Instant,
    unready: Mapping[str, Unreadiness] = NOTHING_AMISS,
    missing: frozenset[str] = frozenset(),
    *,
    status: str | None = None,
) -> dict[str, Any]:
    """A lease with its reservations and events.

    `unready` are the roles that are not ready, `missing` those with members without a place.
    """
    active = one.state is LeaseState.ACTIVE
    begun = min((_begun(why) for why in unready.values()), key=_WORST.index, default=_BEGUN)
    occupied = Unreadiness.OCCUPIED in unready.values()
    return {
        "id": one.id,
        "name": one.name,
        "user_id": one.user_id,
        "project_id": one.project_id,
        "start_date": written(one.terms.period.start),
        "end_date": written(_end(one)),
        "trust_id": None,
        "status": status or (begun[0] if active else _STATUS[one.state]),
        "degraded": one.degraded or occupied or any(part.moved for part in one.reservations),
        "created_at": stamped(one.created_at),
        "updated_at": stamped(one.updated_at),
        "reservations": [
            _part(one, part, unready.get(part.role), missing=part.role in missing)
            for part in one.reservations
        ],
        "events": _events(one, begun[2], now),
    }


_WORST: Final = (_FAILED, _BEGINNING, _BEGUN)


def _begun(why: Unreadiness | None) -> tuple[str, str, str]:
    if why is None:
        return _BEGUN
    return _FAILED if why is Unreadiness.FAILING else _BEGINNING


def _part(
    one: Lease, part: Reservation, why: Unreadiness | None, *, missing: bool
) -> dict[str, Any]:
    """A reservation as requested, with its state; `why` it is not ready, in its period."""
    active = one.state is LeaseState.ACTIVE
    return {
        "lease_id": one.id,
        "resource_id": derived(part.id, "resource"),
        "status": _begun(why)[1] if active else _PART[one.state],
        "missing_resources": missing or why is Unreadiness.OCCUPIED,
        "resources_changed": part.moved,
        "created_at": stamped(one.created_at),
        "updated_at": stamped(one.updated_at),
        **reserved(one, part),
        "id": part.id,
    }


def reserved(one: Lease, part: Reservation) -> Mapping[str, Any]:
    """The reservation as requested, or what is known of one made by another dialect."""
    said = one.annotations.get(RESERVATIONS)
    if isinstance(said, dict) and part.role in said:
        words: Mapping[str, Any] = said[part.role]
        return words if words["resource_type"] not in _SLOTS else {**_slots(part), **words}
    if part.resource_class is None:
        return {"resource_type": part.kind, "resource_properties": ""}
    return {"resource_type": FLAVOR, "resource_properties": "", **_slots(part)}


_SLOTS: Final = frozenset({INSTANCE, FLAVOR})


def _slots(part: Reservation) -> dict[str, Any]:
    """How servers use the reservation: by a flavor with the reservation's id."""
    return {"flavor_id": part.id, "aggregate_id": None, "server_group_id": None}


def _end(one: Lease) -> Instant:
    """When it ends; if it ended as it began, its start: no period is empty."""
    period = one.terms.period
    return period.start if period.end == period.start + 1 else period.end


def before_end(one: Lease) -> Instant:
    """When its owner is notified of its end; not before its start."""
    said = one.annotations.get(BEFORE_END)
    period = one.terms.period
    return said if isinstance(said, int) else max(period.start, period.end - BEFORE)


def _events(one: Lease, start: str, now: Instant) -> list[dict[str, Any]]:
    """Its three events; `start` is the first one's status once the lease has begun."""
    begun = one.state not in {LeaseState.PENDING, LeaseState.STARTING}
    ended = one.state in {LeaseState.ENDING, LeaseState.CLOSED}
    told = ended or (begun and before_end(one) <= now)
    return [
        {
            "id": derived(one.id, kind),
            "lease_id": one.id,
            "event_type": kind,
            "time": written(at),
            "status": done or "UNDONE",
            "created_at": stamped(one.created_at),
            "updated_at": stamped(one.updated_at),
        }
        for kind, at, done in (
            ("start_lease", one.terms.period.start, start if begun else ""),
            ("end_lease", _end(one), "DONE" if ended else ""),
            ("before_end_lease", before_end(one), "DONE" if told else ""),
        )
    ]


def derived(id_: str, kind: str) -> str:
    """A deterministic id for rows that only Blazar has."""
    return str(uuid.uuid5(uuid.UUID(id_), kind))


def host(one: OfferedHost) -> dict[str, Any]:
    """A host, with its added properties at the top level; they override none of its own fields."""
    known = one.properties
    record = one.reservable
    return {
        "id": record.id,
        "vcpus": known["vcpus"],
        "cpu_info": known["cpu_info"],
        "hypervisor_type": known["hypervisor_type"],
        "hypervisor_version": known["hypervisor_version"],
        "hypervisor_hostname": record.name,
        "service_name": record.name,
        "memory_mb": known["memory_mb"],
        "local_gb": known["local_gb"],
        "status": None,
        "availability_zone": one.zone or "",
        "trust_id": None,
        "reservable": one.usable,
        "created_at": stamped(record.created_at),
        "updated_at": stamped(record.updated_at),
        **{key: value for key, value in record.properties.items() if key not in FACTS},
    }


def allocation(resource: str, rows: Sequence[tuple[str, Lease]]) -> dict[str, Any]:
    """The reservations of a resource, with their leases and dates."""
    return {
        "resource_id": resource,
        "reservations": [
            {
                "id": reservation,
                "lease_id": one.id,
                "start_date": written(one.terms.period.start),
                "end_date": written(one.terms.period.end),
            }
            for reservation, one in rows
        ],
    }


def floating_ip(one: Reservable) -> dict[str, Any]:
    """An address."""
    return {
        "id": one.id,
        "floating_network_id": one.properties["floating_network_id"],
        "subnet_id": one.properties.get("subnet_id"),
        "floating_ip_address": one.name,
        "reservable": True,
        "created_at": stamped(one.created_at),
        "updated_at": stamped(one.updated_at),
    }
