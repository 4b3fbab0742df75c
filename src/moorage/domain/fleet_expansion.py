"""Expands a fleet into providers, topology, flavors and foreign allocations.

Pure and repeatable: a provider's UUID follows from its name, a consumer's from its load's
name and host, and draws are hashes of seed and names. Loading the same file twice therefore
means the same things.

Large fleets are cut into parts; each is one request and one transaction, and leaves a sound ledger.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from moorage.domain.errors import InvalidDescription, UnknownName
from moorage.domain.fleet import MAX_HOSTS, DrawnLoad, PlacedLoad
from moorage.domain.fleet_load import Room, draw, placed
from moorage.domain.providers import MAX_NAME, ResourceProvider
from moorage.domain.topology import Attachment, Domain, Topology

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.flavors import Flavor
    from moorage.domain.fleet import ChildClass, DomainClass, Fleet, HostClass, SharingClass
    from moorage.domain.fleet_load import ForeignLoad


HOSTS_PER_PART: Final = 250
"""Keeps a part's transaction well under a second and its body under a few megabytes."""


@dataclass(frozen=True, slots=True)
class FleetPart:
    """Some hosts with their load; flavors and topology in the part where the order needs them.

    Flavors come with the first part, the topology with the last: it names hosts, which must
    be there.
    """

    providers: tuple[ResourceProvider, ...] = ()
    load: tuple[ForeignLoad, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    topology: Topology | None = None
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Provider -> line of the file that describes it, where there is a file."""


def parts(fleet: ExpandedFleet, hosts_per_part: int = HOSTS_PER_PART) -> Iterator[FleetPart]:
    """Cut a fleet into parts of about that many providers; there is always at least one.

    A fleet without trees says nothing of where hosts stand, so its parts have no topology.
    """
    topology = fleet.topology if fleet.topology.levels else None
    on_host: dict[str, list[ForeignLoad]] = {}
    for load in fleet.load:
        for provider in load.allocations:
            on_host.setdefault(provider, []).append(load)
    pieces = list(_whole_trees(fleet.providers, hosts_per_part)) or [()]
    for number, providers in enumerate(pieces):
        yield FleetPart(
            providers=providers,
            load=tuple(load for one in providers for load in on_host.get(one.uuid, ())),
            flavors=fleet.flavors if number == 0 else (),
            topology=topology if number + 1 == len(pieces) else None,
            lines={
                uuid: fleet.lines[uuid]
                for one in providers
                for uuid in (one.uuid, one.root_uuid)
                if uuid in fleet.lines
            },
        )


def _whole_trees(
    providers: Sequence[ResourceProvider], most: int
) -> Iterator[tuple[ResourceProvider, ...]]:
    """Runs of at most so many providers; a larger tree is a run by itself."""
    piece: list[ResourceProvider] = []
    for _, tree in groupby(providers, key=lambda one: one.root_uuid):
        some = list(tree)
        if piece and len(piece) + len(some) > most:
            yield tuple(piece)
            piece = []
        piece += some
    if piece:
        yield tuple(piece)


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
        InvalidDescription: two children of one name, or a name that is too long or too many.
    """
    seen: set[str] = set()
    count = 0
    for some in classes:
        aggregates = frozenset(map(aggregate_uuid, some.aggregates))
        for own in some.names.expand():
            name = f"{parent.name}/{own}"
            if own in seen or len(name) > MAX_NAME:
                why = "is declared twice" if own in seen else f"is longer than {MAX_NAME}"
                raise InvalidDescription(
                    f"provider {name} {why}", path="hosts.children", line=some.names.line
                )
            seen.add(own)
            child = ResourceProvider(
                uuid=provider_uuid(name),
                name=name,
                parent_uuid=parent.uuid,
                root_uuid=parent.root_uuid,
                inventories=some.inventories,
                traits=some.traits,
                aggregates=aggregates,
            )
            yield child
            count += 1
            if count > MAX_HOSTS:
                raise InvalidDescription(
                    f"more than {MAX_HOSTS} providers below {parent.name}",
                    path="hosts.children",
                    line=some.names.line,
                )
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
            uuid = provider_uuid(name)
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
