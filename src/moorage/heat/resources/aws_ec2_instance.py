"""AWS::EC2::Instance: a member, as Heat makes a server of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.heat import typed_yaml
from moorage.heat.annotation import POLICIES, ROLE_KEYS, entries_of, flavor_of, policies
from moorage.heat.expanded_template import Server
from moorage.heat.server_hints import read_hints, read_zone
from moorage.heat.template_flavors import described_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource
    from moorage.heat.yaml_tree import YamlNode

TYPES = ("AWS::EC2::Instance",)
PLACED = True


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:
    """An instance, and the policies of its annotation.

    Raises:
        InvalidDescription: a missing flavor, a hint that asks for a place Moorage cannot give, or
            a deciding value that comes only later.
    """
    properties = resource.properties
    if "InstanceType" not in properties:
        raise resource.node.invalid("an instance needs an InstanceType")
    entries = entries_of(resource, (POLICIES, *ROLE_KEYS))
    hints = read_hints(_hints(properties), resource.path)
    zone = read_zone(properties.get("AvailabilityZone"))
    yield from hints.notes
    yield Server(
        path=resource.path,
        node=resource.node,
        definition=resource.definition,
        description={
            **described_size(flavor_of(resource, properties["InstanceType"]), nested),
            **{key: entries[key].plain() for key in ROLE_KEYS if key in entries},
        },
        zone=zone.name,
        host=zone.host,
        groups=hints.groups,
        apart_from=hints.apart_from,
        beside=hints.beside,
    )
    yield from policies(resource, entries)


def _hints(properties: Mapping[str, YamlNode]) -> Iterator[tuple[str, YamlNode]]:
    """The scheduler hints, which are a list of keys and values here."""
    node = properties.get("NovaSchedulerHints")
    if node is not None and node.value is not None:
        for one in typed_yaml.items(node):
            fields = typed_yaml.mapping(one, required=("Key", "Value"))
            yield typed_yaml.name(fields["Key"]), fields["Value"]
