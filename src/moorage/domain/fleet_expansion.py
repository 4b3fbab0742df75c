"""Spell a fleet out: providers, topology, flavors and foreign allocations.

Pure and repeatable: a provider's UUID follows from its name, a consumer's from its load's
name and host, and draws are hashes of seed and names. Loading the same file twice therefore
means the same things.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.errors import InvalidDescription, UnknownName
from moorage.domain.fleet import MAX_HOSTS, DrawnLoad, PlacedLoad
from moorage.domain.fleet_load import Room, draw, placed
from moorage.domain.fleet_trees import (
    aggregate_uuid,
    provider_uuid,
    spelled_out_children,
    spelled_out_sharing,
)
from moorage.domain.providers import ResourceProvider
from moorage.domain.topology import Attachment, Domain, Topology

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.flavors import Flavor
    from moorage.domain.fleet import DomainClass, Fleet, HostClass
    from moorage.domain.fleet_load import ForeignLoad


@dataclass(frozen=True, slots=True)
class ExpandedFleet:
    """Everything a fleet means, ready to be written to a ledger."""

    name: str
    providers: tuple[ResourceProvider, ...]
    topology: Topology
    flavors: tuple[Flavor, ...]
    load: tuple[ForeignLoad, ...]
    class_of: Mapping[str, str]
    """Host name -> name of its host class."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Provider -> line where the file describes its host class."""


def expand(fleet: Fleet) -> ExpandedFleet:
    """Spell a fleet out.

    Raises:
        InvalidDescription: a host or domain declared twice, a bad name or count, a tree whose
            parents do not fit, load on unknown hosts or beyond their capacity; with the line
            where the file said so.
    """
    hosts, providers = _hosts(fleet)
    providers += spelled_out_sharing(fleet.sharing, {one.name for one in providers})
    topology = Topology.build(fleet.levels, _domains(fleet), _attachments(fleet, hosts))
    flavors = {flavor.name: flavor for flavor in fleet.flavors}
    if len(flavors) < len(fleet.flavors):
        raise InvalidDescription("a flavor is declared twice", path="flavors")
    room = Room(tuple(providers))
    load: list[ForeignLoad] = []
    for some in fleet.load:
        match some:
            case PlacedLoad():
                load += placed(some, room)
            case DrawnLoad():
                chosen = _of_classes(some, hosts)
                load += draw(some, chosen, room=room, flavors=flavors, topology=topology)
    return ExpandedFleet(
        name=fleet.name,
        providers=tuple(providers),
        topology=topology,
        flavors=fleet.flavors,
        load=tuple(load),
        class_of=MappingProxyType(
            {name: host_class.name for host_class, names in hosts for name in names}
        ),
        lines=MappingProxyType(
            {
                provider_uuid(name): host_class.names.line
                for host_class, names in hosts
                for name in names
                if host_class.names.line is not None
            }
            | {
                provider_uuid(name): some.names.line
                for some in fleet.sharing
                for name in some.names.expand()
                if some.names.line is not None
            }
        ),
    )


_ByClass = list[tuple["HostClass", tuple[str, ...]]]


def _hosts(fleet: Fleet) -> tuple[_ByClass, list[ResourceProvider]]:
    classes: _ByClass = []
    providers: list[ResourceProvider] = []
    seen: set[str] = set()
    for host_class in fleet.hosts:
        names = host_class.names.expand()
        classes.append((host_class, names))
        aggregates = frozenset(map(aggregate_uuid, host_class.aggregates))
        for name in names:
            if name in seen:
                raise InvalidDescription(
                    f"host {name} is declared twice", path="hosts", line=host_class.names.line
                )
            seen.add(name)
            uuid = provider_uuid(name)
            host = ResourceProvider(
                uuid=uuid,
                name=name,
                parent_uuid=None,
                root_uuid=uuid,
                inventories=host_class.inventories,
                traits=host_class.traits,
                aggregates=aggregates,
            )
            providers += (host, *spelled_out_children(host_class.children, host))
        if len(providers) > MAX_HOSTS:
            raise InvalidDescription(
                f"more than {MAX_HOSTS} hosts", path="hosts", line=host_class.names.line
            )
    return classes, providers


def _domains(fleet: Fleet) -> Iterator[Domain]:
    for some in fleet.domains:
        names = some.names.expand()
        parents = _parents(some, len(names))
        for name, parent in zip(names, parents, strict=True):
            yield Domain(name, some.level, some.tree, parent, some.names.line)


def _parents(some: DomainClass, count: int) -> tuple[str | None, ...]:
    return (None,) * count if some.parents is None else some.parents.over(count)


def _attachments(fleet: Fleet, hosts: _ByClass) -> Iterator[Attachment]:
    for host_class, names in hosts:
        for tree, spread in host_class.places.items():
            if tree not in fleet.levels:
                raise InvalidDescription(
                    f"hosts {host_class.names.pattern} stand in unknown tree {tree}",
                    path="hosts.place",
                    line=host_class.names.line,
                )
            for name, domain in zip(names, spread.over(len(names)), strict=True):
                yield Attachment(name, domain, tree, host_class.names.line)


def _of_classes(load: DrawnLoad, hosts: _ByClass) -> list[str]:
    known = {host_class.name for host_class, _ in hosts}
    for name in sorted(load.classes - known):
        unknown = UnknownName("host class", name, path=f"load.{load.name}.classes")
        unknown.line = load.line
        raise unknown
    return [
        name
        for host_class, names in hosts
        if not load.classes or host_class.name in load.classes
        for name in names
    ]
