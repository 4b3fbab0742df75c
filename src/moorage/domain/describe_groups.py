"""Request groups in descriptions: ports, volumes and other groups beside own resources."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import plain_values
from moorage.domain.errors import InvalidDescription
from moorage.domain.port_requests import PortRequest, read_port_request
from moorage.domain.request_groups import Group, GroupKind
from moorage.domain.resources import Amounts, amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

LISTS: Final[Mapping[str, GroupKind]] = MappingProxyType(
    {"ports": GroupKind.PORT, "volumes": GroupKind.VOLUME, "groups": GroupKind.GROUP}
)
"""Field of a description -> what its entries are."""

GROUP_FIELDS: Final = frozenset(LISTS) | {"same_subtree", "group_policy"}
"""Fields of a role that are read here."""

MAX_GROUPS: Final = 64
VNIC_TYPES: Final = frozenset(
    {
        *("normal", "direct", "macvtap", "direct-physical", "baremetal", "virtio-forwarder"),
        *("vdpa", "accelerator-direct", "accelerator-direct-physical", "remote-managed"),
        "smart-nic",
    }
)
"""Neutron's; accepted, since it says how a port is plugged and not where its device is."""

_COMMON: Final = frozenset(
    {"name", "resources", "required", "forbidden", "member_of", "same_subtree"}
)
_OWN: Final[Mapping[GroupKind, frozenset[str]]] = MappingProxyType(
    {
        GroupKind.PORT: frozenset({"vnic_type", "resource_request"}),
        GroupKind.VOLUME: frozenset({"size_gb"}),
        GroupKind.GROUP: frozenset(),
    }
)


@dataclass(frozen=True, slots=True)
class RoleGroups:
    """The groups of a role, with `same_subtree` and `group_policy`."""

    groups: tuple[Group, ...] = ()
    same_subtree: tuple[frozenset[str], ...] = ()
    isolate: bool = False


def read_groups(fields: Mapping[str, object], path: str) -> RoleGroups:
    """Read `ports`, `volumes`, `groups`, `same_subtree` and `group_policy` of a role.

    Raises:
        InvalidDescription: a missing, unknown or ill-typed field, a name that comes twice or
            names no group, or a group that asks for nothing and hangs together with nothing.
    """
    parts = [
        _part(one, kind, f"{path}.{field}[{i}]")
        for field, kind in LISTS.items()
        for i, one in enumerate(plain_values.listed(fields.get(field, ()), f"{path}.{field}"))
    ]
    groups = tuple(group for part in parts for group in part.groups)
    plain_values.unique((one.name for one in groups), path)
    if len(groups) > MAX_GROUPS:
        raise InvalidDescription(f"more than {MAX_GROUPS} groups", path=path)
    sets = (
        *(one for part in parts for one in part.same_subtree),
        *_subtrees(fields.get("same_subtree", ()), groups, f"{path}.same_subtree"),
    )
    for one in groups:
        if not one.resources and not any(one.name in names for names in sets):
            raise InvalidDescription(
                f"group {one.name} asks for no resources, and no same_subtree names it",
                path=f"{path}.groups",
            )
    policy = fields.get("group_policy", "none")
    if policy not in ("none", "isolate"):
        raise InvalidDescription(
            f"group_policy is none or isolate, not {policy!r}", path=f"{path}.group_policy"
        )
    return RoleGroups(groups, sets, policy == "isolate")


def _part(source: object, kind: GroupKind, path: str) -> PortRequest:
    """The groups of one entry: one, or what Neutron says that a port needs."""
    fields = plain_values.mapping(source, path)
    plain_values.only(fields, _COMMON | _OWN[kind], path)
    if "resource_request" not in fields:
        return PortRequest((_group(fields, kind, path),), ())
    stated = sorted(fields.keys() - {"name", "vnic_type", "resource_request"})
    if stated:
        raise InvalidDescription(
            f"the port's resource_request says it; leave out {', '.join(stated)}",
            path=f"{path}.{stated[0]}",
        )
    _check_vnic_type(fields, path)
    name = plain_values.name(fields.get("name"), f"{path}.name")
    return read_port_request(fields["resource_request"], name, f"{path}.resource_request")


def _check_vnic_type(fields: Mapping[str, object], path: str) -> None:
    vnic_type = plain_values.text(fields.get("vnic_type", "normal"), f"{path}.vnic_type")
    if vnic_type not in VNIC_TYPES:
        raise InvalidDescription(f"no such vnic_type: {vnic_type!r}", path=f"{path}.vnic_type")


def _group(fields: Mapping[str, object], kind: GroupKind, path: str) -> Group:
    beside = fields.get("same_subtree", False)
    if not isinstance(beside, bool):
        raise InvalidDescription(
            "same_subtree of a group is true or false: whether it is of one subtree with the"
            " member's own resources; sets of groups are named by the member's same_subtree",
            path=f"{path}.same_subtree",
        )
    _check_vnic_type(fields, path)
    required = plain_values.any_of(fields.get("required", ()), f"{path}.required")
    resources = _resources(fields, kind, path)
    if not resources and not required:
        raise InvalidDescription(
            "a group needs resources, or traits that say which provider it names",
            path=f"{path}.resources",
        )
    return Group(
        name=plain_values.name(fields.get("name"), f"{path}.name"),
        resources=resources,
        kind=kind,
        required=required,
        forbidden=plain_values.names(fields.get("forbidden", ()), f"{path}.forbidden"),
        member_of=plain_values.any_of(fields.get("member_of", ()), f"{path}.member_of"),
        beside=beside,
    )


def _resources(fields: Mapping[str, object], kind: GroupKind, path: str) -> Amounts:
    """The resources as written; a volume with only a size takes that much DISK_GB."""
    if "resources" in fields:
        return plain_values.positive(fields["resources"], f"{path}.resources")
    size = fields.get("size_gb")
    if kind is not GroupKind.VOLUME or size is None:
        return MappingProxyType({})
    if not isinstance(size, int):
        raise InvalidDescription("size_gb is a whole number", path=f"{path}.size_gb")
    return amounts({"DISK_GB": size}, path=f"{path}.size_gb")


def _subtrees(source: object, groups: tuple[Group, ...], path: str) -> tuple[frozenset[str], ...]:
    known = {one.name for one in groups}
    sets = []
    for i, one in enumerate(plain_values.listed(source, path)):
        names = plain_values.names(one, f"{path}[{i}]")
        for unknown in sorted(names - known):
            raise InvalidDescription(f"no group is called {unknown}", path=f"{path}[{i}]")
        sets.append(names)
    return tuple(sets)
