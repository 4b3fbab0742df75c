"""Reads a running Blazar through version 1 of its REST API: hosts, addresses and leases."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.client.placement_wire import SourceFailed
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import Instant, Period, parse_instant
from moorage.domain.reservation_content import (
    EnrolledAddress,
    EnrolledHost,
    GrantedLease,
    GrantedReservation,
    ReservationContent,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.client.placement_wire import PlacementWire

SERVICE: Final = "reservation"
"""Blazar's type in a catalog, and its name where microversions are spoken."""
_VERSION: Final = re.compile(r"/v\d+$")
_COLUMNS: Final = frozenset(
    {
        "id",
        "vcpus",
        "cpu_info",
        "hypervisor_type",
        "hypervisor_version",
        "hypervisor_hostname",
        "service_name",
        "memory_mb",
        "local_gb",
        "status",
        "availability_zone",
        "trust_id",
        "reservable",
        "created_at",
        "updated_at",
        "disabled",
    }
)
"""What Blazar itself says of a host; every other key was added."""
_ADDRESS: Final = frozenset(
    {"id", "floating_network_id", "floating_ip_address", "reservable", "created_at", "updated_at"}
)
_OVER: Final = frozenset({"TERMINATED", "DELETING"})


class _Host(msgspec.Struct):
    id: str | int
    hypervisor_hostname: str


class _Address(msgspec.Struct):
    id: str
    floating_network_id: str
    floating_ip_address: str


class _Event(msgspec.Struct):
    event_type: str
    time: str


class _Lease(msgspec.Struct):
    id: str
    name: str
    project_id: str
    user_id: str
    start_date: str
    end_date: str
    reservations: list[dict[str, Any]]
    status: str = ""
    events: list[_Event] = []
    created_at: str | None = None


class _Booked(msgspec.Struct):
    id: str


class _Allocation(msgspec.Struct):
    resource_id: str | int
    reservations: list[_Booked]


class _Property(msgspec.Struct):
    property: str


def endpoint_of(url: str) -> str:
    """The URL of version 1, from an endpoint with or without it."""
    bare = url.rstrip("/")
    return bare if _VERSION.search(bare) else f"{bare}/v1"


def read_blazar(wire: PlacementWire, now: Instant) -> ReservationContent:
    """The content that is still in use at `now`; the source is only read.

    Raises:
        SourceFailed: it refuses, stumbles too often, does not answer, or is something else.
    """
    hosts = _part(wire, "/os-hosts", "hosts")
    names = {str(one["id"]): kept.name for one, kept in zip(hosts, map(_host, hosts), strict=True)}
    known = {one.property for one in _parsed(wire, _PROPERTIES, _PROPERTY, list[_Property])}
    every = f"{_PROPERTIES}?all=True"
    private = {one.property for one in _parsed(wire, every, _PROPERTY, list[_Property])} - known
    where: dict[str, list[str]] = {}
    for one in _parsed(wire, "/os-hosts/allocations", "allocations", list[_Allocation]):
        for booked in one.reservations:
            where.setdefault(booked.id, []).append(names.get(str(one.resource_id), ""))
    leases = [_lease(one, where) for one in _parsed(wire, "/leases", "leases", list[_Lease])]
    live = [one for one in leases if one.status not in _OVER and now < one.period.end]
    return ReservationContent(
        hosts=tuple(map(_host, hosts)),
        private=frozenset(private),
        addresses=tuple(map(_address, _part(wire, "/floatingips", "floatingips"))),
        leases=tuple(live),
        ended=len(leases) - len(live),
    )


_PROPERTIES: Final = "/os-hosts/properties"
_PROPERTY: Final = "resource_properties"


def _part(wire: PlacementWire, path: str, name: str) -> Sequence[dict[str, Any]]:
    found = wire.get(path)
    part = found.get(name) if isinstance(found, dict) else None
    if not isinstance(part, list) or not all(isinstance(one, dict) for one in part):
        raise SourceFailed(f"{wire.endpoint}{path}: the answer lacks {name}; is it Blazar's API?")
    return part


def _parsed(wire: PlacementWire, path: str, name: str, kind: Any) -> Any:  # noqa: ANN401 - of that kind
    return _converted(_part(wire, path, name), kind)


def _converted(found: object, kind: Any) -> Any:  # noqa: ANN401 - of that kind
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise SourceFailed(f"an answer that is not Blazar's: {error}") from None


def _texts(found: Mapping[str, Any], without: frozenset[str]) -> Mapping[str, str]:
    return MappingProxyType(
        {
            key: str(value)
            for key, value in found.items()
            if key not in without and value is not None and not isinstance(value, dict | list)
        }
    )


def _host(found: dict[str, Any]) -> EnrolledHost:
    one = _converted(found, _Host)
    return EnrolledHost(str(one.id), one.hypervisor_hostname, _texts(found, _COLUMNS))


def _address(found: dict[str, Any]) -> EnrolledAddress:
    one = _converted(found, _Address)
    more = _texts(found, _ADDRESS)
    return EnrolledAddress(one.id, one.floating_network_id, one.floating_ip_address, more)


def _lease(one: _Lease, where: Mapping[str, Sequence[str]]) -> GrantedLease:
    try:
        period = Period(_instant(one.start_date), _instant(one.end_date))
        told = [_instant(e.time) for e in one.events if e.event_type == "before_end_lease"]
    except InvalidDescription as error:
        raise SourceFailed(f"lease {one.id}: {error.message}") from None
    return GrantedLease(
        id=one.id,
        name=one.name,
        project_id=one.project_id,
        user_id=one.user_id,
        period=period,
        status=one.status,
        reservations=tuple(_reservation(part, where) for part in one.reservations),
        created_at=one.created_at or "",
        before_end=min(told, default=None),
    )


def _reservation(found: dict[str, Any], where: Mapping[str, Sequence[str]]) -> GrantedReservation:
    id_ = _converted(found, _Booked).id
    hosts = sorted({name for name in where.get(id_, ()) if name})
    return GrantedReservation(id_, MappingProxyType(found), tuple(hosts))


def _instant(text: str) -> Instant:
    """An instant; Blazar writes UTC without an offset."""
    return parse_instant(f"{text}+00:00")
