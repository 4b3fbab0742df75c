"""An ideal fleet: empty, with every host eligible for every member and as many domains as needed.

Policies that cannot be satisfied here cannot be satisfied on any fleet. It is used to find
contradictions and the least number of domains without a real fleet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from moorage.domain.topology import HOST, Level, Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from moorage.domain.member_names import MemberName
    from moorage.domain.placement import Occupant

LEVEL_ORDER: Final = (
    "region",
    "cloud",
    "site",
    "zone",
    "az",
    "building",
    "hall",
    "room",
    "row",
    "pod",
    "pdu",
    "rack",
    "chassis",
    "enclosure",
)
"""Usual levels from the top down; any other level is assumed to be below these."""


def levels_by_tree(levels: Iterable[Level]) -> dict[str, tuple[str, ...]]:
    """Tree -> its levels from the top down, without `host`, by the usual order."""
    trees: dict[str, list[str]] = {}
    for level in sorted(set(levels)):
        names = trees.setdefault(level.tree, [])
        if level.name != HOST:
            names.append(level.name)
    return {tree: tuple(sorted(names, key=usual_rank)) for tree, names in trees.items()}


def usual_rank(name: str) -> tuple[int, str]:
    """The sort key of a level in the usual order, from the top down."""
    return (LEVEL_ORDER.index(name), "") if name in LEVEL_ORDER else (len(LEVEL_ORDER), name)


@dataclass(frozen=True)
class IdealFleet:
    """A `domain.placement.PolicyView` of an ideal fleet.

    `counts` gives the number of domains of every level but `host`; the domains of a lower level
    are dealt out evenly under those of the next higher one. Parallel trees cross: every
    combination of their lowest domains has `per_leaf` hosts.
    """

    levels: Mapping[str, tuple[str, ...]]
    counts: Mapping[Level, int]
    per_leaf: int
    _columns: dict[Level, tuple[int, ...]] = field(default_factory=dict)

    @property
    def project_id(self) -> str:
        """No project: there are no foreign consumers."""
        return ""

    @cached_property
    def topology(self) -> Topology:
        """The trees' levels, without domains: policies use only the levels."""
        return Topology(levels=self.levels, domains={}, attachments={})

    @cached_property
    def _leaves(self) -> tuple[tuple[str, int], ...]:
        """(tree, number of its lowest domains) for every tree that has levels."""
        return tuple(
            (tree, self.counts[Level(tree, names[-1])])
            for tree, names in self.levels.items()
            if names
        )

    @cached_property
    def leaf_count(self) -> int:
        """Number of combinations of lowest domains; host h is in leaf `h % leaf_count`."""
        count = 1
        for _, domains in self._leaves:
            count *= domains
        return count

    @property
    def host_count(self) -> int:
        """How many hosts there are."""
        return self.leaf_count * self.per_leaf

    def domains(self, level: Level) -> Sequence[int]:
        """Per host the number of its domain; every host has one."""
        level = Level(level.tree, level.name)
        if level not in self._columns:
            self._columns[level] = tuple(self._column(level))
        return self._columns[level]

    def _column(self, level: Level) -> Iterable[int]:
        if level.name == HOST:
            return range(self.host_count)
        below = 1
        for tree, domains in self._leaves:
            if tree == level.tree:
                wanted = self.counts[level]
                # Block by block, so that lower domains nest in higher ones.
                return (
                    ((host // below) % domains) * wanted // domains
                    for host in range(self.host_count)
                )
            below *= domains
        return (-1 for _ in range(self.host_count))

    def domain_name(self, level: Level, domain: int) -> str:
        """A name such as `rack 2`."""
        return f"{level} {domain}"

    def eligible(self, member: MemberName) -> frozenset[int]:
        """Every host."""
        return frozenset(range(self.host_count))

    def hosts_without_domain(self, level: Level) -> frozenset[int]:
        """All hosts if no domain of the level was made, otherwise none."""
        return frozenset(host for host, one in enumerate(self.domains(level)) if one < 0)

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
        """Every host: names refer to something only in a real fleet."""
        return frozenset(range(self.host_count))

    def near(self, ensemble: str, level: Level) -> None:
        """Not known."""

    def names_text(self, names: frozenset[str]) -> str:
        """All names unchanged."""
        return ", ".join(sorted(names))

    def hosts_with_traits(self, traits: frozenset[str]) -> frozenset[int]:
        """Every host."""
        return frozenset(range(self.host_count))

    def hosts_beside_foreign(
        self, forbids: Callable[[Occupant], bool], level: Level
    ) -> frozenset[int]:
        """None."""
        return frozenset()

    def foreign_consumers(self, host: int) -> Sequence[Occupant]:
        """None."""
        return ()
