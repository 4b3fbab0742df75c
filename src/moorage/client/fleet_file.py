"""A fleet file: YAML text in, a `Fleet` out; errors name path and line.

There is one format for fleets, topologies and rules; commands take the sections that they need. It
is described for its authors in the guide, *Fleet files*, and as a schema in `fleet_schema`, which
is checked first: here only the values are built, and checked for what a schema cannot say.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypedDict

from moorage.client.fleet_file_load import flavor_of, load_of
from moorage.client.fleet_file_rules import rule_of
from moorage.client.fleet_file_values import integer, items, names_of, plain, spread, text, texts
from moorage.client.fleet_schema import SCHEMA
from moorage.client.schema_check import check
from moorage.domain.errors import InvalidDescription
from moorage.domain.fleet import ChildClass, DomainClass, Fleet, HostClass, KnownHosts, SharingClass
from moorage.domain.fleet_places import rules_of
from moorage.domain.providers import Inventory
from moorage.domain.topology import OWN_LEVELS
from moorage.heat import typed_yaml
from moorage.heat.yaml_tree import YamlLimits, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.fleet_file_values import Fields
    from moorage.domain.fleet import Spread
    from moorage.domain.topology_rules import TopologyRules
    from moorage.heat.yaml_tree import YamlNode

LIMITS: Final = YamlLimits(text=40_000_000, nodes=2_000_000)
"""Of a file that an operator's own command reads: a cloud of ten thousand hosts with its load."""

_BEFORE: Final = {
    "levels": "write topology: {TREE: {levels: [...]}}",
    "domains": "write topology: {TREE: {levels: [...], domains: [...]}}",
    "attachments": "write hosts: [{name: HOST, place: {TREE: DOMAIN}}]",
}
"""Sections that the format had once."""


def read_fleet(text: str, *, name: str = "fleet") -> Fleet:
    """Read a fleet file; `name` is the fleet's, unless the file has one.

    Raises:
        InvalidDescription: not YAML, an unknown key, a wrong type, a name or number out of
            bounds. What only shows when names are spelled out (duplicate hosts, parents that
            do not fit, load without room) is found by `fleet_expansion.expand`.
    """
    top = parse(text, limits=LIMITS)
    _refuse_former(top)
    check(top, SCHEMA, SCHEMA)
    fields = typed_yaml.mapping(top)
    trees = typed_yaml.mapping(fields["topology"]) if "topology" in fields else {}
    levels = {tree: _levels(typed_yaml.mapping(node)["levels"]) for tree, node in trees.items()}
    domains = (
        _domain_class(tree, one)
        for tree, node in trees.items()
        for one in items(typed_yaml.mapping(node), "domains")
    )
    hosts = items(fields, "hosts")
    return Fleet(
        name=typed_yaml.name(fields["fleet"]) if "fleet" in fields else name,
        hosts=tuple(_host_class(one) for one in hosts if _is_described(one)),
        known=tuple(_known(one) for one in hosts if not _is_described(one)),
        levels=MappingProxyType(levels),
        domains=tuple(domains),
        flavors=tuple(map(flavor_of, items(fields, "flavors"))),
        load=tuple(map(load_of, items(fields, "load"))),
        sharing=tuple(map(_sharing, items(fields, "sharing"))),
        rules=tuple(rule_of(one, levels) for one in items(fields, "rules")),
        complete="unplaced" in fields and typed_yaml.text(fields["unplaced"]) == "refuse",
        revision=integer(fields, "revision"),
    )


def read_places(text: str) -> TopologyRules:
    """Read of a fleet file what places hosts: its topology, the places of hosts, and its rules.

    Raises:
        InvalidDescription: as `read_fleet`; or the file has no topology.
    """
    return rules_of(with_topology(read_fleet(text)))


def with_topology(fleet: Fleet) -> Fleet:
    """The same fleet, of which places are wanted.

    Raises:
        InvalidDescription: it has no topology.
    """
    if not fleet.levels:
        raise InvalidDescription("there is no section 'topology', so nothing to place hosts in")
    return fleet


