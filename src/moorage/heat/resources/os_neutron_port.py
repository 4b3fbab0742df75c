"""OS::Neutron::Port: no place of its own; what it takes is asked for by its server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.heat.expanded_template import UnplacedResource
from moorage.heat.port_resources import PORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource

TYPES = (PORT,)
PLACED = False


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:  # noqa: ARG001 - nothing below
    """Nothing to place."""
    yield UnplacedResource(resource.path, resource.type, "goes where its server goes")
