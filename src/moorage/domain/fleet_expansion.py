"""Expands a fleet into providers, topology, flavors and foreign allocations.

Pure and repeatable: a provider's UUID follows from its name, a consumer's from its load's
name and host, and draws are hashes of seed and names. Loading the same file twice therefore
means the same things. What the file says to be in a ledger already has its identifiers from there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from moorage.domain.errors import InvalidDescription, UnknownName
from moorage.domain.fleet import MAX_HOSTS, DrawnLoad, PlacedLoad, SpelledOutLoad
from moorage.domain.fleet_load import Room, draw, placed, spelled_out
from moorage.domain.fleet_places import rules_of
from moorage.domain.providers import MAX_NAME, ResourceProvider
from moorage.domain.topology_rules import HostFacts, apply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.flavors import Flavor
    from moorage.domain.fleet import ChildClass, Fleet, HostClass, KnownHosts, SharingClass
    from moorage.domain.fleet_load import ForeignLoad
    from moorage.domain.topology import Topology

NAMESPACE: Final = UUID("6f5b7d5e-3c1a-5e0f-9a58-0d5c8a1f7e42")
"""Root of every identifier that follows from a name in a fleet file."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)

SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"
"""The trait by which Placement knows a sharing provider."""


def provider_uuid(name: str) -> str:
    """The UUID of the provider of that name in a fleet file."""
    return str(uuid5(NAMESPACE, f"provider/{name}"))


def aggregate_uuid(name: str) -> str:
    """The UUID of the aggregate of that name; a UUID stands for itself."""
    return name if _UUID.fullmatch(name) else str(uuid5(NAMESPACE, f"aggregate/{name}"))


def spelled_out_children(
    classes: Sequence[ChildClass], parent: ResourceProvider
) -> Iterator[ResourceProvider]:
    """All providers below a provider, parents first.

    Raises:
        InvalidDescription: two children of one name, or a name that is too long.
    """
    seen: set[str] = set()
    for some in classes:
        aggregates = frozenset(map(aggregate_uuid, some.aggregates))
        for own in some.names.expand():
            name = own if some.uuid else f"{parent.name}/{own}"
            if own in seen or len(name) > MAX_NAME:
                why = "is declared twice" if own in seen else f"is longer than {MAX_NAME}"
                raise InvalidDescription(
                    f"provider {name} {why}", path="hosts.children", line=some.names.line
                )
            seen.add(own)
            child = ResourceProvider(
                uuid=some.uuid or provider_uuid(name),
                name=name,
                parent_uuid=parent.uuid,
                root_uuid=parent.root_uuid,
                inventories=some.inventories,
                traits=some.traits,
                aggregates=aggregates,
            )
            yield child
            yield from spelled_out_children(some.children, child)


def spelled_out_sharing(
    classes: Sequence[SharingClass], taken: set[str]
) -> Iterator[ResourceProvider]:
    """The sharing providers; `taken` are names of others.

    Raises:
        InvalidDescription: a name that is declared twice.
    """
    for some in classes:
        aggregates = frozenset(map(aggregate_uuid, some.aggregates))
        for name in some.names.expand():
            if name in taken:
                raise InvalidDescription(
                    f"provider {name} is declared twice", path="sharing", line=some.names.line
                )
            taken.add(name)
            uuid = some.uuid or provider_uuid(name)
            yield ResourceProvider(
                uuid=uuid,
                name=name,
                parent_uuid=None,
                root_uuid=uuid,
                inventories=some.inventories,
                traits=some.traits | {SHARES},
                aggregates=aggregates,
            )


@dataclass(frozen=True, slots=True)
class ExpandedFleet:
    """An expanded fleet, ready to be written to a ledger."""

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
    """Expand a fleet.

    Raises:
        InvalidDescription: a host or domain declared twice, a bad name or count, a tree whose
            parents do not fit, load on unknown hosts or beyond their capacity; with the line
            where the file said so.
    """
    hosts, providers = _hosts(fleet)
    # What many take from comes first: a load is loaded with the last of its providers.
    sharing = list(spelled_out_sharing(fleet.sharing, {one.name for one in providers}))
    providers = [*sharing, *providers]
    _refuse_repeated(providers)
    topology = apply(rules_of(fleet), _facts(fleet, providers[len(sharing) :]))
    load = _load(fleet, hosts, Room(tuple(providers)), topology)
    described: list[HostClass | SharingClass] = [*fleet.hosts, *fleet.sharing]
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
                some.uuid or provider_uuid(name): some.names.line
                for some in described
                for name in some.names.expand()
                if some.names.line is not None
            }
        ),
    )


def _load(fleet: Fleet, hosts: _ByClass, room: Room, topology: Topology) -> list[ForeignLoad]:
    flavors: dict[str, Flavor] = {}
    for flavor in fleet.flavors:
        if flavor.name in flavors:
            raise InvalidDescription(f"flavor {flavor.name} is declared twice", path="flavors")
        flavors[flavor.name] = flavor
    found: dict[str, ForeignLoad] = {}
    for some in fleet.load:
        match some:
            case PlacedLoad():
                made = placed(some, room, flavors)
            case SpelledOutLoad():
                made = iter((spelled_out(some, room),))
            case _:
                chosen = _of_classes(some, hosts)
                made = draw(some, chosen, room=room, flavors=flavors, topology=topology)
        for one in made:
            if found.setdefault(one.consumer.uuid, one) is not one:
                raise InvalidDescription(
                    f"load {some.name}: its consumers are declared twice",
                    path=f"load.{some.name}",
                    line=some.line,
                )
    return list(found.values())


def _refuse_repeated(providers: Sequence[ResourceProvider]) -> None:
    """Refuse two providers of one name or UUID."""
    uuids: dict[str, str] = {}
    names: set[str] = set()
    for one in providers:
        if (other := uuids.setdefault(one.uuid, one.name)) != one.name:
            raise InvalidDescription(f"{other} and {one.name} have the same UUID", path="hosts")
        if one.name in names:
            raise InvalidDescription(f"provider {one.name} is declared twice", path="hosts")
        names.add(one.name)


def _facts(fleet: Fleet, hosts: Sequence[ResourceProvider]) -> Iterator[HostFacts]:
    """What rules may match: of a host that is only known, or a pool with a place, its name."""
    for one in hosts:
        if one.parent_uuid is None:
            yield HostFacts(one.name, one.traits, one.aggregates)
    named: list[KnownHosts | SharingClass] = [*fleet.known]
    named += (one for one in fleet.sharing if one.places)
    for some in named:
        for name in some.names.expand():
            yield HostFacts(name)


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
            uuid = host_class.uuid or provider_uuid(name)
            host = ResourceProvider(
                uuid=uuid,
                name=name,
                parent_uuid=None,
                root_uuid=uuid,
                inventories=host_class.inventories,
                traits=host_class.traits,
                aggregates=aggregates,
            )
            for one in chain((host,), spelled_out_children(host_class.children, host)):
                providers.append(one)
                if len(providers) > MAX_HOSTS:
                    # Counts of children multiply, so nothing is spelled out beyond this.
                    raise InvalidDescription(
                        f"more than {MAX_HOSTS} providers", path="hosts", line=host_class.names.line
                    )
    return classes, providers


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
