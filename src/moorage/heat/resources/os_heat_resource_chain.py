"""OS::Heat::ResourceChain: one resource of each type in a list, all with the same properties.

Heat names them `0`, `1`, … in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.annotation import POLICIES, entries_of, policies
from moorage.heat.resources import refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource

TYPES = ("OS::Heat::ResourceChain",)
PLACED = True
CHAINED: Final = "resources"
"""The property with the list of types."""


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:
    """Each resource in turn, and the policies of the chain's annotation.

    Raises:
        InvalidDescription: an unknown property, or what a resource of the chain raises.
    """
    properties = resource.properties
    refuse_unknown(properties, (CHAINED, "concurrent", "resource_properties"), "a chain")
    if CHAINED not in properties:
        raise resource.node.invalid("a resource chain needs resources")
    shared = properties.get("resource_properties")
    for number, kind in enumerate(typed_yaml.items(properties[CHAINED])):
        definition = {"type": kind, **({} if shared is None else {"properties": shared})}
        yield from nested.member(resource, number, definition)
    yield from policies(resource, entries_of(resource, (POLICIES,)))
