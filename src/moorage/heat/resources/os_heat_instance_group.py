"""OS::Heat::InstanceGroup and AWS::AutoScaling::AutoScalingGroup: instances of one configuration.

Their members are AWS::EC2::Instance, with the properties of the launch configuration that the group
names. Heat reads no zones of the group itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat.annotation import POLICIES, entries_of, policies
from moorage.heat.deferred_values import ResourceReference
from moorage.heat.resources.aws_ec2_instance import TYPES as INSTANCE
from moorage.heat.resources.os_heat_auto_scaling_group import scaled, size
from moorage.heat.yaml_tree import collection_node, to_node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource
    from moorage.heat.yaml_tree import YamlNode

SCALED: Final = "AWS::AutoScaling::AutoScalingGroup"
TYPES = ("OS::Heat::InstanceGroup", SCALED)
PLACED = True

CONFIGURATION: Final = "LaunchConfigurationName"
INSTANCE_ID: Final = "InstanceId"
_SIZES: Final = ("MinSize", "MaxSize", "DesiredCapacity")


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:
    """Each initial member, and the policies of the group's annotation.

    Raises:
        InvalidDescription: sizes that are absurd or contradict each other, no launch configuration
            of this template, or what a member raises.
    """
    definition = _definition(resource, nested)
    if resource.type == SCALED:
        yield from scaled(resource, nested, definition, _SIZES)
        return
    node = resource.properties.get("Size")
    for number in range((size("Size", node) if node is not None else None) or 0):
        yield from nested.member(resource, number, definition)
    yield from policies(resource, entries_of(resource, (POLICIES,)))


def _definition(resource: Resource, nested: Expander) -> Mapping[str, YamlNode]:
    """A member's definition, from the launch configuration."""
    named = resource.properties.get(CONFIGURATION)
    if named is None or not isinstance(named.value, ResourceReference):
        at = resource.node if named is None else named
        raise at.invalid(
            f"{CONFIGURATION} must be a launch configuration of this template: only then its"
            " instances are known"
        )
    found = nested.resource_at(named.value.target)
    if found is None:
        raise named.invalid(f"{named.value.target} is not in the template")
    if INSTANCE_ID in found.properties:
        raise found.properties[INSTANCE_ID].invalid(
            "the instances would be like one that exists, whose flavor is not known here"
        )
    at = found.node
    return {
        "type": to_node(INSTANCE[0], line=at.line, path=at.path),
        "properties": collection_node(dict(found.properties), at.line, at.path),
        "metadata": collection_node(dict(found.metadata), at.line, at.path),
    }
