"""Reads a running Nova through its compute API as an operator; nothing is written.

`Get` is a connection: it sends a GET for a path and a microversion, and returns the decoded answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from moorage.client.placement_wire import SourceFailed
from moorage.domain.nova_groups import NovaGroup
from moorage.domain.servers import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.client.placement_wire import PlacementWire

SERVICE: Final = "compute"
"""Nova's type in a catalog, and its name where microversions are spoken."""
VERSION: Final = "2.64"
"""Servers have their flavors in it, flavors their extra specs, and groups their rules."""
_PAGE: Final = 500
Get: TypeAlias = Callable[[str, str], Any]
_GROUPS: Final = "server_groups"


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


_Record = TypeVar("_Record", bound=_Identified)


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


class _Server(msgspec.Struct):
    id: str
    tenant_id: str
    name: str = ""
    status: str = ""
    flavor: _Flavor | None = None
    host: str | None = msgspec.field(name="OS-EXT-SRV-ATTR:hypervisor_hostname", default=None)
    task: str | None = msgspec.field(name="OS-EXT-STS:task_state", default=None)


def over(wire: PlacementWire) -> Get:
    """The connection of a command."""
    return lambda path, version: wire.call("GET", path, version=version)


def read_groups(get: Get) -> tuple[NovaGroup, ...]:
    """The server groups of all projects.

    Raises:
        SourceFailed: Nova refuses, fails or does not answer, or it is not Nova.
    """
    found: dict[str, NovaGroup] = {}
    while True:
        path = f"/os-server-groups?all_projects=True&limit={_PAGE}&offset={len(found)}"
        page = {one.id: _group(one) for one in _records(get(path, VERSION), path, _GROUPS, _Group)}
        if page.keys() <= found.keys():
            return tuple(found.values())
        found |= page


def read_servers(get: Get) -> tuple[Server, ...]:
    """The servers of all projects that are not deleted.

    Raises:
        SourceFailed: Nova refuses, fails or does not answer, or it is not Nova.
    """
    return tuple(map(_server, _paged(get, "/servers/detail?all_tenants=True", "servers", _Server)))


def _paged(get: Get, path: str, name: str, kind: type[_Record]) -> Iterator[_Record]:
    """The records of all pages; Nova says with a page whether there is a next one."""
    more = f"{path}{'&' if '?' in path else '?'}limit={_PAGE}"
    marker = ""
    while True:
        answer = get(more + marker, VERSION)
        page = _records(answer, path, name, kind)
        yield from page
        if not page or not answer.get(f"{name}_links"):
            return
        marker = f"&marker={page[-1].id}"


def _records(answer: object, path: str, name: str, kind: type[_Record]) -> Sequence[_Record]:
    part = answer.get(name) if isinstance(answer, dict) else None
    try:
        return msgspec.convert(part, list[kind])  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise SourceFailed(f"GET {path}: not an answer of Nova's: {name}: {error}") from None


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
    return Server(
        uuid=one.id.lower(),
        name=one.name,
        status=one.status.upper(),
        host=one.host,
        busy=one.task is not None,
        project_id=one.tenant_id,
        flavor=None if one.flavor is None else one.flavor.original_name or None,
    )
