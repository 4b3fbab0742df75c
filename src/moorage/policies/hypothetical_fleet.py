"""A hypothetical fleet with a host for every combination of names, for the static check.

It has a host for every combination of the names and traits in the policies, so a set of hosts is
empty only if no fleet has such a host. Its trees have the usual levels unless others are given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.domain.disclosure import said_names
from moorage.domain.topology import DEFAULT_TREE, HOST, OWN_LEVELS, SERVER, Level, Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.domain.member_names import MemberName
    from moorage.domain.placement import Occupant

DEFAULT_LEVELS: Final = ("region", "zone", "row", "rack")
"""Levels from the top down, for a tree with unknown levels."""

MAX_NAMES: Final = 10


@dataclass(eq=False)
class HypotheticalFleet:
    """A `domain.placement.PolicyView`; `names` grow as policies refer to them."""

    levels: Mapping[str, tuple[str, ...]] | None = None
    names: dict[str, int] = field(default_factory=dict)
    """Name or `trait:<name>` -> its bit: host `i` has the names whose bits are set in `i`."""
    real_topology: Topology | None = None
    """The topology of the real fleet, if there is one; used for texts only."""

    @property
    def topology(self) -> Topology:
        """The trees' levels, without domains."""
        return Topology(self.levels or {DEFAULT_TREE: DEFAULT_LEVELS}, {}, {})

    @property
    def project_id(self) -> str:
        """No project."""
        return ""

    @property
    def host_count(self) -> int:
        """One host for every combination of names."""
        return 1 << min(len(self.names), MAX_NAMES)

    @property
    def complete(self) -> bool:
        """Whether every combination of names has a host (there are few enough names)."""
        return len(self.names) <= MAX_NAMES

    def domains(self, level: Level) -> Sequence[int]:
        """Every host has a domain at every level."""
        own = level.name in OWN_LEVELS
        return range(self.host_count) if own else [0] * self.host_count

    def domain_name(self, level: Level, domain: int) -> str:
        """A generated name."""
        return f"{level}-{domain}"

    def eligible(self, member: MemberName) -> frozenset[int]:
        """Every host."""
        return frozenset(range(self.host_count))

    def hosts_without_domain(self, level: Level) -> frozenset[int]:
        """None."""
        return frozenset()

    def eligible_domains(
        self,
        members: Sequence[MemberName],
        level: Level,
        *,
        fenced: bool = False,
    ) -> frozenset[int]:
        """Every domain: every host is eligible for every member, and none is fenced off."""
        return frozenset(self.domains(level)) - {-1}

    def hosts_in(self, names: frozenset[str]) -> frozenset[int]:
        """Hosts that have at least one of the names."""
        bits = sum(1 << self._bit(name) for name in names)
        return frozenset(row for row in range(self.host_count) if row & bits)

    def near(self, ensemble: str, level: Level) -> None:
        """Not known."""

    def names_text(self, names: frozenset[str]) -> str:
        """The names for texts; all of them where no fleet is known."""
        return (
            ", ".join(sorted(names))
            if self.real_topology is None
            else said_names(self.real_topology, names)
        )

    def hosts_with_traits(self, traits: frozenset[str]) -> frozenset[int]:
        """Hosts that have all of the traits."""
        bits = sum(1 << self._bit(f"trait:{trait}") for trait in traits)
        return frozenset(row for row in range(self.host_count) if row & bits == bits)

    def hosts_beside_foreign(
        self, forbids: Callable[[Occupant], bool], level: Level
    ) -> frozenset[int]:
        """None."""
        return frozenset()

    def foreign_consumers(self, host: int) -> Sequence[Occupant]:
        """None."""
        return ()

    def _bit(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def implies(self, fine: Level, coarse: Level) -> bool:
        """Whether members in one domain of `fine` are always in one domain of `coarse`."""
        if SERVER in {fine.name, coarse.name}:
            return fine.name == SERVER
        if fine.name == HOST or (fine.tree, fine.name) == (coarse.tree, coarse.name):
            return True
        if fine.tree != coarse.tree or coarse.name == HOST:
            return False
        order = (self.levels or {}).get(fine.tree, () if self.levels else DEFAULT_LEVELS)
        if fine.name not in order or coarse.name not in order:
            return False
        return order.index(coarse.name) < order.index(fine.name)
