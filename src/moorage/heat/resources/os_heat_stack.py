"""OS::Heat::Stack: a stack of its own, whose template is the text of a property."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import find_deferred
from moorage.heat.expanded_template import UnplacedResource
from moorage.heat.resources import refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource

TYPES = ("OS::Heat::Stack",)
PLACED = True


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:
    """Whatever is in the stack's template; nothing if the stack is of another cloud.

    Raises:
        InvalidDescription: an unknown property, a template that comes only later, or what is
            raised in it.
    """
    properties = resource.properties
    refuse_unknown(properties, ("template", "parameters", "timeout", "context"), "a stack")
    context = properties.get("context")
    if context is not None and context.value:
        yield UnplacedResource(resource.path, resource.type, "it is made in another region")
        return
    if "template" not in properties:
        raise resource.node.invalid("a stack needs a template")
    if find_deferred(properties["template"]) is not None:
        yield UnplacedResource(resource.path, resource.type, "its template is not known yet")
        return
    given = properties.get("parameters")
    parameters = {} if given is None or given.value is None else typed_yaml.mapping(given)
    yield from nested.stack_in(resource, properties["template"], parameters)
