"""A hypothetical fleet with a host for every combination of names, for the static check.

For every combination of the names and traits that policies speak of it has a host, so a host
set is empty only if no fleet has such a host. Its trees have the usual levels unless told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.domain.disclosure import said_names
from moorage.domain.topology import DEFAULT_TREE, HOST, Level, Topology

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.ensembles import MemberName
    from moorage.domain.placement import Occupant

LADDER: Final = ("region", "zone", "row", "rack")
"""Levels from the top down, for a tree that is not known."""

MOST_NAMES: Final = 10


@dataclass(eq=False)
class WishGround:
    """A `domain.placement.Ground`; `names` grow as policies refer to them."""

    levels: Mapping[str, tuple[str, ...]] | None = None
    names: dict[str, int] = field(default_factory=dict)
    """Name or `trait:<name>` -> its bit: host `i` has what the bits of `i` say."""
    fleet: Topology | None = None
    """The trees of the fleet that is asked about, if there is one."""

    @property
    def topology(self) -> Topology:
        """The trees' levels, without domains."""
        return Topology(self.levels or {DEFAULT_TREE: LADDER}, {}, {})

    @property
    def project_id(self) -> str:
        """No project."""
        return ""

    @property
    def host_count(self) -> int:
        """One host for every combination of names."""
        return 1 << min(len(self.names), MOST_NAMES)

    @property
    def complete(self) -> bool:
        """Whether the names are few enough for every combination to have its host."""
        return len(self.names) <= MOST_NAMES

    def domains(self, level: Level) -> Sequence[int]:
        """Every host stands in some domain of every level."""
        return range(self.host_count) if level.name == HOST else [0] * self.host_count

    def domain_name(self, level: Level, domain: int) -> str:
        """A generated name."""
        return f"{level}-{domain}"

    def eligible(self, member: MemberName) -> frozenset[int]:
        """Every host."""
        return frozenset(range(self.host_count))

    def fenced(self, member: MemberName) -> frozenset[int]:
        """Every host."""
        return frozenset(range(self.host_count))

    def hosts_in(self, names: frozenset[str]) -> frozenset[int]:
        """Hosts that have at least one of the names."""
        bits = sum(1 << self._bit(name) for name in names)
        return frozenset(row for row in range(self.host_count) if row & bits)

    def said(self, names: frozenset[str]) -> str:
        """The names for texts; all of them where no fleet is known."""
        return ", ".join(sorted(names)) if self.fleet is None else said_names(self.fleet, names)

    def hosts_with_traits(self, traits: frozenset[str]) -> frozenset[int]:
        """Hosts that have all of the traits."""
        bits = sum(1 << self._bit(f"trait:{trait}") for trait in traits)
        return frozenset(row for row in range(self.host_count) if row & bits == bits)

    def foreigners(self, host: int) -> Sequence[Occupant]:
        """None."""
        return ()

    def _bit(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def within(self, fine: Level, coarse: Level) -> bool:
        """Whether members in one domain of `fine` surely stand in one of `coarse` too."""
        if fine.name == HOST or (fine.tree, fine.name) == (coarse.tree, coarse.name):
            return True
        if fine.tree != coarse.tree or coarse.name == HOST:
            return False
        order = (self.levels or {}).get(fine.tree, () if self.levels else LADDER)
        if fine.name not in order or coarse.name not in order:
            return False
        return order.index(coarse.name) < order.index(fine.name)
