"""affinity: all members in one domain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from moorage.domain.topology import DEFAULT_TREE, HOST, Level
from moorage.policies.contract import OUTSIDE, Example, Violation
from moorage.policies.levels import hosts_with_domain, members_text, members_without_domain
from moorage.policies.parameters import about, read
from moorage.policies.primitives import SameDomain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge, Weaker
    from moorage.policies.primitives import Primitive


@dataclass(frozen=True, slots=True)
class Affinity:
    """All selected members are in the same domain: on one host, or in one rack, zone, ...

    Use it for members that must share something a domain has: a host's memory bus, a rack's
    switch, a zone's storage. With `zip`, each i-th set of members shares a domain of its own.
    Broken by one for every domain used beyond the first, and for every member whose host is in no
    domain of the level: being in none is nothing that members share.

    Nova's `affinity` is this at the level `host`; the first server that starts decides where, and
    later ones fit there or fail, while here a host is found that has room for all. Nova's
    `soft-affinity` weighs the hosts, the more servers of the group the better, for one server at
    a time. Preferred here, it costs the domains used beyond the first, whether the members are
    halved over two of them or all but one are in one.
    """

    type: ClassVar[str] = "affinity"
    summary: ClassVar[str] = "all members in the same domain"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("both on one host", {}, ("r1/h1", "r1/h1"), good=True),
        Example("two hosts of one rack are two hosts", {}, ("r1/h1", "r1/h2"), good=False),
        Example("one rack is enough", {"level": "rack"}, ("r1/h1", "r1/h3"), good=True),
        Example("two racks of one zone", {"level": "rack"}, ("r1/h1", "r2/h1"), good=False),
        Example("one zone", {"level": "zone"}, ("r1/h1", "r2/h1"), good=True),
        Example(
            "in no rack is in no common rack", {"level": "rack"}, (OUTSIDE, OUTSIDE), good=False
        ),
    )

    level: str = field(default=HOST, metadata=about("Level of the domain they share."))
    tree: str = field(default=DEFAULT_TREE, metadata=about("Tree the level belongs to."))

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Affinity:
        """Read wire parameters."""
        return read(cls, parameters, path=path)

    def check(self, topology: Topology) -> None:
        """Refuse a level the tree does not have."""
        topology.find_level(self.level, self.tree)

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """One for members without a domain, and one for the domains used beyond the first."""
        level = Level(self.tree, self.level)
        return (
            *members_without_domain(edge, placement, level),
            *self._scattered(edge, placement, level),
        )

    def _scattered(self, edge: Edge, placement: Placement, level: Level) -> Iterator[Violation]:
        used = set(placement.domains(edge, level)) - {-1}
        if len(used) > 1:
            text = f"{members_text(edge)} stand in {len(used)} {level}s instead of one"
            yield Violation(edge, text, len(used) - 1, named=False)

    def slack(self, edge: Edge, placement: Placement) -> None:
        """None: the policy is met or not, with no measure in between."""

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """The same domain, on hosts that have one."""
        level = Level(self.tree, self.level)
        yield SameDomain(policy=name, members=edge, weight=weight, level=level)
        yield from hosts_with_domain(edge, fleet, level, name=name, weight=weight)

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """One domain with room for all."""
        return f"one {Level(self.tree, self.level)} with room for {members_text(edge)}"

    def weaker(self, edge: Edge) -> tuple[Weaker, ...]:
        """None: which level is wider depends on the topology; it can only become preferred."""
        return ()
