"""survive: enough members remain after a failure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from moorage.domain.topology import DEFAULT_TREE, HOST, Level
from moorage.policies.contract import OUTSIDE, Example, Violation, Weaker
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

STEPS = 3


@dataclass(frozen=True, slots=True)
class Survive:
    """After losing any `lose` domains, at least `keep` of the selected members remain.

    States the goal instead of a limit per domain, so it stays right when the role grows or
    shrinks: three databases that must keep two after losing a rack are in three racks; five
    that must keep three need only have no rack with more than two. Broken by the number of
    members missing after the worst loss, and by one for every member whose host is in no domain of
    the level, however many others remain: with which domain it would be lost is not known.
    """

    type: ClassVar[str] = "survive"
    summary: ClassVar[str] = "enough members remain after losing any so many domains"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "three racks keep two of three",
            {"level": "rack", "keep": 2},
            ("r1/h1", "r2/h1", "r3/h1"),
            good=True,
        ),
        Example(
            "losing r1 leaves one",
            {"level": "rack", "keep": 2},
            ("r1/h1", "r1/h2", "r3/h1"),
            good=False,
        ),
        Example(
            "five keep three",
            {"level": "rack", "keep": 3},
            ("r1/h1", "r1/h2", "r2/h1", "r2/h2", "r3/h1"),
            good=True,
        ),
        Example(
            "two racks lost at once leave one",
            {"level": "rack", "lose": 2, "keep": 1},
            ("r1/h1", "r2/h1", "r3/h1"),
            good=True,
        ),
        Example(
            "... but not two",
            {"level": "rack", "lose": 2, "keep": 2},
            ("r1/h1", "r2/h1", "r3/h1"),
            good=False,
        ),
        Example(
            "two remain, and one is in no rack",
            {"level": "rack", "keep": 2},
            ("r1/h1", "r2/h1", "r3/h1", OUTSIDE),
            good=False,
        ),
    )

    keep: int = field(metadata=about("How many members must remain.", minimum=1))
    lose: int = field(default=1, metadata=about("How many domains may be lost at once.", minimum=1))
    level: str = field(default=HOST, metadata=about("Level of the domains that fail."))
    tree: str = field(default=DEFAULT_TREE, metadata=about("Tree the level belongs to."))

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Survive:
        """Read wire parameters."""
        return read(cls, parameters, path=path)

    def check(self, topology: Topology) -> None:
        """Refuse a level the tree does not have."""
        topology.find_level(self.level, self.tree)

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """One when the worst loss leaves too few, as large as what is missing."""
        level = Level(self.tree, self.level)
        return (
            *members_without_domain(edge, placement, level),
            *self._lost(edge, placement, level),
        )

    def _lost(self, edge: Edge, placement: Placement, level: Level) -> Iterator[Violation]:
        remain = self._remain(edge, placement)
        if remain < self.keep:
            lost = domains_text(level, self.lose) if self.lose > 1 else f"one {level}"
            text = f"losing {lost} leaves {remain} of {len(edge)}"
            yield Violation(edge, text, self.keep - remain, named=False)

    def _remain(self, edge: Edge, placement: Placement) -> int:
        counts = placement.counts(edge, Level(self.tree, self.level))
        return len(edge) - sum(sorted(counts.values(), reverse=True)[: self.lose])

    def slack(self, edge: Edge, placement: Placement) -> int:
        """How many members more than needed remain after the worst loss."""
        return self._remain(edge, placement) - self.keep

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """The domains lost may together hold only what need not remain."""
        level = Level(self.tree, self.level)
        yield AtMostTogether(
            policy=name,
            members=edge,
            weight=weight,
            level=level,
            domains=self.lose,
            limit=len(edge) - self.keep,
        )
        yield from hosts_with_domain(edge, fleet, level, name=name, weight=weight)

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """The least number of domains that the goal takes."""
        level = Level(self.tree, self.level)
        each = (len(edge) - self.keep) // self.lose
        if each < 1:
            return f"more than {members_text(edge)} to keep {self.keep} after losing {self.lose}"
        least = self.lose + -(-self.keep // each)
        lost = f"in any {domains_text(level, self.lose)}" if self.lose > 1 else f"per {level}"
        most = len(edge) - self.keep
        return f"{domains_text(level, least)} for {members_text(edge)} (max {most} {lost})"

    def weaker(self, edge: Edge) -> Iterable[Weaker]:
        """Keep fewer, lose fewer domains, or have more members to lose."""
        for step in range(1, STEPS + 1):
            if self.keep - step >= 1:
                yield Weaker(step, {"keep": self.keep - step})
            if self.lose - step >= 1:
                yield Weaker(step, {"lose": self.lose - step})
            yield Weaker(step + 1, {}, grow=step)
