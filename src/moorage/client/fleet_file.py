"""A fleet file: YAML text in, a `Fleet` out; errors name path and line.

The format is described for its authors in the guide, *Fleet files*. Text comes in as a string:
the caller opens the file.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypedDict
from uuid import uuid5

from moorage.domain.errors import InvalidDescription
from moorage.domain.flavors import Flavor
from moorage.domain.fleet import (
    MAX_HOSTS,
    ChildClass,
    DomainClass,
    DrawnLoad,
    Fleet,
    HostClass,
    Names,
    Order,
    PlacedLoad,
    SharingClass,
    Spread,
)
from moorage.domain.fleet_expansion import NAMESPACE
from moorage.domain.providers import Inventory
from moorage.domain.resources import CUSTOM_NAME, MAX_AMOUNT, NAME, amounts
from moorage.heat import typed_yaml
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

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


MAX_RATIO: Final = 1e6


def read_fleet(text: str) -> Fleet:
    """Read a fleet file.

    Raises:
        InvalidDescription: not YAML, an unknown key, a wrong type, a name or number out of
            bounds. What only shows when names are spelled out (duplicate hosts, parents that
            do not fit, load without room) is found by `fleet_expansion.expand`.
    """
    top = typed_yaml.mapping(
        parse(text),
        required=("fleet", "hosts"),
        optional=("topology", "sharing", "flavors", "load"),
    )
    levels: dict[str, tuple[str, ...]] = {}
    domains: list[DomainClass] = []
    if "topology" in top:
        for tree, node in typed_yaml.mapping(top["topology"]).items():
            levels[tree] = _levels(tree, node)
            listed = typed_yaml.mapping(node)["domains"]
            domains += [_domain_class(tree, one) for one in typed_yaml.items(listed)]
    flavors = [_flavor(one) for one in typed_yaml.items(top["flavors"])] if "flavors" in top else []
    return Fleet(
        name=typed_yaml.text(top["fleet"]),
        hosts=tuple(_host_class(one) for one in typed_yaml.items(top["hosts"], least=1)),
        levels=MappingProxyType(levels),
        domains=tuple(domains),
        flavors=tuple(flavors),
        load=tuple(map(read_load, typed_yaml.items(top["load"]))) if "load" in top else (),
        sharing=tuple(map(_sharing, typed_yaml.items(top["sharing"]))) if "sharing" in top else (),
    )


def _levels(tree: str, node: YamlNode) -> tuple[str, ...]:
    top = typed_yaml.mapping(node, required=("levels", "domains"), optional=())
    levels = typed_yaml.texts(top["levels"])
    if not levels or "host" in levels:
        raise top["levels"].invalid(
            f"tree {tree} needs at least one level, and host is the lowest by itself"
        )
    return levels


def _domain_class(tree: str, node: YamlNode) -> DomainClass:
    fields = typed_yaml.mapping(
        node, required=("name", "level"), optional=("count", "first", "parent", "order")
    )
    return DomainClass(
        names=_names(node, fields),
        level=typed_yaml.text(fields["level"]),
        tree=tree,
        parents=_spread(fields["parent"], fields.get("order")) if "parent" in fields else None,
    )


def _names(node: YamlNode, fields: Mapping[str, YamlNode]) -> Names:
    names = Names(
        pattern=typed_yaml.name(fields["name"]),
        count=typed_yaml.integer(fields["count"], least=1, most=MAX_HOSTS)
        if "count" in fields
        else None,
        first=typed_yaml.integer(fields["first"], least=0, most=MAX_AMOUNT)
        if "first" in fields
        else 1,
        line=node.line,
    )
    _checked(names, fields["name"])
    return names


def _checked(names: Names, node: YamlNode) -> None:
    try:
        names.expand()
    except InvalidDescription as error:
        raise node.invalid(error.message) from error


def _spread(node: YamlNode, order: YamlNode | None) -> Spread:
    """A name, a list of names, or `{name, count, first}`; `order` is block or turn."""
    several = typed_yaml.items(node, least=1) if isinstance(node.value, list) else [node]
    names = tuple(_some_names(one) for one in several)
    chosen = Order.BLOCK if order is None else Order(typed_yaml.choice(order, set(Order)))
    return Spread(names, chosen)


def _some_names(node: YamlNode) -> Names:
    if isinstance(node.value, dict):
        fields = typed_yaml.mapping(node, required=("name", "count"), optional=("first",))
        return _names(node, fields)
    names = Names(typed_yaml.name(node), line=node.line)
    _checked(names, node)
    return names


def _host_class(node: YamlNode) -> HostClass:
    fields = typed_yaml.mapping(
        node,
        required=("name", "inventories"),
        optional=("class", "count", "first", "traits", "aggregates", "place", "children"),
    )
    names = _names(node, fields)
    places = typed_yaml.mapping(fields["place"]) if "place" in fields else {}
    return HostClass(
        name=typed_yaml.name(fields["class"]) if "class" in fields else names.pattern,
        names=names,
        **_stock(fields),
        places=MappingProxyType({tree: _place(one) for tree, one in places.items()}),
        children=_children(fields),
    )


class _Stock(TypedDict):
    inventories: tuple[Inventory, ...]
    traits: frozenset[str]
    aggregates: frozenset[str]


def _stock(fields: Mapping[str, YamlNode]) -> _Stock:
    """The inventories, traits and aggregates of a provider of any kind."""
    listed = typed_yaml.mapping(fields["inventories"]) if "inventories" in fields else {}
    return {
        "inventories": tuple(_inventory(name, one) for name, one in listed.items()),
        "traits": _traits(fields["traits"]) if "traits" in fields else frozenset(),
        "aggregates": frozenset(typed_yaml.texts(fields["aggregates"]))
        if "aggregates" in fields
        else frozenset(),
    }


def _children(fields: Mapping[str, YamlNode]) -> tuple[ChildClass, ...]:
    return tuple(map(_child, typed_yaml.items(fields["children"]))) if "children" in fields else ()


def _child(node: YamlNode) -> ChildClass:
    fields = typed_yaml.mapping(
        node,
        required=("name",),
        optional=("count", "first", "inventories", "traits", "aggregates", "children"),
    )
    return ChildClass(names=_names(node, fields), **_stock(fields), children=_children(fields))


def _sharing(node: YamlNode) -> SharingClass:
    fields = typed_yaml.mapping(
        node,
        required=("name", "inventories", "aggregates"),
        optional=("count", "first", "traits"),
    )
    return SharingClass(names=_names(node, fields), **_stock(fields))


def _place(node: YamlNode) -> Spread:
    if isinstance(node.value, dict) and "in" in node.value:
        fields = typed_yaml.mapping(node, required=("in",), optional=("order",))
        return _spread(fields["in"], fields.get("order"))
    return _spread(node, None)


def _inventory(name: str, node: YamlNode) -> Inventory:
    if NAME.fullmatch(name) is None:
        raise node.invalid(f"not a resource class name: {name!r}")
    if not isinstance(node.value, dict):
        return Inventory(name, _amount(node))
    fields = typed_yaml.mapping(
        node,
        required=("total",),
        optional=("reserved", "allocation_ratio", "min_unit", "max_unit", "step_size"),
    )
    total = _amount(fields["total"])
    numbers = {key: _amount(fields[key]) for key in fields if key in _UNITS}
    inventory = Inventory(
        name,
        total,
        reserved=typed_yaml.integer(fields["reserved"], least=0, most=total)
        if "reserved" in fields
        else 0,
        allocation_ratio=typed_yaml.number(fields["allocation_ratio"], least=1e-6, most=MAX_RATIO)
        if "allocation_ratio" in fields
        else 1.0,
        **numbers,
    )
    if inventory.min_unit > inventory.max_unit:
        raise node.invalid("min_unit is larger than max_unit")
    return inventory


_UNITS: Final = frozenset({"min_unit", "max_unit", "step_size"})


def _amount(node: YamlNode) -> int:
    return typed_yaml.integer(node, least=1, most=MAX_AMOUNT)


def _traits(node: YamlNode) -> frozenset[str]:
    for one in typed_yaml.items(node):
        if NAME.fullmatch(typed_yaml.text(one)) is None:
            raise one.invalid(f"not a trait name: {one.value!r}; CUSTOM_{CUSTOM_NAME.pattern}")
    return frozenset(typed_yaml.texts(node))


def _flavor(node: YamlNode) -> Flavor:
    fields = typed_yaml.mapping(
        node, required=("name", "resources"), optional=("id", "required", "forbidden")
    )
    name = typed_yaml.name(fields["name"])
    sizes = {
        resource_class: _amount(one)
        for resource_class, one in typed_yaml.mapping(fields["resources"]).items()
    }
    try:
        resources = amounts(sizes)
    except InvalidDescription as error:
        raise typed_yaml.with_location(error, fields["resources"]) from error
    return Flavor(
        id=typed_yaml.name(fields["id"])
        if "id" in fields
        else str(uuid5(NAMESPACE, f"flavor/{name}")),
        name=name,
        resources=resources,
        required=_required(fields["required"]) if "required" in fields else (),
        forbidden=_traits(fields["forbidden"]) if "forbidden" in fields else frozenset(),
    )


def _required(node: YamlNode) -> tuple[frozenset[str], ...]:
    """Traits that are all needed; a nested list means any one of it."""
    return tuple(
        _traits(one) if isinstance(one.value, list) else frozenset({typed_yaml.text(one)})
        for one in typed_yaml.items(node)
    )
