"""Flavors and load of a fleet file."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import uuid5

from moorage.client.fleet_file_values import integer, items, plain, several, text, texts
from moorage.domain.flavors import Flavor
from moorage.domain.fleet import DrawnLoad, Owner, PlacedLoad, SpelledOutLoad
from moorage.domain.fleet_expansion import NAMESPACE
from moorage.domain.resources import amounts
from moorage.heat import typed_yaml

if TYPE_CHECKING:
    from moorage.client.fleet_file_values import Fields
    from moorage.domain.resources import Amounts
    from moorage.heat.yaml_tree import YamlNode


def _amounts(node: YamlNode) -> Amounts:
    return amounts(plain(node))


def flavor_of(node: YamlNode) -> Flavor:
    """A flavor in Placement's terms."""
    fields = typed_yaml.mapping(node)
    name = typed_yaml.name(fields["name"])
    extra_specs = plain(fields["extra_specs"]) if "extra_specs" in fields else {}
    return Flavor(
        id=text(fields, "id") or str(uuid5(NAMESPACE, f"flavor/{name}")),
        name=name,
        resources=_amounts(fields["resources"]),
        required=tuple(
            frozenset([one] if isinstance(one, str) else one)
            for one in map(plain, items(fields, "required"))
        ),
        forbidden=texts(fields, "forbidden"),
        extra_specs=MappingProxyType(extra_specs),
    )


def load_of(node: YamlNode) -> PlacedLoad | SpelledOutLoad | DrawnLoad:
    """A load that is placed by hand, spelled out, or drawn.

    Raises:
        InvalidDescription: amounts or an owner that are said twice, or not at all.
    """
    fields = typed_yaml.mapping(node)
    if "on" in fields:
        return _placed(node, fields)
    return _spelled_out(node, fields) if "allocations" in fields else _drawn(node, fields)


def _placed(node: YamlNode, fields: Fields) -> PlacedLoad:
    if ("resources" in fields) == ("flavor" in fields):
        raise node.invalid("exactly one of these keys is needed here: resources, flavor")
    return PlacedLoad(
        name=typed_yaml.name(fields["name"]),
        hosts=several(fields["on"]),
        amounts=_amounts(fields["resources"]) if "resources" in fields else {},
        flavor=text(fields, "flavor"),
        owner=_owner(fields),
        line=node.line,
    )


def _spelled_out(node: YamlNode, fields: Fields) -> SpelledOutLoad:
    taken = typed_yaml.mapping(fields["allocations"])
    if not taken or not all(one.value for one in taken.values()):
        raise fields["allocations"].invalid("an allocation is at least one provider's amount")
    return SpelledOutLoad(
        name=typed_yaml.name(fields["name"]),
        allocations=MappingProxyType({name: _amounts(one) for name, one in taken.items()}),
        uuid=text(fields, "uuid"),
        owner=_owner(fields),
        line=node.line,
    )


def _owner(fields: Fields) -> Owner:
    given = {key: typed_yaml.name(fields[key]) for key in _OWNED if key in fields}
    if "project" in given and "project_id" in given:
        raise fields["project_id"].invalid("a project is said by its name or by its id")
    return Owner(**given)


_OWNED: Final = ("project", "project_id", "user_id", "type")


def _drawn(node: YamlNode, fields: Fields) -> DrawnLoad:
    return DrawnLoad(
        name=typed_yaml.name(fields["name"]),
        seed=integer(fields, "seed") or 0,
        mean=float(plain(fields["fill"])),
        flavors=MappingProxyType(plain(fields["flavors"])),
        uneven=MappingProxyType(plain(fields["uneven"]) if "uneven" in fields else {}),
        resource_class=text(fields, "of") or "VCPU",
        classes=texts(fields, "classes"),
        projects=integer(fields, "projects") or 20,
        line=node.line,
    )