def _refuse_former(top: YamlNode) -> None:
    """Say of the sections of before how they are written now, also below `topology`."""
    fields = typed_yaml.mapping(top)
    within = fields.get("topology")
    below = within.value if within is not None and isinstance(within.value, dict) else {}
    for key, node in (*fields.items(), *below.items()):
        as_before = key in fields or not isinstance(node.value, dict) or "levels" not in node.value
        if key in _BEFORE and as_before:
            raise node.invalid(
                f"there is no section {key!r}: {_BEFORE[key]}"
                " (moorage fleet export --topology writes it)"
            )


# --- topology -------------------------------------------------------------------------------


def _levels(node: YamlNode) -> tuple[str, ...]:
    levels = typed_yaml.texts(node)
    if taken := sorted(OWN_LEVELS.intersection(levels)):
        raise node.invalid(f"{taken[0]} is a level of every tree by itself; leave it out")
    return levels


def _domain_class(tree: str, node: YamlNode) -> DomainClass:
    fields = typed_yaml.mapping(node)
    if "order" in fields and "parent" not in fields:
        raise fields["order"].invalid("'order' needs the key 'parent' beside it")
    return DomainClass(
        names=names_of(node),
        level=typed_yaml.text(fields["level"]),
        tree=tree,
        parents=spread(fields["parent"], fields.get("order")) if "parent" in fields else None,
    )


def _place(node: YamlNode) -> Spread:
    if isinstance(node.value, dict) and "in" in node.value:
        return spread(node.value["in"], node.value.get("order"))
    return spread(node, None)


def _places(fields: Fields) -> Mapping[str, Spread]:
    places = typed_yaml.mapping(fields["place"]) if "place" in fields else {}
    return MappingProxyType({tree: _place(one) for tree, one in places.items()})


# --- providers ------------------------------------------------------------------------------


def _is_described(host: YamlNode) -> bool:
    return "inventories" in typed_yaml.mapping(host)


def _known(node: YamlNode) -> KnownHosts:
    return KnownHosts(names_of(node), _places(typed_yaml.mapping(node)))


def _host_class(node: YamlNode) -> HostClass:
    fields = typed_yaml.mapping(node)
    names = names_of(node, made=True)
    return HostClass(
        name=text(fields, "class") or names.pattern,
        names=names,
        **_stock(fields),
        places=_places(fields),
        children=_children(fields),
        uuid=text(fields, "uuid"),
    )


class _Stock(TypedDict):
    inventories: tuple[Inventory, ...]
    traits: frozenset[str]
    aggregates: frozenset[str]


def _stock(fields: Fields) -> _Stock:
    """The inventories, traits and aggregates of a provider of any kind."""
    listed = typed_yaml.mapping(fields["inventories"]) if "inventories" in fields else {}
    return {
        "inventories": tuple(_inventory(name, one) for name, one in listed.items()),
        "traits": texts(fields, "traits"),
        "aggregates": texts(fields, "aggregates"),
    }


def _children(fields: Fields) -> tuple[ChildClass, ...]:
    return tuple(map(_child, items(fields, "children")))


def _child(node: YamlNode) -> ChildClass:
    fields = typed_yaml.mapping(node)
    return ChildClass(
        names=names_of(node, made=True),
        **_stock(fields),
        children=_children(fields),
        uuid=text(fields, "uuid"),
    )


def _sharing(node: YamlNode) -> SharingClass:
    fields = typed_yaml.mapping(node)
    return SharingClass(
        names=names_of(node, made=True),
        **_stock(fields),
        places=_places(fields),
        uuid=text(fields, "uuid"),
    )


def _inventory(name: str, node: YamlNode) -> Inventory:
    terms = plain(node)
    inventory = Inventory(name, **(terms if isinstance(terms, dict) else {"total": terms}))
    if inventory.reserved > inventory.total:
        raise typed_yaml.mapping(node)["reserved"].invalid(
            f"must be at most the total, {inventory.total}"
        )
    if inventory.min_unit > inventory.max_unit:
        raise node.invalid("min_unit is larger than max_unit")
    return inventory
