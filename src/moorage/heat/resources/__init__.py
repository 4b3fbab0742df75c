"""Resource types: one file each, found by looking into this package, never listed elsewhere.

A module says which `TYPES` it understands and how to `expand` one of them: into what it finds,
asking `nested` for anything below, and whether it is `PLACED`: only then are its properties read.
A group's says in `DEFINITION` which property describes its members. No resource type judges a
policy or looks at a fleet. Types of no module have no place (`unplaced_types`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from moorage.domain.errors import InvalidDescription
from moorage.heat.expanded_template import Server, ServerGroup

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource
    from moorage.heat.yaml_tree import YamlNode

UNPLACED: Final = "*"
"""Stands for all types that no module understands."""
_NAMESPACE: Final = "::"


class ResourceType(Protocol):
    """The interface of this package's modules."""

    TYPES: tuple[str, ...]
    PLACED: bool
    """Whether what it is decides about places: its properties are read only then."""

    def expand(self, resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:
        """The servers, policies and others in the resource."""


def refuse_unknown(properties: Mapping[str, YamlNode], known: Collection[str], kind: str) -> None:
    """Return if a resource of a kind (`a server`) has only properties that are known.

    Raises:
        InvalidDescription: it has another one.
    """
    for name, node in properties.items():
        if name not in known:
            raise node.invalid(f"{kind} has no property {name!r}")


def absent_member(
    group: Resource, nested: Expander, definition: Mapping[str, YamlNode]
) -> Iterator[ExpandedItem]:
    """The servers and server groups of a group's first member, of a group that has none now.

    They describe its roles: it may grow, and its policies may speak about it. Nothing, if the
    definition is not valid or not supported: it is of no use yet.
    """
    try:
        found = [*nested.member(group, 0, definition)]
    except InvalidDescription:
        return
    for one in found:
        if isinstance(one, Server):
            yield replace(one, absent=True)
        elif isinstance(one, ServerGroup):
            yield one


@cache
def registry() -> Mapping[str, ResourceType]:
    """Every known type and its module."""
    found: dict[str, ResourceType] = {}
    for module in iter_modules(__path__):
        kind: ResourceType = import_module(f"{__name__}.{module.name}")
        for name in kind.TYPES:
            if name in found:
                raise ImportError(f"two modules understand {name}")
            found[name] = kind
    return MappingProxyType(found)


def resource_type(type_name: str, node: YamlNode) -> ResourceType:
    """The module of a type: its own, or that of all types without a place.

    Raises:
        InvalidDescription: it is no name of a type, such as `OS::Nova::Server`.
    """
    kind = registry().get(type_name)
    if kind is not None:
        return kind
    if _NAMESPACE not in type_name:
        raise node.invalid(f"there is no resource type {type_name}")
    return registry()[UNPLACED]


def members_of(type_name: str) -> str | None:
    """The property that describes a group's members; None for a type that is no group."""
    found: str | None = getattr(registry().get(type_name), "DEFINITION", None)
    return found
