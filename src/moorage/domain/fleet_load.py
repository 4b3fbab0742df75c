"""The existing load of a fleet: placed by hand, or drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from moorage.domain.consumers import Consumer
from moorage.domain.errors import InvalidDescription, UnknownName
from moorage.domain.fleet import Owner
from moorage.domain.topology import DEFAULT_TREE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.flavors import Flavor
    from moorage.domain.fleet import DrawnLoad, PlacedLoad, SpelledOutLoad
    from moorage.domain.providers import ResourceProvider
    from moorage.domain.resources import Amounts
    from moorage.domain.topology import Topology

CONSUMERS: Final = UUID("0d1f9a04-8f3b-5d51-8a0e-6d5f1d0c9b77")
"""Root of the identifiers of consumers, projects and users of a fleet file's load."""

MAX_CONSUMERS: Final = 1_000_000
"""Consumers of one drawn load; more is a flavor far too small for the hosts."""

FULLEST: Final = 0.98
"""No drawn target is above this share of a host's capacity."""


@dataclass(frozen=True, slots=True)
class ForeignLoad:
    """A foreign consumer and its amounts."""

    consumer: Consumer
    allocations: Mapping[str, Amounts]
    """Provider UUID -> amounts."""


class Room:
    """The free capacity of each host while load is added."""

    def __init__(self, providers: Sequence[ResourceProvider]) -> None:
        self._providers = {provider.name: provider for provider in providers}
        self._free = {
            provider.name: {one.resource_class: one.capacity for one in provider.inventories}
            for provider in providers
        }

    def provider(self, host: str) -> ResourceProvider | None:
        """The host's root provider, or None if there is no such host."""
        return self._providers.get(host)

    def capacity(self, host: str, resource_class: str) -> int:
        """The whole capacity of a class on a host; 0 without an inventory."""
        for inventory in self._providers[host].inventories:
            if inventory.resource_class == resource_class:
                return inventory.capacity
        return 0

    def free(self, host: str, resource_class: str) -> int:
        """What is left of a class on a host."""
        return self._free[host].get(resource_class, 0)

    def refusal(self, host: str, amounts: Amounts) -> str | None:
        """Why the amounts do not fit on the host now, or None."""
        inventories = {one.resource_class: one for one in self._providers[host].inventories}
        for name, amount in amounts.items():
            if name not in inventories:
                return f"{host} has no {name}"
            broken = inventories[name].rule_broken_by(amount)
            if broken is not None:
                return f"{amount} {name} breaks {broken} on {host}"
            if amount > self._free[host][name]:
                return f"{amount} {name} does not fit on {host}, {self._free[host][name]} free"
        return None

    def take(self, host: str, amounts: Amounts) -> None:
        """Book the amounts; they must fit."""
        for name, amount in amounts.items():
            self._free[host][name] -= amount


def placed(load: PlacedLoad, room: Room, flavors: Mapping[str, Flavor]) -> Iterator[ForeignLoad]:
    """One consumer on each named host.

    Raises:
        InvalidDescription: an unknown host or flavor, or an amount that does not fit there.
    """
    path = f"load.{load.name}"
    if load.flavor is not None and load.flavor not in flavors:
        raise _unknown("flavor", load.flavor, load)
    amounts = load.amounts if load.flavor is None else flavors[load.flavor].resources
    for host in (name for names in load.hosts for name in names.expand()):
        provider = room.provider(host)
        if provider is None:
            raise _unknown("host", host, load)
        refusal = room.refusal(host, amounts)
        if refusal is not None:
            raise InvalidDescription(f"load {load.name}: {refusal}", path=path, line=load.line)
        room.take(host, amounts)
        consumer = _consumer(f"{load.name}/{host}/0", load.owner)
        yield ForeignLoad(consumer, MappingProxyType({provider.uuid: amounts}))


def spelled_out(load: SpelledOutLoad, room: Room) -> ForeignLoad:
    """One consumer with amounts of several providers.

    Raises:
        InvalidDescription: an unknown provider, or an amount that does not fit there.
    """
    allocations: dict[str, Amounts] = {}
    for name, amounts in load.allocations.items():
        provider = room.provider(name)
        if provider is None:
            raise _unknown("provider", name, load)
        refusal = room.refusal(name, amounts)
        if refusal is not None:
            raise InvalidDescription(
                f"load {load.name}: {refusal}", path=f"load.{load.name}", line=load.line
            )
        room.take(name, amounts)
        allocations[provider.uuid] = amounts
    consumer = _consumer(load.name, load.owner, load.uuid)
    return ForeignLoad(consumer, MappingProxyType(allocations))


