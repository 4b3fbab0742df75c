"""The items that expanding a template gives: servers, server groups, policies and others.

And what expanding a resource is given (`Resource`) and may ask for (`Expander`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from moorage.heat.resource_registry import ResourceRegistry

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from moorage.heat.paths import Path
    from moorage.heat.yaml_tree import YamlNode


@dataclass(frozen=True, slots=True)
class Server:
    """One server with its placement requirements."""

    path: Path
    node: YamlNode
    """Its definition, for errors."""
    definition: str
    """Path of the resource in its template that defines it: its own, or its group's."""
    description: Mapping[str, object]
    """Flavor, traits, aggregates and tags, in the words of an ensemble's `members` entry."""
    zone: str | None = None
    host: str | None = None
    """The host that its availability zone names, as administrators may."""
    groups: tuple[Path, ...] = ()
    """Server groups in its scheduler hints."""
    apart_from: tuple[Path, ...] = ()
    """Servers of its hint `different_host`."""
    beside: tuple[Path, ...] = ()
    """Servers of its hint `same_host`."""
    absent: bool = False
    """Whether it only describes the role of a group that has no member now."""


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """A Nova server group: one of Nova's four policies over the servers that refer to it."""

    path: Path
    node: YamlNode
    policy: str
    max_per_host: int | None = None


@dataclass(frozen=True, slots=True)
class ScalingGroup:
    """A group that Heat grows and shrinks between two sizes."""

    path: Path
    node: YamlNode
    least: int
    most: int
    desired: int
    """Its members at first: those that are placed."""
    headroom: int = 0
    """How many more of each of its roles to keep places for."""


@dataclass(frozen=True, slots=True)
class DeclaredPolicy:
    """A policy in a resource's metadata."""

    stack: Path
    """Its selectors are relative to this stack."""
    path: Path
    """The resource with the metadata: the default for a missing name and missing selectors."""
    node: YamlNode


@dataclass(frozen=True, slots=True)
class UnplacedResource:
    """A resource that is not placed on a host."""

    path: Path
    type: str
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """A remark for the author, such as a constraint that was not applied."""

    text: str


ExpandedItem: TypeAlias = (
    Server | ServerGroup | ScalingGroup | DeclaredPolicy | UnplacedResource | Note
)


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource with resolved properties and metadata."""

    stack: Path
    path: Path
    type: str
    node: YamlNode
    definition: str
    """Path in its template of the resource that defines it: its own, or its group's.

    A node's own path does not tell: that of an alias is where the anchor is.
    """
    properties: Mapping[str, YamlNode] = field(default_factory=dict)
    metadata: Mapping[str, YamlNode] = field(default_factory=dict)
    registry: ResourceRegistry = field(default_factory=ResourceRegistry)
    """What types mean where it stands."""


class Expander(Protocol):
    """Expands what stands below a resource, and finds what it refers to."""

    def member(
        self, group: Resource, number: int, definition: Mapping[str, YamlNode]
    ) -> Iterator[ExpandedItem]:
        """One member of a group: a definition of type, properties and metadata, resolved."""

    def stack_in(
        self, resource: Resource, text: YamlNode, parameters: Mapping[str, YamlNode]
    ) -> Iterator[ExpandedItem]:
        """The stack of a template that is the text of a property."""

    def removed_names(self, group: Resource) -> Collection[str]:
        """The names of a resource group that Heat gives no member of it any more."""

    def name_of(self, group: Resource, entry: str) -> str:
        """The name of the member that removal policies call by its name or id."""

    def resource_at(self, path: Path) -> Resource | None:
        """The resource at a path to which another refers; None: no resource is there."""

    def resources_beside(self, path: Path, type_name: str) -> Iterator[Resource]:
        """The resources of a type in the stack of the resource at a path."""
