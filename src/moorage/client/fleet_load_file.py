"""The `load` section of a fleet file: load placed by hand, or drawn from a seed."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.fleet import MAX_HOSTS, DrawnLoad, Names, PlacedLoad
from moorage.domain.resources import MAX_AMOUNT, amounts
from moorage.heat import typed_yaml

if TYPE_CHECKING:
    from moorage.heat.yaml_tree import YamlNode

MAX_SEED: Final = 2**63 - 1
MAX_WEIGHT: Final = 1_000_000


def read_load(node: YamlNode) -> PlacedLoad | DrawnLoad:
    """Read one entry: with `on` it is placed by hand, with `seed` it is drawn.

    Raises:
        InvalidDescription: neither or both, or a field that cannot be read.
    """
    fields = typed_yaml.mapping(node)
    if ("on" in fields) == ("seed" in fields):
        raise node.invalid("a load needs either on (placed by hand) or seed (drawn)")
    return _placed(node) if "on" in fields else _drawn(node)


def _placed(node: YamlNode) -> PlacedLoad:
    fields = typed_yaml.mapping(node, required=("name", "on", "resources"), optional=("project",))
    hosts = fields["on"]
    listed = typed_yaml.items(hosts, least=1) if isinstance(hosts.value, list) else [hosts]
    sizes = {
        name: typed_yaml.integer(one, least=1, most=MAX_AMOUNT)
        for name, one in typed_yaml.mapping(fields["resources"]).items()
    }
    try:
        resources = amounts(sizes)
    except InvalidDescription as error:
        raise typed_yaml.with_location(error, fields["resources"]) from error
    return PlacedLoad(
        name=typed_yaml.name(fields["name"]),
        hosts=tuple(map(_hosts, listed)),
        amounts=resources,
        project=typed_yaml.name(fields["project"]) if "project" in fields else "neighbour",
        line=node.line,
    )


def _hosts(node: YamlNode) -> Names:
    if isinstance(node.value, dict):
        fields = typed_yaml.mapping(node, required=("name", "count"), optional=("first",))
        names = Names(
            typed_yaml.text(fields["name"]),
            typed_yaml.integer(fields["count"], least=1, most=MAX_HOSTS),
            typed_yaml.integer(fields["first"], least=0, most=MAX_AMOUNT)
            if "first" in fields
            else 1,
            node.line,
        )
    else:
        names = Names(typed_yaml.name(node), line=node.line)
    try:
        names.expand()
    except InvalidDescription as error:
        raise node.invalid(error.message) from error
    return names


def _drawn(node: YamlNode) -> DrawnLoad:
    fields = typed_yaml.mapping(
        node,
        required=("name", "seed", "fill", "flavors"),
        optional=("uneven", "of", "classes", "projects"),
    )
    uneven = typed_yaml.mapping(fields["uneven"]) if "uneven" in fields else {}
    return DrawnLoad(
        name=typed_yaml.name(fields["name"]),
        seed=typed_yaml.integer(fields["seed"], least=0, most=MAX_SEED),
        mean=typed_yaml.number(fields["fill"], least=0, most=1),
        flavors=MappingProxyType(
            {
                name: typed_yaml.integer(one, least=1, most=MAX_WEIGHT)
                for name, one in typed_yaml.mapping(fields["flavors"]).items()
            }
        ),
        uneven=MappingProxyType(
            {level: typed_yaml.number(one, least=0, most=1) for level, one in uneven.items()}
        ),
        resource_class=typed_yaml.text(fields["of"]) if "of" in fields else "VCPU",
        classes=frozenset(typed_yaml.texts(fields["classes"]))
        if "classes" in fields
        else frozenset(),
        projects=typed_yaml.integer(fields["projects"], least=1, most=MAX_HOSTS)
        if "projects" in fields
        else 20,
        line=node.line,
    )