def _unknown(kind: str, name: str, load: PlacedLoad | SpelledOutLoad | DrawnLoad) -> UnknownName:
    unknown = UnknownName(kind, name, path=f"load.{load.name}")
    unknown.line = load.line
    return unknown


def draw(
    load: DrawnLoad,
    hosts: Sequence[str],
    *,
    room: Room,
    flavors: Mapping[str, Flavor],
    topology: Topology,
) -> Iterator[ForeignLoad]:
    """Servers of drawn flavors on each host, up to the host's drawn fill.

    Raises:
        InvalidDescription: an unknown flavor or level, or an absurd number of consumers.
    """
    for name in load.flavors:
        if name not in flavors:
            unknown = UnknownName("flavor", name, path=f"load.{load.name}.flavors")
            unknown.line = load.line
            raise unknown
    drawn = 0
    for host in hosts:
        target = _target(load, host, topology)
        for one in _fill(load, host, target=target, room=room, of=flavors):
            drawn += 1
            if drawn > MAX_CONSUMERS:
                raise InvalidDescription(
                    f"load {load.name} draws more than {MAX_CONSUMERS} consumers",
                    path=f"load.{load.name}",
                    line=load.line,
                )
            yield one


def _fill(
    load: DrawnLoad, host: str, *, target: float, room: Room, of: Mapping[str, Flavor]
) -> Iterator[ForeignLoad]:
    provider = room.provider(host)
    assert provider is not None, "hosts come from the fleet itself"
    measure = load.resource_class
    whole = room.capacity(host, measure)
    for number in range(whole):
        key = f"{load.name}/{host}/{number}"
        # What the host may still take before it is as full as it should be.
        budget = room.free(host, measure) - (whole - int(whole * target))
        flavor = next(
            (
                one
                for one in _shuffled(load, key, of)
                if one.resources.get(measure, 0) <= budget
                and _meets(provider, one)
                and room.refusal(host, one.resources) is None
            ),
            None,
        )
        if flavor is None or measure not in flavor.resources:
            return
        room.take(host, flavor.resources)
        project = f"project-{int(_unit(load.seed, f'project/{key}') * load.projects)}"
        consumer = _consumer(key, Owner(project))
        yield ForeignLoad(consumer, MappingProxyType({provider.uuid: flavor.resources}))


def _meets(provider: ResourceProvider, flavor: Flavor) -> bool:
    return not flavor.forbidden & provider.traits and all(
        any_of & provider.traits for any_of in flavor.required
    )


def _shuffled(load: DrawnLoad, key: str, flavors: Mapping[str, Flavor]) -> list[Flavor]:
    """The load's flavors in a random order in which frequent ones tend to come first.

    Ordering by u ** (1 / weight), u uniform, draws without replacement in proportion to the
    weights (Efraimidis and Spirakis, 2006).
    """
    lot = {
        name: _unit(load.seed, f"{key}/{name}") ** (1 / weight)
        for name, weight in load.flavors.items()
    }
    return [flavors[name] for name in sorted(lot, key=lambda name: (-lot[name], name))]


def _target(load: DrawnLoad, host: str, topology: Topology) -> float:
    target = load.mean
    for level_name, deviation in load.uneven.items():
        try:
            level = topology.find_level(level_name, DEFAULT_TREE)
        except UnknownName as unknown:
            unknown.line = load.line
            raise
        domain = topology.domain_of(host, level) or ""
        target += deviation * (2 * _unit(load.seed, f"{level_name}/{domain}") - 1)
    return min(max(target, 0.0), FULLEST)


def _unit(seed: int, key: str) -> float:
    """A pseudo-random number in [0, 1) from seed and key alone, the same on every machine."""
    digest = blake2b(f"{seed}/{key}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def _consumer(key: str, owner: Owner, uuid: str | None = None) -> Consumer:
    project = owner.project
    return Consumer(
        uuid=uuid or str(uuid5(CONSUMERS, f"consumer/{key}")),
        project_id=owner.project_id or uuid5(CONSUMERS, f"project/{project}").hex,
        user_id=owner.user_id or uuid5(CONSUMERS, f"user/{project}").hex,
        type=owner.type,
    )
