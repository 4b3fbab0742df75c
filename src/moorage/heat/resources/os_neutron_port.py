"""OS::Neutron::Port: no place of its own, unless it takes a device of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import find_deferred
from moorage.heat.expanded_template import UnplacedResource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.heat.expanded_template import ExpandedItem, Resource
    from moorage.heat.resources import MemberExpander
    from moorage.heat.yaml_tree import YamlNode

TYPES = ("OS::Neutron::Port",)

_VNIC_TYPE: Final = "binding:vnic_type"


def expand(resource: Resource, nested: MemberExpander) -> Iterator[ExpandedItem]:  # noqa: ARG001 - nothing below
    """Nothing to place.

    Raises:
        InvalidDescription: the port takes a device (SR-IOV and the like).
    """
    if "value_specs" in resource.properties:
        check_vnic_type(resource.properties["value_specs"])
    if _VNIC_TYPE in resource.properties:
        _check(resource.properties[_VNIC_TYPE])
    yield UnplacedResource(resource.path, resource.type, "goes where its server goes")


def check_vnic_type(properties: YamlNode) -> None:
    """Refuse port properties that take a device of the host.

    Raises:
        InvalidDescription: a vnic type other than normal.
    """
    if isinstance(properties.value, dict) and _VNIC_TYPE in properties.value:
        _check(properties.value[_VNIC_TYPE])


def _check(node: YamlNode) -> None:
    if find_deferred(node) is not None or typed_yaml.text(node) != "normal":
        raise node.invalid(
            f"ports of vnic type {node.value} take a device of the host; these cannot be placed yet"
        )
