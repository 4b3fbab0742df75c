"""OS::Heat::AutoScalingGroup: its initial number of equal resources.

That is `desired_capacity`, or `min_size` where nothing is desired. Heat gives the members random
names and tells them no number, so no index variable is replaced; here they count from 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import MAX_MEMBERS
from moorage.heat import typed_yaml
from moorage.heat.annotation import POLICIES, entries_of, policies
from moorage.heat.deferred_values import refuse_deferred
from moorage.heat.numbers import to_number
from moorage.heat.resources import refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Resource
    from moorage.heat.resources import MemberExpander
    from moorage.heat.yaml_tree import YamlNode

TYPES = ("OS::Heat::AutoScalingGroup",)
DEFINITION = "resource"

_SIZES: Final = ("min_size", "max_size", "desired_capacity")
_PROPERTIES: Final = (DEFINITION, *_SIZES, "cooldown", "rolling_updates")


def expand(resource: Resource, nested: MemberExpander) -> Iterator[ExpandedItem]:
    """Each initial member, and the policies of the group's annotation.

    Raises:
        InvalidDescription: an unknown property, sizes that are absurd or contradict each other, or
            what a member raises.
    """
    properties = resource.properties
    refuse_unknown(properties, _PROPERTIES, "an autoscaling group")
    for name in (DEFINITION, "min_size", "max_size"):
        if name not in properties:
            raise resource.node.invalid(f"an autoscaling group needs {name}")
    definition = typed_yaml.mapping(
        properties[DEFINITION], required=("type",), optional=("properties", "metadata")
    )
    for number in range(_first_size(properties)):
        yield from nested.member(resource, number, definition)
    yield from policies(resource, entries_of(resource, (POLICIES,)))


def _first_size(properties: Mapping[str, YamlNode]) -> int:
    sizes = {name: _size(name, properties[name]) for name in _SIZES if name in properties}
    least, most = sizes["min_size"] or 0, sizes["max_size"] or 0
    if least > most:
        raise properties["max_size"].invalid(f"max_size {most} is less than min_size {least}")
    desired = sizes.get("desired_capacity")
    if desired is None:
        return least
    if not least <= desired <= most:
        raise properties["desired_capacity"].invalid(
            f"desired_capacity {desired} is not between min_size {least} and max_size {most}"
        )
    return desired


def _size(name: str, node: YamlNode) -> int | None:
    """A size; None where null was given."""
    refuse_deferred(node)
    if node.value is None:
        return None
    number = to_number(node.plain())
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= MAX_MEMBERS:
        raise node.invalid(f"{name} must be between 0 and {MAX_MEMBERS}, not {node.value!r}")
    return number
