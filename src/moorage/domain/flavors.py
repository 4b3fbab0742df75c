"""Flavors: named member sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moorage.domain.nova_servers import FlavorSize
from moorage.domain.request_groups import Group
from moorage.domain.resources import Amounts, Trait, total


@dataclass(frozen=True, slots=True)
class Flavor:
    """What one server of this size needs, in Placement's terms.

    For a flavor of Nova that is what Nova asks for a server whose root disk is on the host and
    whose image has no properties.
    """

    id: str
    name: str
    resources: Amounts
    required: tuple[frozenset[Trait], ...] = ()
    """All of these; each satisfied by any trait of its set."""
    forbidden: frozenset[Trait] = frozenset()
    extra_specs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    size: FlavorSize | None = None
    """Nova's numbers; None: the flavor was written in Placement's terms."""
    root_required: frozenset[Trait] = frozenset()
    """Traits of the host itself."""
    groups: tuple[Group, ...] = ()
    """Numbered groups and devices, each from one provider."""
    isolate: bool = False
    """Whether no provider may serve two groups of one server."""
    host_checks: tuple[str, ...] = ()
    """Extra specs that Nova compares with the chosen host itself: Placement is not asked."""

    @property
    def whole(self) -> Amounts:
        """What one server takes of each class, its groups included."""
        return total([self.resources, *(one.resources for one in self.groups)])
