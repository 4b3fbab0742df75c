"""OS::Nova::Server: a member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.annotation import POLICIES, ROLE_KEYS, entries_of, policies
from moorage.heat.deferred_values import ResourceReference, find_deferred
from moorage.heat.expanded_template import Server
from moorage.heat.resources import refuse_unknown
from moorage.heat.resources.os_neutron_port import check_vnic_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Resource
    from moorage.heat.paths import Path
    from moorage.heat.resources import MemberExpander
    from moorage.heat.yaml_tree import YamlNode

TYPES = ("OS::Nova::Server",)

IGNORED_PROPERTIES: Final = (
    "name",
    "flavor_update_policy",
    "image_update_policy",
    "key_name",
    "admin_user",
    "security_groups",
    "metadata",
    "user_data_format",
    "user_data",
    "config_drive",
    "diskConfig",
    "personality",
    "admin_pass",
    "software_config_transport",
    "user_data_update_policy",
    "tags",
    "deployment_swift_data",
)
"""Properties that do not decide where a server may stand."""


def expand(resource: Resource, nested: MemberExpander) -> Iterator[ExpandedItem]:  # noqa: ARG001 - nothing below
    """A server, and the policies of its annotation.

    Raises:
        InvalidDescription: an unknown property, a missing flavor, a hint or network that asks
            for a place Moorage cannot give yet, or a deciding value that comes only later.
    """
    properties = resource.properties
    refuse_unknown(properties, (*IGNORED_PROPERTIES, *_DECIDING), "a server")
    if "flavor" not in properties:
        raise resource.node.invalid("a server needs a flavor")
    if "reservation_id" in properties:
        raise properties["reservation_id"].invalid("reservation_id is not supported")
    for network in _networks(properties):
        check_vnic_type(network)
    entries = entries_of(resource, (POLICIES, *ROLE_KEYS))
    yield Server(
        path=resource.path,
        node=resource.node,
        description={
            "flavor": typed_yaml.name(_known(properties["flavor"])),
            **({"boot_from_volume": True} if _from_volume(properties) else {}),
            **{key: entries[key].plain() for key in ROLE_KEYS if key in entries},
        },
        zone=_zone(properties),
        groups=tuple(_groups(properties)),
    )
    yield from policies(resource, entries)


_DISKS: Final = ("image", "block_device_mapping", "block_device_mapping_v2")
_VOLUMES: Final = ("volume_id", "snapshot_id", "image", "image_id")
"""Keys of a block device mapping that make a volume of it."""

_DECIDING: Final = (
    "flavor",
    "availability_zone",
    "scheduler_hints",
    "networks",
    "reservation_id",
    *_DISKS,
)


def _from_volume(properties: Mapping[str, YamlNode]) -> bool:
    """Whether the root disk is a volume: Nova then asks for no room for it on the host."""
    image, older, mappings = (properties.get(name) for name in _DISKS)
    named = [_entries(one) for one in _listed(older)]
    if image is None and any(_is_root_device(one) for one in named):
        return True
    return any(_is_root_volume(_entries(one)) for one in _listed(mappings))


def _is_root_device(mapping: Mapping[str, YamlNode]) -> bool:
    device = mapping.get("device_name")
    return device is not None and device.value in {"vda", "/dev/vda"}


def _is_root_volume(mapping: Mapping[str, YamlNode]) -> bool:
    """Whether a mapping is of a volume, and first in the order of booting, as it is by default."""
    if not any(name in mapping and mapping[name].value is not None for name in _VOLUMES):
        return False
    order = mapping.get("boot_index")
    return order is None or order.value is None or str(_known(order).value) == "0"


def _entries(node: YamlNode) -> Mapping[str, YamlNode]:
    return node.value if isinstance(node.value, dict) else {}


def _listed(node: YamlNode | None) -> list[YamlNode]:
    return node.value if node is not None and isinstance(node.value, list) else []


def _known(node: YamlNode) -> YamlNode:
    later = find_deferred(node)
    if later is not None:
        raise node.invalid(
            f"this decides the placement, but {later} is not known before the stack is made"
        )
    return node


def _zone(properties: Mapping[str, YamlNode]) -> str | None:
    node = properties.get("availability_zone")
    if node is None or node.value in (None, ""):
        return None
    zone = typed_yaml.name(_known(node))
    if ":" in zone:
        raise node.invalid("a zone may not name a host; say which hosts with a fence policy")
    return zone


def _groups(properties: Mapping[str, YamlNode]) -> Iterator[Path]:
    hints = properties.get("scheduler_hints")
    if hints is None or hints.value is None:
        return
    for name, node in typed_yaml.mapping(hints).items():
        if name != "group":
            raise node.invalid(
                f"the scheduler hint {name!r} is not supported; only group is. State a policy"
                " in the metadata instead"
            )
        if not isinstance(node.value, ResourceReference):
            raise node.invalid(
                "the group must be a server group of this template, by get_resource:"
                " one outside cannot be seen"
            )
        yield node.value.target


def _networks(properties: Mapping[str, YamlNode]) -> Iterator[YamlNode]:
    node = properties.get("networks")
    if node is None or not isinstance(node.value, list):
        return
    for network in node.value:
        if isinstance(network.value, dict):
            extra = network.value.get("port_extra_properties")
            if extra is not None:
                yield extra
