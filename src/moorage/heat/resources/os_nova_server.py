"""OS::Nova::Server: a member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.annotation import POLICIES, ROLE_KEYS, entries_of, flavor_of, policies
from moorage.heat.deferred_values import refuse_deferred
from moorage.heat.expanded_template import Note, Server
from moorage.heat.numbers import to_integer
from moorage.heat.port_resources import PortResources, ports_of
from moorage.heat.resources import refuse_unknown
from moorage.heat.server_hints import read_hints, read_zone
from moorage.heat.template_flavors import described_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource
    from moorage.heat.yaml_tree import YamlNode

TYPES = ("OS::Nova::Server",)
PLACED = True

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


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:
    """A server, and the policies of its annotation.

    Raises:
        InvalidDescription: an unknown property, a missing flavor, a hint that asks for a place
            Moorage cannot give, or a deciding value that comes only later.
    """
    properties = resource.properties
    refuse_unknown(properties, (*IGNORED_PROPERTIES, *_DECIDING), "a server")
    if "flavor" not in properties:
        raise resource.node.invalid("a server needs a flavor")
    entries = entries_of(resource, (POLICIES, *ROLE_KEYS))
    stated = {key: entries[key].plain() for key in ROLE_KEYS if key in entries}
    ports = PortResources()
    if "ports" not in stated:  # else the annotation tells of them
        ports = ports_of(properties.get("networks"), resource.path, nested)
    hints = read_hints(_hints(properties), resource.path)
    zone = read_zone(properties.get("availability_zone"))
    yield from (*hints.notes, *ports.notes, *_reservation(resource))
    yield Server(
        path=resource.path,
        node=resource.node,
        definition=resource.definition,
        description={
            **described_size(
                flavor_of(resource, properties["flavor"]),
                nested,
                from_volume=_from_volume(properties),
            ),
            **({"ports": ports.ports} if ports.ports else {}),
            **stated,
        },
        zone=zone.name,
        host=zone.host,
        groups=hints.groups,
        apart_from=hints.apart_from,
        beside=hints.beside,
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
    return order is None or order.value is None or _order(order) == 0


def _order(node: YamlNode) -> object:
    refuse_deferred(node)
    return to_integer(node.plain())


def _entries(node: YamlNode) -> Mapping[str, YamlNode]:
    return node.value if isinstance(node.value, dict) else {}


def _listed(node: YamlNode | None) -> list[YamlNode]:
    return node.value if node is not None and isinstance(node.value, list) else []


def _hints(properties: Mapping[str, YamlNode]) -> Iterator[tuple[str, YamlNode]]:
    node = properties.get("scheduler_hints")
    if node is not None and node.value is not None:
        yield from typed_yaml.mapping(node).items()


def _reservation(resource: Resource) -> Iterator[Note]:
    node = resource.properties.get("reservation_id")
    if node is not None and node.value is not None:
        yield Note(f"{resource.path.member_name().role}: its reservation_id is only for Nova")
