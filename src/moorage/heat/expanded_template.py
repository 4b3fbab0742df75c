"""The items that expanding a template gives: servers, server groups, policies and others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.paths import Path
    from moorage.heat.yaml_tree import YamlNode


@dataclass(frozen=True, slots=True)
class Server:
    """One server with its placement requirements."""

    path: Path
    node: YamlNode
    """Its definition, for errors."""
    description: Mapping[str, object]
    """Flavor, traits, aggregates and tags, in the words of an ensemble's `members` entry."""
    zone: str | None = None
    groups: tuple[Path, ...] = ()
    """Server groups in its scheduler hints."""


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """A Nova server group: one of Nova's four policies over the servers that refer to it."""

    path: Path
    node: YamlNode
    policy: str
    max_per_host: int | None = None


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


ExpandedItem: TypeAlias = Server | ServerGroup | DeclaredPolicy | UnplacedResource | Note


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource with resolved properties and metadata."""

    stack: Path
    path: Path
    type: str
    node: YamlNode
    properties: Mapping[str, YamlNode] = field(default_factory=dict)
    metadata: Mapping[str, YamlNode] = field(default_factory=dict)
