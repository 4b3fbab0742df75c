"""The size of a server: a flavor by name, or one that the same template makes.

A flavor of the template is not known to any cloud yet. Its numbers and extra specs are translated
as Nova does, into the resources and traits of the role.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.nova.server_request import NovaRules, translate
from moorage.domain.nova_servers import FlavorSize, NovaServer
from moorage.heat import typed_yaml
from moorage.heat.deferred_values import ResourceReference, refuse_deferred
from moorage.heat.numbers import to_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.request_groups import Group
    from moorage.heat.expanded_template import Expander, Resource
    from moorage.heat.yaml_tree import YamlNode

TYPE: Final = "OS::Nova::Flavor"
_MOST: Final = 2**31 - 1


def described_size(
    node: YamlNode, nested: Expander, *, from_volume: bool = False
) -> dict[str, object]:
    """The size of a server in the words of an ensemble's `members` entry.

    Args:
        node: the value of the property for the flavor.
        nested: finds the resource to which the value refers.
        from_volume: whether the root disk is a volume.

    Raises:
        InvalidDescription: the flavor comes only later, or the template's flavor is not valid.
    """
    if isinstance(node.value, ResourceReference):
        found = nested.resource_at(node.value.target)
        if found is not None and found.type == TYPE:
            return _size_of(found, from_volume=from_volume)
    refuse_deferred(node)
    return {
        "flavor": typed_yaml.text_property(node),
        **({"boot_from_volume": True} if from_volume else {}),
    }


def _size_of(flavor: Resource, *, from_volume: bool) -> dict[str, object]:
    properties = flavor.properties
    size = FlavorSize(
        vcpus=_number(flavor, "vcpus", least=1),
        memory_mb=_number(flavor, "ram", least=1),
        root_gb=_number(flavor, "disk"),
        ephemeral_gb=_number(flavor, "ephemeral"),
        swap_mb=_number(flavor, "swap"),
    )
    specs = properties.get("extra_specs")
    texts = {} if specs is None or specs.value is None else _texts(specs)
    server = NovaServer(size, texts, from_volume=from_volume)
    try:
        asked = translate(server, NovaRules(), specs_path="extra_specs")
    except InvalidDescription as error:
        raise typed_yaml.with_location(error, flavor.node if specs is None else specs) from error
    required = (*asked.required, *(frozenset({one}) for one in sorted(asked.root_required)))
    described: dict[str, object] = {
        "resources": dict(asked.resources),
        "required": [sorted(one) for one in required],
        "forbidden": sorted(asked.forbidden),
        "groups": [_group(one) for one in asked.groups],
        "group_policy": "isolate" if asked.isolate else None,
    }
    return {key: value for key, value in described.items() if value}


def _group(group: Group) -> dict[str, object]:
    described: dict[str, object] = {
        "name": group.name,
        "resources": dict(group.resources),
        "required": [sorted(one) for one in group.required],
        "forbidden": sorted(group.forbidden),
    }
    return {key: value for key, value in described.items() if value}


def _number(flavor: Resource, name: str, *, least: int = 0) -> int:
    node = flavor.properties.get(name)
    if node is None or node.value is None:
        if least:
            raise flavor.node.invalid(f"a flavor needs {name}")
        return 0
    refuse_deferred(node)
    number = to_integer(node.plain())
    if number is None or not least <= number <= _MOST:
        raise node.invalid(f"{name} is a whole number of at least {least}")
    return number


def _texts(node: YamlNode) -> Mapping[str, str]:
    found = {}
    for key, one in typed_yaml.mapping(node).items():
        refuse_deferred(one)
        found[key] = one.spelling or str(one.value)
    return found
