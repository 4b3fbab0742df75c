"""Placement at its newest version, as plain as can be: dictionaries, and rules as one says them.

Written from the API's description, not from our code, so that the two can be held against each
other. A request that is refused raises `Refused` and has changed nothing.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

Inventory = dict[str, Any]
Amounts = dict[str, int]

DEFAULTS: Inventory = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 2**31 - 1,
    "step_size": 1,
    "allocation_ratio": 1.0,
}


class Refused(Exception):
    """With the status of the answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class Provider:
    name: str
    parent: str | None
    generation: int = 0
    inventories: dict[str, Inventory] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)


@dataclass
class Consumer:
    generation: int
    project: str
    type: str
    allocations: dict[str, Amounts]


class Model:
    """The whole state, and what each request does to it."""

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self.consumers: dict[str, Consumer] = {}

    # --- providers --------------------------------------------------------------------------

    def create(self, uuid: str, name: str, parent: str | None) -> None:
        if parent == uuid or (parent is not None and parent not in self.providers):
            raise Refused(400)
        if uuid in self.providers or name in {one.name for one in self.providers.values()}:
            raise Refused(409)
        self.providers[uuid] = Provider(name, parent)

    def provider(self, uuid: str) -> Provider:
        if uuid not in self.providers:
            raise Refused(404)
        return self.providers[uuid]

    def move(self, uuid: str, parent: str | None) -> None:
        provider = self.provider(uuid)
        if parent is not None and parent not in self.providers:
            raise Refused(400)
        if parent is not None and uuid in self.line(parent):
            raise Refused(400)
        provider.parent = parent

    def line(self, uuid: str) -> list[str]:
        """A provider and all above it."""
        parent = self.providers[uuid].parent
        return [uuid] if parent is None else [uuid, *self.line(parent)]

    def delete(self, uuid: str) -> None:
        self.provider(uuid)
        if any(one.parent == uuid for one in self.providers.values()):
            raise Refused(409)
        if any(uuid in one.allocations for one in self.consumers.values()):
            raise Refused(409)
        del self.providers[uuid]

    def _at_generation(self, uuid: str, generation: int) -> Provider:
        provider = self.provider(uuid)
        if provider.generation != generation:
            raise Refused(409)
        return provider

    def put_inventories(
        self, uuid: str, generation: int, inventories: dict[str, Inventory]
    ) -> None:
        provider = self._at_generation(uuid, generation)
        whole = {name: DEFAULTS | one for name, one in inventories.items()}
        if any(capacity(one) < 0 for one in whole.values()):
            raise Refused(400)
        if any(self.used(uuid, name) for name in provider.inventories.keys() - whole.keys()):
            raise Refused(409)
        provider.inventories = whole
        provider.generation += 1

    def put_traits(self, uuid: str, generation: int, traits: set[str]) -> None:
        provider = self._at_generation(uuid, generation)
        provider.generation += provider.traits != traits
        provider.traits = traits

    def put_aggregates(self, uuid: str, generation: int, aggregates: set[str]) -> None:
        provider = self._at_generation(uuid, generation)
        provider.generation += 1
        provider.aggregates = aggregates

    # --- allocations ------------------------------------------------------------------------

    def used(self, uuid: str, resource_class: str) -> int:
        return sum(
            one.allocations.get(uuid, {}).get(resource_class, 0) for one in self.consumers.values()
        )

    def write(self, wanted: dict[str, tuple[int | None, str, str, dict[str, Amounts]]]) -> None:
        """New allocations of some consumers: all of them, or none."""
        before = copy.deepcopy(self.__dict__)
        try:
            self._write(wanted)
        except Refused:
            self.__dict__.update(before)
            raise

    def _write(self, wanted: dict[str, tuple[int | None, str, str, dict[str, Amounts]]]) -> None:
        had = {pair: self.used(*pair) for pair in self._pairs()}
        bumped: set[str] = set()
        for uuid, (generation, project, type_, allocations) in wanted.items():
            known = self.consumers.pop(uuid, None)
            if generation != (known.generation if known else None):
                raise Refused(409)
            if allocations.keys() - self.providers.keys():
                raise Refused(400)
            if allocations:
                number = known.generation + 1 if known else 1
                self.consumers[uuid] = Consumer(number, project, type_, allocations)
            bumped |= allocations.keys() or (known.allocations.keys() if known else set())
        for _, _, _, allocations in wanted.values():
            for uuid, amounts in allocations.items():
                self._judge(uuid, amounts, had)
        for uuid in bumped:
            self.providers[uuid].generation += 1

    def _pairs(self) -> set[tuple[str, str]]:
        return {(uuid, name) for uuid, one in self.providers.items() for name in one.inventories}

    def _judge(self, uuid: str, amounts: Amounts, had: dict[tuple[str, str], int]) -> None:
        inventories = self.providers[uuid].inventories
        for name, amount in amounts.items():
            if name not in inventories:
                raise Refused(409)
            one = inventories[name]
            if not one["min_unit"] <= amount <= one["max_unit"] or amount % one["step_size"]:
                raise Refused(409)
            now = self.used(uuid, name)
            if now > capacity(one) and now > had[uuid, name]:
                raise Refused(409)

    def drop(self, consumer: str) -> None:
        if consumer not in self.consumers:
            raise Refused(404)
        del self.consumers[consumer]

    # --- questions --------------------------------------------------------------------------

    def with_room(self, amounts: Amounts) -> set[str]:
        """Providers on which each of the amounts fits."""
        return {
            uuid
            for uuid, provider in self.providers.items()
            if all(self._fits(uuid, provider, name, amount) for name, amount in amounts.items())
        }

    def _fits(self, uuid: str, provider: Provider, name: str, amount: int) -> bool:
        one = provider.inventories.get(name)
        return (
            one is not None
            and one["min_unit"] <= amount <= one["max_unit"]
            and amount % one["step_size"] == 0
            and self.used(uuid, name) + amount <= capacity(one)
        )


def capacity(inventory: Inventory) -> int:
    """What can be used of an inventory."""
    return int((inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"])
