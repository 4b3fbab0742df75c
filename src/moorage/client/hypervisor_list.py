"""Reads what OpenStack's client lists, as JSON: hypervisors and servers.

With `--long` there are vCPUs and memory, and in listings of old clouds (compute API before 2.88)
also disk and state; what a listing lacks, options give or leave out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.fleet_expansion import ExpandedFleet, aggregate_uuid
from moorage.domain.fleet_expansion import provider_uuid as uuid_of
from moorage.domain.providers import MAX_NAME, Inventory, ResourceProvider
from moorage.domain.resources import MAX_AMOUNT, NAME
from moorage.domain.servers import Server
from moorage.domain.topology import EMPTY
from moorage.domain.topology_rules import HostFacts, apply

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.topology_rules import TopologyRules

_HOST: Final = ("host", "os-ext-srv-attr:hypervisor_hostname", "hypervisor_hostname")
_TASK: Final = ("task state", "os-ext-sts:task_state")
_PROJECT: Final = ("project id", "tenant_id", "project_id")


def read_servers(text: str) -> list[Server]:
    """The servers of a listing.

    Raises:
        InvalidDescription: not JSON, not such a list, or one without hosts (--long).
    """
    try:
        listing = json.loads(text)
    except ValueError as error:
        raise InvalidDescription(f"not JSON: {error}") from error
    if isinstance(listing, dict) and isinstance(listing.get("servers"), list):
        listing = listing["servers"]
    if not isinstance(listing, list) or not all(isinstance(one, dict) for one in listing):
        raise InvalidDescription(
            "not what `openstack server list --all-projects --long -f json` prints"
        )
    found = [_server(number, one) for number, one in enumerate(listing)]
    known: set[str] = set()
    for number, one in enumerate(found):
        if one.uuid in known:
            raise InvalidDescription(f"server {one.uuid} is listed twice", path=f"[{number}]")
        known.add(one.uuid)
    return found


def _server(number: int, given: Mapping[str, Any]) -> Server:
    fields = {str(key).lower(): value for key, value in given.items()}
    uuid = fields.get("id")
    if not isinstance(uuid, str) or not uuid:
        raise InvalidDescription("a server without ID", path=f"[{number}]")
    if not any(key in fields for key in _HOST):
        raise InvalidDescription(
            f"server {uuid} has no Host: list with --long, as an administrator", path=f"[{number}]"
        )
    task = _first(fields, _TASK)
    return Server(
        uuid=uuid.lower(),
        name=str(fields.get("name") or ""),
        status=str(fields.get("status") or "").upper(),
        host=_first(fields, _HOST),
        busy=task is not None,
        project_id=_first(fields, _PROJECT),
    )


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    found = next((fields[name] for name in names if fields.get(name)), None)
    return None if found is None or str(found) in {"None", "-"} else str(found)


_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("hypervisor hostname", "hypervisor_hostname", "name"),
    "state": ("state",),
    "status": ("status",),
    "VCPU": ("vcpus",),
    "MEMORY_MB": ("memory mb", "memory_mb", "memory_size"),
    "DISK_GB": ("local gb", "local_gb", "disk gb", "local_disk_size"),
}
_CLASSES: Final = ("VCPU", "MEMORY_MB", "DISK_GB")
DISABLED: Final = "COMPUTE_STATUS_DISABLED"
"""The trait by which Nova keeps servers from a host whose compute service is disabled."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms that a listing lacks. Ratios and reserves by resource class."""

    ratios: Mapping[str, float] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    """Totals of classes that the listing lacks."""
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    """By name or UUID."""


def read_hypervisors(text: str, terms: Terms, *, name: str = "hypervisors") -> ExpandedFleet:
    """The fleet of the listing, without the hosts' domains.

    Raises:
        InvalidDescription: not JSON, not such a listing, a host without a name or an inventory,
            one listed twice, numbers out of bounds, terms that do not fit.
    """
    _check(terms)
    providers = [_provider(number, one, terms) for number, one in enumerate(_listing(text))]
    seen: set[str] = set()
    for number, one in enumerate(providers):
        if one.name in seen:
            raise InvalidDescription(f"host {one.name} is listed twice", path=f"[{number}]")
        seen.add(one.name)
    return ExpandedFleet(
        name=name,
        providers=tuple(providers),
        topology=EMPTY,
        flavors=(),
        load=(),
        class_of={one.name: name for one in providers},
    )


