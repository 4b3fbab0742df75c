"""separation: far from each other in a tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

from moorage.domain.ensembles import SIDES
from moorage.domain.errors import InvalidDescription
from moorage.domain.topology import DEFAULT_TREE, Level
from moorage.policies.contract import OUTSIDE, Example, Violation, Weaker
from moorage.policies.levels import (
    domains_text,
    hosts_with_domain,
    members_text,
    members_without_domain,
)
from moorage.policies.parameters import about, read
from moorage.policies.primitives import Apart, AtMost, NeverOn
from moorage.policies.sides import (
    GROUPS,
    MEMBERS,
    ROLES,
    Between,
    check_form,
    opposed,
    single,
    split,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge
    from moorage.policies.primitives import Primitive


@dataclass(frozen=True, slots=True)
class Separation:
    """Every two of the selected members are far from each other.

    With `between: roles` only members of different roles are, so that a tier may be close together
    and far from another one; with `between: groups` those of different groups or copies, so that
    the racks of two clusters are different ones. Or name the sides, in place of `members`:
    `{"between": [["east", "lb"], ["west"]]}`; each is a list of roles, groups and copies, and may
    name another ensemble of the project, `ensemble:shop`, whose members stay where they are.

    Say how far either as a `level` they must not share, or as `min_distance`: 1 is another host, 2
    another domain of the lowest level (a rack, where racks are the lowest), and so on up the tree.
    With a distance a host that is in no domain shares none. Use a tree of its own for what is not
    the location: `{"level": "feed", "tree": "power"}` keeps two servers off one power feed. Broken
    by one for every member beyond the first in a domain; between sides by one for every two sides
    in it, and for every member that shares one with another ensemble; with a `level` also by one
    for every member whose host is in no domain of it.
    """

    type: ClassVar[str] = "separation"
    summary: ClassVar[str] = "members far from each other: different domains, or a least distance"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("two racks", {"level": "rack"}, ("r1/h1", "r2/h1"), good=True),
        Example("two hosts of one rack", {"level": "rack"}, ("r1/h1", "r1/h2"), good=False),
        Example("hosts are 1 apart", {"min_distance": 1}, ("r1/h1", "r1/h2"), good=True),
        Example("racks of a zone are 2 apart", {"min_distance": 2}, ("r1/h1", "r2/h1"), good=True),
        Example("... and not 3", {"min_distance": 3}, ("r1/h1", "r2/h1"), good=False),
        Example("zones are 3 apart", {"min_distance": 3}, ("r1/h1", "r3/h1"), good=True),
        Example("one in no rack", {"level": "rack"}, ("r1/h1", OUTSIDE), good=False),
        Example("... is far from all others", {"min_distance": 3}, ("r1/h1", OUTSIDE), good=True),
    )

    level: str | None = field(
        default=None, metadata=about("Level of which no two members share a domain.")
    )
    min_distance: int | None = field(
        default=None,
        metadata=about("How far apart two members are at least, in levels.", minimum=1),
    )
    between: Between = field(
        default=MEMBERS,
        metadata=about(
            "Whether every two members are far from each other, every two roles, every two"
            " groups, or every two of these sides.",
            choices=(MEMBERS, ROLES, GROUPS),
        ),
    )
    tree: str = field(default=DEFAULT_TREE, metadata=about("Tree that is meant."))

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Separation:
        """Read wire parameters; exactly one of `level` and `min_distance`."""
        policy = read(cls, parameters, path=path)
        if (policy.level is None) == (policy.min_distance is None):
            raise InvalidDescription("give either level or min_distance", path=path)
        check_form(policy.between, f"{path}.{SIDES}")
        return policy

    def check(self, topology: Topology) -> None:
        """Refuse a level the tree does not have, or a distance no two hosts have."""
        if self.level is not None:
            topology.find_level(self.level, self.tree)
        elif self._level(topology) is None:
            raise InvalidDescription(
                f"no two hosts are {self.min_distance} apart in tree {self.tree}",
                path="min_distance",
            )

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """One for each domain that holds several members."""
        level = self._level(placement.fleet.topology)
        if level is None:
            return self._impossible(edge)
        close = self._close if self.between == MEMBERS else self._sides_close
        return (
            *members_without_domain(edge, placement, level),
            *close(edge, placement, level),
            *self._beside_others(edge, placement, level),
        )

    def _beside_others(self, edge: Edge, placement: Placement, level: Level) -> Iterator[Violation]:
        for ensemble, members in opposed(edge, self.between):
            near = placement.fleet.near(ensemble, level) or ()
            for one in members:
                if placement.hosts[one] in near:
                    name = placement.fleet.domain_name(level, placement.domain(one, level))
                    said = f"{one} shares {level} {name} with ensemble {ensemble}"
                    yield Violation((one,), said)

    def _impossible(self, edge: Edge) -> tuple[Violation, ...]:
        text = f"no two hosts are {self.min_distance} apart in tree {self.tree}"
        count = len(self._beside_first(edge))
        return (Violation(edge, text, count, named=False),) if count else ()

    def _beside_first(self, edge: Edge) -> Edge:
        """The members that are to be far from the first one."""
        if self.between == MEMBERS:
            return edge[1:]
        _, *others = [*split(edge, self.between).values()] or [()]
        return tuple(one for side in others for one in side)

    def _sides_close(self, edge: Edge, placement: Placement, level: Level) -> Iterator[Violation]:
        for domain, together in placement.by_domain(edge, level).items():
            name = placement.fleet.domain_name(level, domain)
            for ours, theirs in combinations(split(together, self.between).values(), 2):
                both = (ours[0], theirs[0])
                yield Violation((*ours, *theirs), self._words(both, level, name))

    def _close(self, edge: Edge, placement: Placement, level: Level) -> Iterator[Violation]:
        for domain, together in placement.by_domain(edge, level).items():
            if len(together) > 1:
                name = placement.fleet.domain_name(level, domain)
                yield Violation(together, self._words(together, level, name), len(together) - 1)

    def _words(self, together: Edge, level: Level, name: str) -> str:
        several = " and ".join(map(str, together))
        if self.min_distance is None:
            return f"{several} share {level} {name}"
        return f"{several} are less than {self.min_distance} apart: they share {name}"

    def _level(self, topology: Topology) -> Level | None:
        """The level that no two members may share; None: not even that would be far enough."""
        if self.level is not None:
            return Level(self.tree, self.level)
        assert self.min_distance is not None
        return topology.level_within(self.min_distance - 1, self.tree)

    def slack(self, edge: Edge, placement: Placement) -> None:
        """None: the policy is met or not, with no measure in between."""

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """At most one in each domain of the level that the distance implies."""
        level = self._level(fleet.topology)
        if level is None:
            nowhere = frozenset(range(fleet.host_count))
            others = self._beside_first(edge)
            yield NeverOn(policy=name, members=others, weight=weight, hosts=nowhere)
        elif self.between == MEMBERS:
            yield AtMost(policy=name, members=edge, weight=weight, level=level, limit=1)
            yield from hosts_with_domain(edge, fleet, level, name=name, weight=weight)
        else:
            yield from self._apart(edge, level, name=name, weight=weight)
            for ensemble, members in opposed(edge, self.between):
                if near := fleet.near(ensemble, level):
                    yield NeverOn(policy=name, members=members, weight=weight, hosts=near)
            yield from hosts_with_domain(edge, fleet, level, name=name, weight=weight)

    def _apart(
        self, edge: Edge, level: Level, *, name: str, weight: int | None
    ) -> Iterator[Primitive]:
        """Every two sides in different domains: of single members, one in each domain at most."""
        sides = split(edge, self.between)
        if weight is None and single(sides):
            alone = tuple(one for (one,) in sides.values())
            yield AtMost(policy=name, members=alone, weight=None, level=level, limit=1)
            return
        for ours, theirs in combinations(sides.values(), 2):
            yield Apart(policy=name, members=ours, others=theirs, weight=weight, level=level)

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """As many domains as members."""
        level = self._level(fleet.topology)
        if level is None:
            return f"hosts {self.min_distance} apart for {members_text(edge)}"
        if self.between != MEMBERS:
            sides = split(edge, self.between)
            kind = self.between if isinstance(self.between, str) else "sides"
            least = domains_text(level, len(sides))
            said = f"{least} for {' and '.join(sides)} (no {level} holds two of these {kind})"
            return said + "".join(
                f", none with ensemble {ensemble} for {members_text(members)}"
                for ensemble, members in opposed(edge, self.between)
            )
        return f"{domains_text(level, len(edge))} for {members_text(edge)} (max 1 per {level})"

    def weaker(self, edge: Edge) -> Iterable[Weaker]:
        """A smaller distance; a level can only become preferred."""
        if self.min_distance is not None:
            for distance in range(self.min_distance - 1, 0, -1):
                yield Weaker(self.min_distance - distance, {"min_distance": distance})
