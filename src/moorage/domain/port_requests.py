"""The resources that Neutron says a port needs, as request groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain import plain_values
from moorage.domain.errors import InvalidDescription
from moorage.domain.request_groups import Group, GroupKind

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class PortRequest:
    """The groups of one port, and those of them that must be of one subtree."""

    groups: tuple[Group, ...]
    same_subtree: tuple[frozenset[str], ...]


def read_port_request(source: object, port: str, path: str) -> PortRequest:
    """Read a port's attribute `resource_request`, in Neutron's present or older form.

    A single group is named as the port, several are named `<port>-0`, `<port>-1`, ...

    Args:
        source: the attribute; None, or without groups: the port needs nothing of its host.
        port: the port's name in its role.
        path: where errors say that it stands.

    Raises:
        InvalidDescription: another form.
    """
    if source is None:
        return PortRequest((), ())
    fields = plain_values.mapping(source, path)
    if "request_groups" not in fields:  # the older form: one group, without an id
        plain_values.only(fields, {"resources", "required"}, path)
        return PortRequest((_group(fields, port, path),) if fields else (), ())
    plain_values.only(fields, {"request_groups", "same_subtree"}, path)
    listed = plain_values.listed(fields["request_groups"], f"{path}.request_groups")
    groups: dict[str, Group] = {}
    for number, one in enumerate(listed):
        where = f"{path}.request_groups[{number}]"
        group = plain_values.mapping(one, where)
        plain_values.only(group, {"id", "resources", "required"}, where)
        name = port if len(listed) == 1 else f"{port}-{number}"
        groups[plain_values.name(group.get("id"), f"{where}.id")] = _group(group, name, where)
    if len(groups) < len(listed):
        raise InvalidDescription("two groups have the same id", path=f"{path}.request_groups")
    together = plain_values.names(fields.get("same_subtree", ()), f"{path}.same_subtree")
    for unknown in sorted(together - groups.keys()):
        raise InvalidDescription(f"no group has the id {unknown}", path=f"{path}.same_subtree")
    subtree = frozenset(groups[one].name for one in together)
    return PortRequest(tuple(groups.values()), (subtree,) if subtree else ())


def _group(fields: Mapping[str, object], name: str, path: str) -> Group:
    return Group(
        name=name,
        resources=plain_values.positive(fields.get("resources"), f"{path}.resources"),
        kind=GroupKind.PORT,
        required=plain_values.any_of(fields.get("required", ()), f"{path}.required"),
    )
