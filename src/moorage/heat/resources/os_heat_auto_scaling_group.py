"""OS::Heat::AutoScalingGroup: its initial number of equal resources.

That is `desired_capacity`, or `min_size` where nothing is desired. Heat gives the members random
names and tells them no number, so no index variable is replaced; here they count from 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import MAX_MEMBERS
from moorage.heat import typed_yaml
from moorage.heat.annotation import POLICIES, entries_of, policies
from moorage.heat.deferred_values import refuse_deferred
from moorage.heat.expanded_template import ScalingGroup
from moorage.heat.numbers import to_integer
from moorage.heat.resources import absent_member, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource
    from moorage.heat.yaml_tree import YamlNode

TYPES = ("OS::Heat::AutoScalingGroup",)
PLACED = True
DEFINITION = "resource"

SCALING: Final = "scaling"
"""Entry of the annotation for Heat's plug-in: how a growth that does not fit whole is answered."""
HEADROOM: Final = "headroom"
_SIZES: Final = ("min_size", "max_size", "desired_capacity")
_PROPERTIES: Final = (DEFINITION, *_SIZES, "cooldown", "rolling_updates")


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:
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
    yield from scaled(resource, nested, definition, _SIZES)


def scaled(
    resource: Resource,
    nested: Expander,
    definition: Mapping[str, YamlNode],
    sizes: tuple[str, str, str],
) -> Iterator[ExpandedItem]:
    """A group between two sizes, its initial members, and the policies of its annotation.

    Args:
        resource: the group.
        nested: expands its members.
        definition: of each member: type, properties and metadata.
        sizes: its properties for the least, the largest and the desired size.

    Raises:
        InvalidDescription: sizes that are absurd or contradict each other, or what a member raises.
    """
    entries = entries_of(resource, (POLICIES, SCALING, HEADROOM))
    group = _sizes(resource, sizes)
    if HEADROOM in entries:
        group = replace(group, headroom=_headroom(entries[HEADROOM], group))
    yield group
    for number in range(group.desired):
        yield from nested.member(resource, number, definition)
    if not group.desired:
        yield from absent_member(resource, nested, definition)
    if SCALING in entries:
        typed_yaml.choice(entries[SCALING], ("all", "largest"))
    yield from policies(resource, entries)


def _headroom(node: YamlNode, group: ScalingGroup) -> int:
    if not group.desired:
        raise node.invalid("there is no headroom beside a group that has no members")
    return typed_yaml.integer(node, least=0, most=group.most - group.desired)


def _sizes(resource: Resource, names: tuple[str, str, str]) -> ScalingGroup:
    properties = resource.properties
    least, most, desired = (
        size(name, properties[name]) if name in properties else None for name in names
    )
    least, most = least or 0, most or 0
    if least > most:
        raise properties[names[1]].invalid(f"{names[1]} {most} is less than {names[0]} {least}")
    # Nought is no wish, as in Heat.
    wanted = desired or least
    if not least <= wanted <= most:
        raise properties[names[2]].invalid(
            f"{names[2]} {wanted} is not between {names[0]} {least} and {names[1]} {most}"
        )
    return ScalingGroup(resource.path, resource.node, least, most, wanted)


def size(name: str, node: YamlNode) -> int | None:
    """The size in a property of that name; None where null was given.

    Raises:
        InvalidDescription: it is no number of members.
    """
    refuse_deferred(node)
    if node.value is None:
        return None
    number = to_integer(node.plain())
    if number is None or not 0 <= number <= MAX_MEMBERS:
        raise node.invalid(f"{name} must be between 0 and {MAX_MEMBERS}, not {node.value!r}")
    return number
