"""quorum: a majority of the members outlives the loss of any domain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from moorage.domain.topology import DEFAULT_TREE, HOST, Level
from moorage.policies.contract import Example, Violation, Weaker
from moorage.policies.levels import (
    domains_text,
    hosts_with_domain,
    members_text,
    members_without_domain,
)
from moorage.policies.parameters import about, read
from moorage.policies.primitives import AtMostTogether

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge
    from moorage.policies.primitives import Primitive


def spare(edge: Edge) -> int:
    """How many members may be lost so that the others are more than half of all."""
    return (len(edge) - 1) // 2


@dataclass(frozen=True, slots=True)
class Quorum:
    """After the loss of any `lose` domains more than half of the selected members remain.

    This is what etcd, ZooKeeper or Galera need. Unlike `survive` it names no number of members, so
    it stays right when the ensemble grows or shrinks. Broken by one for every member that would be
    lost above the minority.
    """

    type: ClassVar[str] = "quorum"
    summary: ClassVar[str] = "a majority outlives the loss of any domain"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("each on its own host", {}, ("r1/h1", "r1/h2", "r1/h3"), good=True),
        Example("two of three on one host", {}, ("r1/h1", "r1/h1", "r2/h1"), good=False),
        Example(
            "two of five in each rack at most",
            {"level": "rack"},
            ("r1/h1", "r1/h2", "r2/h1", "r2/h2", "r3/h1"),
            good=True,
        ),
        Example(
            "any two hosts of five may fail",
            {"lose": 2},
            ("r1/h1", "r1/h2", "r1/h3", "r2/h1", "r2/h2"),
            good=True,
        ),
        Example(
            "two hosts hold three of five",
            {"lose": 2},
            ("r1/h1", "r1/h1", "r1/h2", "r2/h1", "r2/h2"),
            good=False,
        ),
    )

    lose: int = field(default=1, metadata=about("How many domains may fail at once.", minimum=1))
    level: str = field(default=HOST, metadata=about("Level of the domains."))
    tree: str = field(default=DEFAULT_TREE, metadata=about("Tree the level belongs to."))

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Quorum:
        """Read wire parameters."""
        return read(cls, parameters, path=path)

    def check(self, topology: Topology) -> None:
        """Refuse a level the tree does not have."""
        topology.find_level(self.level, self.tree)

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """One if the fullest domains hold too many, as large as the surplus."""
        level = Level(self.tree, self.level)
        return (
            *members_without_domain(edge, placement, level),
            *self._majority_lost(edge, placement, level),
        )

    def _majority_lost(self, edge: Edge, placement: Placement, level: Level) -> Iterator[Violation]:
        lost = self._largest_loss(edge, placement)
        if lost > spare(edge):
            text = (
                f"the loss of {domains_text(level, self.lose)} takes {lost} of"
                f" {members_text(edge)}, and leaves no majority"
            )
            yield Violation(edge, text, lost - spare(edge), named=False)

    def _largest_loss(self, edge: Edge, placement: Placement) -> int:
        counts = placement.counts(edge, Level(self.tree, self.level))
        return sum(sorted(counts.values(), reverse=True)[: self.lose])

    def slack(self, edge: Edge, placement: Placement) -> int:
        """How many more members the fullest domains may take."""
        return spare(edge) - self._largest_loss(edge, placement)

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """The fullest domains together hold a minority at most."""
        level = Level(self.tree, self.level)
        yield AtMostTogether(
            policy=name,
            members=edge,
            weight=weight,
            level=level,
            domains=self.lose,
            limit=spare(edge),
        )
        yield from hosts_with_domain(edge, fleet, level, name=name, weight=weight)

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:  # noqa: ARG002 - not asked of it
        """A majority somewhere else."""
        level = Level(self.tree, self.level)
        return f"a majority of {members_text(edge)} outside any {domains_text(level, self.lose)}"

    def weaker(self, edge: Edge) -> Iterable[Weaker]:
        """Fewer domains that may fail."""
        for lose in range(self.lose - 1, 0, -1):
            if lose < len(edge):
                yield Weaker(self.lose - lose, {"lose": lose})
                return
