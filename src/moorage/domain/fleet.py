"""A fleet as values: the content of a fleet file, before expansion.

A fleet names classes of hosts by pattern and count, the trees they stand in, flavors, and
the load that is already there. `domain.fleet_expansion` spells it out into providers, a
topology and foreign allocations, always the same for the same fleet: identifiers follow from
names, and every draw from a seed. Its places and rules alone are `domain.topology_rules`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.consumers import SERVER_TYPE
from moorage.domain.errors import InvalidDescription
from moorage.domain.topology import DEFAULT_TREE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.flavors import Flavor
    from moorage.domain.providers import Inventory
    from moorage.domain.resources import Amounts, Trait
    from moorage.domain.topology_rules import Rule

MAX_HOSTS: Final = 200_000
"""Hosts or domains of one fleet; an absurd count is a mistake, not a fleet."""

_NUMBER = re.compile(r"\{n(?::0(?P<width>[1-9]))?\}")
MADE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}", re.ASCII)
"""Names of what a fleet file makes."""


@dataclass(frozen=True, slots=True)
class Names:
    """One name, or `count` names from a pattern: `h{n}` counts from `first`, `h{n:03}` pads.

    A `literal` one is the name of a provider that exists, whatever it contains.
    """

    pattern: str
    count: int | None = None
    first: int = 1
    line: int | None = None
    literal: bool = False

    def expand(self) -> tuple[str, ...]:
        """The names in order.

        Raises:
            InvalidDescription: a count without `{n}` or the other way round, an absurd count,
                or a name that no provider or domain may have.
        """
        if self.literal:
            return (self.pattern,)
        numbered = len(_NUMBER.findall(self.pattern))
        if numbered != (0 if self.count is None else 1):
            raise self._invalid("a name with a count needs {n} exactly once, and only then")
        if self.count is not None and not 1 <= self.count <= MAX_HOSTS:
            raise self._invalid(f"count must be between 1 and {MAX_HOSTS}, not {self.count}")
        numbers = range(self.first, self.first + (self.count or 1))
        names = tuple(_numbered(self.pattern, n) for n in numbers)
        # The last is the longest, and otherwise they differ in digits only.
        if MADE_NAME.fullmatch(names[-1]) is None:
            raise self._invalid("a name is 1 to 128 of letters, digits and _ . : / -")
        return names

    def _invalid(self, message: str) -> InvalidDescription:
        return InvalidDescription(f"{self.pattern!r}: {message}", path="name", line=self.line)


class Order(StrEnum):
    """How items are distributed over domains: equal runs, or one to each in turn."""

    BLOCK = "block"
    TURN = "turn"


@dataclass(frozen=True, slots=True)
class Spread:
    """Distributes items over domains, in the order both are written."""

    domains: tuple[Names, ...]
    order: Order = Order.BLOCK

    def over(self, count: int) -> tuple[str, ...]:
        """The domain of each of `count` things. Runs differ by at most one in length."""
        names = tuple(name for some in self.domains for name in some.expand())
        if self.order is Order.TURN:
            return tuple(names[i % len(names)] for i in range(count))
        return tuple(names[i * len(names) // count] for i in range(count))


@dataclass(frozen=True, slots=True)
class DomainClass:
    """Domains of one level, by pattern, dealt out under their parents."""

    names: Names
    level: str
    tree: str = DEFAULT_TREE
    parents: Spread | None = None


@dataclass(frozen=True, slots=True)
class ChildClass:
    """Equal providers below each provider of what they are described in.

    A child is called after its parent: `n1/numa0`. With a `uuid` it is one provider, of a ledger
    that has it, and its name is its own.
    """

    names: Names
    inventories: tuple[Inventory, ...] = ()
    traits: frozenset[Trait] = frozenset()
    aggregates: frozenset[str] = frozenset()
    children: tuple[ChildClass, ...] = ()
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class SharingClass:
    """Providers of their own that share their inventories with all hosts of their aggregates."""

    names: Names
    inventories: tuple[Inventory, ...]
    aggregates: frozenset[str]
    traits: frozenset[Trait] = frozenset()
    places: Mapping[str, Spread] = field(default_factory=lambda: MappingProxyType({}))
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class HostClass:
    """Equal hosts: root providers with the same inventories, traits and aggregates.

    `aggregates` are names (or UUIDs); `places` says, per tree, where the hosts stand.
    """

    name: str
    names: Names
    inventories: tuple[Inventory, ...]
    traits: frozenset[Trait] = frozenset()
    aggregates: frozenset[str] = frozenset()
    places: Mapping[str, Spread] = field(default_factory=lambda: MappingProxyType({}))
    children: tuple[ChildClass, ...] = ()
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """Hosts that a ledger has, and of which only the places are said."""

    names: Names
    places: Mapping[str, Spread]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has a load: a project by a name of the file, or ids as a ledger has them."""

    project: str = "neighbour"
    project_id: str | None = None
    user_id: str | None = None
    type: str = SERVER_TYPE


@dataclass(frozen=True, slots=True)
class PlacedLoad:
    """One foreign consumer of `amounts` or a flavor on each of the named providers."""

    name: str
    hosts: tuple[Names, ...]
    amounts: Amounts = field(default_factory=lambda: MappingProxyType({}))
    flavor: str | None = None
    owner: Owner = Owner()
    line: int | None = None


@dataclass(frozen=True, slots=True)
class SpelledOutLoad:
    """One foreign consumer of amounts of several providers, by their names."""

    name: str
    allocations: Mapping[str, Amounts]
    uuid: str | None = None
    owner: Owner = Owner()
    line: int | None = None


@dataclass(frozen=True, slots=True)
class DrawnLoad:
    """Foreign servers drawn from flavors until each host has about the wanted fill.

    A host's target is `mean` plus one deviation per entry of `uneven`: a level of the default
    tree (or `host`) and the largest deviation, drawn once per domain of that level, so that
    whole racks are warmer than others. Fill is measured in `resource_class`.
    """

    name: str
    seed: int
    mean: float
    flavors: Mapping[str, int]
    """Flavor name -> relative frequency."""
    uneven: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    resource_class: str = "VCPU"
    classes: frozenset[str] = frozenset()
    """Names of host classes; empty means every host."""
    projects: int = 20
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """Host classes, trees, flavors and load, in the order the file has them."""

    name: str
    hosts: tuple[HostClass, ...]
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Tree -> its levels from the top down, without `host`."""
    domains: tuple[DomainClass, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    load: tuple[PlacedLoad | SpelledOutLoad | DrawnLoad, ...] = ()
    sharing: tuple[SharingClass, ...] = ()
    known: tuple[KnownHosts, ...] = ()
    rules: tuple[Rule, ...] = ()
    complete: bool = False
    """Whether a host without a place in some tree is a mistake."""
    revision: int | None = None
    """The revision of the topology that the file was made from."""


def _numbered(pattern: str, n: int) -> str:
    return _NUMBER.sub(lambda at: str(n).zfill(int(at["width"] or 1)), pattern)