def read_names(text: str) -> frozenset[str]:
    """The names of the hosts in a listing, with `--long` or without.

    Raises:
        InvalidDescription: not JSON, not such a listing, or a host without a name.
    """
    return frozenset(_name(number, _lowered(one)) for number, one in enumerate(_listing(text)))


def read_down(text: str) -> tuple[str, ...]:
    """The names of the hosts in a listing whose state is `down`, in its order.

    Raises:
        InvalidDescription: not JSON, not such a listing, or a host without a name.
    """
    listed = [(number, _lowered(one)) for number, one in enumerate(_listing(text))]
    return tuple(
        _name(number, fields)
        for number, fields in listed
        if str(_of(fields, "state")).lower() == "down"
    )


def placed(fleet: ExpandedFleet, rules: TopologyRules) -> ExpandedFleet:
    """The same fleet, with the domains that rules give its hosts.

    Raises:
        InvalidDescription: see `topology_rules.apply`.
    """
    hosts = [HostFacts(one.name, one.traits, one.aggregates) for one in fleet.providers]
    return replace(fleet, topology=apply(rules, hosts))


def _check(terms: Terms) -> None:
    for one in (terms.ratios, terms.reserved, terms.totals):
        for name in one:
            if NAME.fullmatch(name) is None:
                raise InvalidDescription(f"not a resource class name: {name!r}")
    for name, ratio in terms.ratios.items():
        if not 0 < ratio <= MAX_AMOUNT:
            raise InvalidDescription(f"the ratio of {name} must be above 0, not {ratio}")
    for name in terms.traits:
        if NAME.fullmatch(name) is None:
            raise InvalidDescription(f"not a trait name: {name!r}")


def _listing(text: str) -> Sequence[Mapping[str, Any]]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidDescription(f"not JSON: {error}") from error
    if isinstance(found, dict) and isinstance(found.get("hypervisors"), list):
        found = found["hypervisors"]
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InvalidDescription("not what `openstack hypervisor list --long -f json` prints")
    if not found:
        raise InvalidDescription("no hypervisor is listed")
    return found


def _provider(number: int, given: Mapping[str, Any], terms: Terms) -> ResourceProvider:
    fields = _lowered(given)
    path = f"[{number}]"
    name = _name(number, fields)
    listed = {one: total for one in _CLASSES if (total := _total(fields, one, name))}
    totals = {**terms.totals, **listed}
    if not totals:
        raise InvalidDescription(
            f"host {name} has neither vCPUs, memory nor disk: list with --long, or say --total",
            path=path,
        )
    traits = set(terms.traits)
    if str(_of(fields, "status")).lower() == "disabled":
        traits.add(DISABLED)
    return ResourceProvider(
        uuid=uuid_of(name),
        name=name,
        parent_uuid=None,
        root_uuid=uuid_of(name),
        inventories=tuple(
            _inventory(one, total, terms, name) for one, total in sorted(totals.items())
        ),
        traits=frozenset(traits),
        aggregates=frozenset(map(aggregate_uuid, terms.aggregates)),
    )


def _lowered(given: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in given.items()}


def _name(number: int, fields: Mapping[str, Any]) -> str:
    name = _of(fields, "name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise InvalidDescription("a hypervisor without Hypervisor Hostname", path=f"[{number}]")
    return name


def _of(fields: Mapping[str, Any], key: str) -> object:
    return next((fields[name] for name in _KEYS[key] if fields.get(name) is not None), None)


def _total(fields: Mapping[str, Any], resource_class: str, host: str) -> int | None:
    value = _of(fields, resource_class)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_AMOUNT:
        raise InvalidDescription(
            f"host {host}: {resource_class} must be a number up to {MAX_AMOUNT}, not {value!r}"
        )
    return value


def _inventory(resource_class: str, total: int, terms: Terms, host: str) -> Inventory:
    reserved = terms.reserved.get(resource_class, 0)
    if not 0 <= reserved <= total:
        raise InvalidDescription(
            f"host {host} has {total} {resource_class}: {reserved} cannot be reserved"
        )
    return Inventory(
        resource_class,
        total,
        reserved=reserved,
        max_unit=total,
        allocation_ratio=terms.ratios.get(resource_class, 1.0),
    )
