"""Reads a running Nova through its compute API as an operator; nothing is written.

`Get` is a connection: it sends a GET for a path in `VERSION`, and returns the decoded answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from moorage.client.placement_wire import SourceFailed
from moorage.domain.nova_groups import NovaGroup
from moorage.domain.nova_hosts import NovaHost
from moorage.domain.servers import Server
from moorage.domain.virtual_classes import classes_of_flavor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.client.placement_wire import PlacementWire

SERVICE: Final = "compute"
"""Nova's type in a catalog, and its name where microversions are spoken."""
VERSION: Final = "2.64"
"""Servers have their flavors in it, flavors their extra specs, and groups their rules."""
_PAGE: Final = 500
Get: TypeAlias = Callable[[str], Any]
_GROUPS: Final = "server_groups"
Row: TypeAlias = dict[str, Any]
_Record = TypeVar("_Record")


class _Rules(msgspec.Struct):
    max_server_per_host: int | None = None


class _Group(msgspec.Struct):
    id: str
    name: str
    policy: str | None
    project_id: str | None
    user_id: str | None
    rules: _Rules | None = None
    members: list[str] = []


class _Flavor(msgspec.Struct):
    original_name: str = ""
    extra_specs: dict[str, str] | None = None


class _Server(msgspec.Struct):
    id: str
    tenant_id: str
    name: str = ""
    status: str = ""
    flavor: _Flavor | None = None
    host: str | None = msgspec.field(name="OS-EXT-SRV-ATTR:hypervisor_hostname", default=None)
    task: str | None = msgspec.field(name="OS-EXT-STS:task_state", default=None)


class _HypervisorService(msgspec.Struct):
    host: str


class _Hypervisor(msgspec.Struct):
    hypervisor_hostname: str
    service: _HypervisorService
    id: str | int | None = None


class _Service(msgspec.Struct):
    host: str
    zone: str = ""
    status: str = ""
    state: str = ""
    forced_down: bool = False


class _Aggregate(msgspec.Struct):
    hosts: list[str] = []
    metadata: dict[str, str] = {}


def over(wire: PlacementWire) -> Get:
    """The connection of a command."""
    return lambda path: wire.call("GET", path, version=VERSION)


def read_groups(get: Get) -> tuple[NovaGroup, ...]:
    """The server groups of all projects.

    Raises:
        SourceFailed: Nova refuses, fails or does not answer, or it is not Nova.
    """
    found: dict[str, NovaGroup] = {}
    while True:
        path = f"/os-server-groups?all_projects=True&limit={_PAGE}&offset={len(found)}"
        rows = _rows(get(path), path, _GROUPS)
        page = {one.id: _group(one) for one in _converted(rows, path, _Group)}
        if page.keys() <= found.keys():
            return tuple(found.values())
        found |= page


def read_servers(get: Get) -> tuple[Server, ...]:
    """The servers of all projects that are not deleted.

    Raises:
        SourceFailed: Nova refuses, fails or does not answer, or it is not Nova.
    """
    path = "/servers/detail?all_tenants=True"
    return tuple(map(_server, _converted(_paged(get, path, "servers"), path, _Server)))


def read_groups_and_servers(get: Get) -> tuple[tuple[NovaGroup, ...], dict[str, Server]]:
    """The server groups of all projects, and after them the servers by their ids.

    Raises:
        SourceFailed: see `read_groups`.
    """
    return read_groups(get), {one.uuid: one for one in read_servers(get)}


def read_flavors(get: Get) -> tuple[Row, ...]:
    """All flavors, private ones too, as Nova shows them.

    Raises:
        SourceFailed: Nova refuses, fails or does not answer, or it is not Nova.
    """
    return _paged(get, "/flavors/detail?is_public=None", "flavors")


def read_hosts(get: Get) -> tuple[NovaHost, ...]:
    """The hypervisors, with their compute services, zones and aggregates.

    Raises:
        SourceFailed: Nova refuses, fails or does not answer, or it is not Nova.
    """
    path, services, aggregates = "/os-hypervisors/detail", "/os-services", "/os-aggregates"
    hypervisors = _converted(_paged(get, path, "hypervisors"), path, _Hypervisor)
    computes = _rows(get(f"{services}?binary=nova-compute"), services, "services")
    by_host = {one.host: one for one in _converted(computes, services, _Service)}
    grouped = _rows(get(aggregates), aggregates, "aggregates")
    metadata: dict[str, dict[str, set[str]]] = {}
    for one in _converted(grouped, aggregates, _Aggregate):
        for host in one.hosts:
            for key, value in one.metadata.items():
                metadata.setdefault(host, {}).setdefault(key, set()).add(value)
    return tuple(
        _host(one, by_host.get(one.service.host), metadata.get(one.service.host, {}))
        for one in hypervisors
    )


def _host(one: _Hypervisor, service: _Service | None, metadata: Mapping[str, set[str]]) -> NovaHost:
    return NovaHost(
        name=one.hypervisor_hostname,
        zone=None if service is None else service.zone,
        metadata={key: frozenset(values) for key, values in metadata.items()},
        enabled=service is not None and service.status == "enabled",
        up=service is not None and service.state == "up",
        forced_down=service is not None and service.forced_down,
        uuid=one.id.lower() if isinstance(one.id, str) else None,
    )


def _paged(get: Get, path: str, name: str) -> tuple[Row, ...]:
    """The rows of all pages; Nova says with a page whether there is a next one."""
    more = f"{path}{'&' if '?' in path else '?'}limit={_PAGE}"
    found: list[Row] = []
    marker = ""
    while True:
        answer = get(more + marker)
        page = _rows(answer, path, name)
        found += page
        if not page or not answer.get(f"{name}_links"):
            return tuple(found)
        marker = f"&marker={page[-1].get('id')}"


def _rows(answer: object, path: str, name: str) -> list[Row]:
    part = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(part, list) or not all(isinstance(one, dict) for one in part):
        raise SourceFailed(f"GET {path}: not an answer of Nova's: it lacks {name}")
    return part


def _converted(rows: Sequence[Row], path: str, kind: type[_Record]) -> list[_Record]:
    try:
        return msgspec.convert(rows, list[kind])  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise SourceFailed(f"GET {path}: not an answer of Nova's: {error}") from None


def _group(one: _Group) -> NovaGroup:
    return NovaGroup(
        id=one.id.lower(),
        name=one.name,
        project_id=one.project_id or "",
        user_id=one.user_id or "",
        policy=one.policy or "",
        max_server_per_host=None if one.rules is None else one.rules.max_server_per_host,
        members=tuple(one.members),
    )


def _server(one: _Server) -> Server:
    specs = None if one.flavor is None else one.flavor.extra_specs
    return Server(
        uuid=one.id.lower(),
        name=one.name,
        status=one.status.upper(),
        host=one.host,
        busy=one.task is not None,
        project_id=one.tenant_id,
        flavor=None if one.flavor is None else one.flavor.original_name or None,
        classes=None if specs is None else classes_of_flavor(specs),
    )
