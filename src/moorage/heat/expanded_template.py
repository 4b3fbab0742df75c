"""Results of expanding a template: servers, server groups, policies and others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.paths import Path
    from moorage.heat.yaml_tree import Marked


@dataclass(frozen=True, slots=True)
class Server:
    """One server, with what determines its hosts."""

    path: Path
    node: Marked
    """Its definition, for errors."""
    description: Mapping[str, object]
    """Flavor, traits, aggregates and tags, in the words of an ensemble's `members` entry."""
    zone: str | None = None
    groups: tuple[Path, ...] = ()
    """Server groups it says it belongs to."""


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """A Nova server group: one of Nova's four policies over the servers that refer to it."""

    path: Path
    node: Marked
    policy: str
    max_per_host: int | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """A policy as written in some resource's metadata."""

    stack: Path
    """Selectors in it are seen from this stack."""
    path: Path
    """The resource it stands at: the default for a missing name and missing selectors."""
    node: Marked


@dataclass(frozen=True, slots=True)
class Placeless:
    """A resource that takes no place of its own on a host."""

    path: Path
    type: str
    why: str


@dataclass(frozen=True, slots=True)
class Note:
    """A remark for the author, such as a constraint that was not applied."""

    text: str


Found: TypeAlias = Server | ServerGroup | Declared | Placeless | Note


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource with resolved properties and metadata."""

    stack: Path
    path: Path
    type: str
    node: Marked
    properties: Mapping[str, Marked] = field(default_factory=dict)
    metadata: Mapping[str, Marked] = field(default_factory=dict)
