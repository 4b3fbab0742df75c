"""Resource types: one file each, found by looking into this package, never listed elsewhere.

A module says which `TYPES` it understands and how to `expand` one of them: into what it finds,
asking `nested` for anything below. A group's says in `DEFINITION` which property describes its
members. No resource type judges a policy or looks at a fleet.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.found import Found, Resource
    from moorage.heat.marked import Marked


class Nested(Protocol):
    """Expands what stands below a resource."""

    def member(
        self, group: Resource, number: int, definition: Mapping[str, Marked]
    ) -> Iterator[Found]:
        """One member of a group: a definition of type, properties and metadata, resolved."""


class ResourceType(Protocol):
    """What a module of this package offers."""

    TYPES: tuple[str, ...]

    def expand(self, resource: Resource, nested: Nested) -> Iterator[Found]:
        """What the resource comes to."""


@cache
def registry() -> Mapping[str, ResourceType]:
    """Every known type and the module that understands it."""
    found: dict[str, ResourceType] = {}
    for module in iter_modules(__path__):
        kind: ResourceType = import_module(f"{__name__}.{module.name}")
        for name in kind.TYPES:
            if name in found:
                raise ImportError(f"two modules understand {name}")
            found[name] = kind
    return MappingProxyType(found)


def members_of(type_name: str) -> str | None:
    """The property that describes the members of a group of this type; None for what is none."""
    found: str | None = getattr(registry().get(type_name), "DEFINITION", None)
    return found
