"""proximity: near each other in a tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from moorage.domain.ensembles import SIDES
from moorage.domain.errors import InvalidDescription
from moorage.domain.references import referenced
from moorage.domain.topology import DEFAULT_TREE, Level
from moorage.policies.contract import OUTSIDE, Example, Violation, Weaker
from moorage.policies.levels import hosts_with_domain, members_text, members_without_domain
from moorage.policies.parameters import about, read
from moorage.policies.primitives import Near, OnlyOn, SameDomain
from moorage.policies.sides import MEMBERS, Between, check_ensembles, check_form, on_side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge
    from moorage.policies.primitives import Primitive

STEPS = 3


@dataclass(frozen=True, slots=True)
class Proximity:
    """The selected members are near each other: in one domain, or at most so far apart.

    Say how near either as the `level` of the domain they share, or as `max_distance`: 0 is the same
    host, 1 the same domain of the lowest level (a rack, where racks are the lowest), and so on up
    the tree. With a distance two hosts of one rack are near each other whether or not the rack is
    in a zone, and a host that is in none is as far from all others as hosts that share no domain:
    near itself only, unless `max_distance` is more than the number of levels. Then every two hosts
    are near each other, and the policy asks for nothing. Meant for `zip`: each application server
    beside its own database. Broken by one for every domain used beyond the first, and with a
    `level` for every member whose host is in no domain of it.

    With `{"between": [["web"], ["cache"]]}` each member of the first side is near some member of
    every other side, and not necessarily near the rest of its own: each rack with a `web` has a
    `cache`, and there may be caches elsewhere. Broken by one for every domain that has some of the
    first side and none of another, and with a `level` for every member of the first side in no
    domain of it; members of the other sides may be in none. A side is a list of roles, groups and
    copies, or else of other ensembles of the project, `ensemble:shop`, whose members stay where
    they are. Broken by one for every member that is near none of such an ensemble.
    """

    type: ClassVar[str] = "proximity"
    summary: ClassVar[str] = "members near each other: same domain, or a bounded distance"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("one rack", {"level": "rack"}, ("r1/h1", "r1/h2"), good=True),
        Example("two racks", {"level": "rack"}, ("r1/h1", "r2/h1"), good=False),
        Example("distance 0 is one host", {"max_distance": 0}, ("r1/h1", "r1/h1"), good=True),
        Example("two hosts are 1 apart", {"max_distance": 0}, ("r1/h1", "r1/h2"), good=False),
        Example("racks of a zone are 2 apart", {"max_distance": 2}, ("r1/h1", "r2/h1"), good=True),
        Example("zones are 3 apart", {"max_distance": 2}, ("r1/h1", "r3/h1"), good=False),
        Example(
            "in no rack is in no common rack", {"level": "rack"}, (OUTSIDE, OUTSIDE), good=False
        ),
        Example("one host is near itself", {"max_distance": 1}, (OUTSIDE, OUTSIDE), good=True),
        Example("near no other", {"max_distance": 2}, (OUTSIDE, "r1/h1"), good=False),
        Example("no more than 3 apart", {"max_distance": 3}, (OUTSIDE, "r1/h1"), good=True),
    )

    level: str | None = field(default=None, metadata=about("Level of the domain they share."))
    max_distance: int | None = field(
        default=None, metadata=about("How far apart two members may be, in levels of the tree.")
    )
    between: Between = field(
        default=MEMBERS,
        metadata=about(
            "Whether members are near each other, or those of the first side near some of each of"
            " the other ones.",
            choices=(MEMBERS,),
        ),
    )
    tree: str = field(default=DEFAULT_TREE, metadata=about("Tree that is meant."))

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Proximity:
        """Read wire parameters; exactly one of `level` and `max_distance`."""
        policy = read(cls, parameters, path=path)
        if (policy.level is None) == (policy.max_distance is None):
            raise InvalidDescription("give either level or max_distance", path=path)
        check_form(policy.between, f"{path}.{SIDES}")
        if not isinstance(policy.between, str):
            check_ensembles(policy.between, f"{path}.{SIDES}")
        return policy

    def check(self, topology: Topology) -> None:
        """Refuse a level the tree does not have."""
        if self.level is not None:
            topology.find_level(self.level, self.tree)

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """One for members without a domain, and one for the domains beyond the first."""
        level = self._level(placement.fleet.topology)
        if level is None:
            return ()
        if self.between != MEMBERS:
            return (
                *self._far_from_roles(edge, placement, level),
                *self._far_from_ensembles(edge, placement, level),
            )
        return (*members_without_domain(edge, placement, level), *self._far(edge, placement, level))

    def _far(self, edge: Edge, placement: Placement, level: Level) -> Iterator[Violation]:
        domains = sorted(placement.counts(edge, level))
        if len(domains) > 1:
            text = f"{members_text(edge)} in different {level}s"
            yield Violation(edge, text, len(domains) - 1, named=False)

    def _far_from_roles(
        self, edge: Edge, placement: Placement, level: Level
    ) -> Iterator[Violation]:
        ours, roles, _ = self._sides(edge)
        if roles:
            yield from members_without_domain(ours, placement, level)
        for side in roles:
            theirs = placement.counts(on_side(edge, side), level)
            for domain, alone in placement.by_domain(ours, level).items():
                if domain not in theirs:
                    name = placement.fleet.domain_name(level, domain)
                    text = f"{level} {name} has {members_text(alone)} and no {_either(side)}"
                    yield Violation(alone, text)

    def _far_from_ensembles(
        self, edge: Edge, placement: Placement, level: Level
    ) -> Iterator[Violation]:
        ours, _, ensembles = self._sides(edge)
        for ensemble in ensembles:
            near = placement.fleet.near(ensemble, level)
            for one in ours:
                if near is not None and placement.hosts[one] not in near:
                    text = f"{one} is in no {level} of ensemble {ensemble}"
                    yield Violation((one,), text, named=False)

    def _sides(self, edge: Edge) -> tuple[Edge, list[frozenset[str]], list[str]]:
        """The members of the first side; the other sides of roles, and the other ensembles."""
        assert not isinstance(self.between, str)
        first, *others = self.between
        ensembles = [one for side in others for one in sorted(referenced(side))]
        return on_side(edge, first), [side for side in others if not referenced(side)], ensembles

    def _level(self, topology: Topology) -> Level | None:
        if self.level is not None:
            return Level(self.tree, self.level)
        assert self.max_distance is not None
        return topology.level_within(self.max_distance, self.tree)

    def slack(self, edge: Edge, placement: Placement) -> None:
        """None: the policy is met or not, with no measure in between."""

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """The same domain of the level that stands for the distance."""
        level = self._level(fleet.topology)
        if level is None:
            return
        alone = self.between == MEMBERS
        ours, roles, ensembles = (edge, [], []) if alone else self._sides(edge)
        if alone:
            yield SameDomain(policy=name, members=edge, weight=weight, level=level)
        for side in roles:
            others = on_side(edge, side)
            yield Near(policy=name, members=ours, others=others, weight=weight, level=level)
        for ensemble in ensembles:
            near = fleet.near(ensemble, level)
            if near is not None:
                yield OnlyOn(policy=name, members=ours, weight=weight, hosts=near)
        if alone or roles:
            yield from hosts_with_domain(ours, fleet, level, name=name, weight=weight)

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """One domain with room for all."""
        level = self._level(fleet.topology)
        if self.between != MEMBERS:
            ours, roles, ensembles = self._sides(edge)
            where, who = level or self.tree, members_text(ours)
            there = f"every {where} that has any of {who}" if ours[1:] else f"the {where} of {who}"
            parts = [f"{self._some(edge, one)} in {there}" for one in roles]
            parts += [f"room for {who} in a {where} of ensemble {one}" for one in ensembles]
            return " and ".join(parts)
        return f"one {level or self.tree} with room for {members_text(edge)}"

    @staticmethod
    def _some(edge: Edge, side: frozenset[str]) -> str:
        """Any one member of a side, as a phrase."""
        members = on_side(edge, side)
        if not members:
            return f"one of 0 x {_either(side)}"
        return f"one of {members_text(members)}" if members[1:] else members_text(members)

    def weaker(self, edge: Edge) -> Iterable[Weaker]:
        """A larger distance; a level can only become preferred."""
        if self.max_distance is not None:
            for step in range(1, STEPS + 1):
                yield Weaker(step, {"max_distance": self.max_distance + step})


def _either(side: frozenset[str]) -> str:
    """A side's roles, groups and copies as a phrase."""
    return " or ".join(sorted(side))
