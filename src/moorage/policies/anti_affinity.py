"""anti-affinity: no more than so many members in one domain."""

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
from moorage.policies.primitives import AtMost

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge
    from moorage.policies.primitives import Primitive

STEPS = 5


@dataclass(frozen=True, slots=True)
class AntiAffinity:
    """No domain holds more than `max_per_domain` of the selected members.

    With the default of one this is "each on its own host" (or rack, ...); a larger number
    bounds what one failing domain takes along. It says nothing about evenness: `spread` does.
    Broken by one for every member above the limit, in each domain, and for every member whose host
    is in no domain of the level: what fails with it is not known.

    The same under other names: Nova's `anti-affinity` is this at the level `host`, with
    `max_server_per_host` for `max_per_domain`; Nova's `soft-anti-affinity` only weighs the
    hosts, the fewer servers of the group the better, among other weights, for one server at a time.
    Preferred here, it costs what is above the limit for all members together, before the
    objective: where two hosts hold two each of a limit of one, that is as far from it as where
    one holds three and another one. Nomad's `distinct_property` is this
    at the level that the property stands for, its value being `max_per_domain`: it is always
    required, of a job or task group, for one property; `distinct_hosts` is the same for hosts.
    BtrPlace's `spread` is this at the level `host`.
    """

    type: ClassVar[str] = "anti-affinity"
    summary: ClassVar[str] = "at most so many members in one domain"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("each on its own host", {}, ("r1/h1", "r1/h2", "r2/h1"), good=True),
        Example("two on one host", {}, ("r1/h1", "r1/h1"), good=False),
        Example("two hosts, one rack", {"level": "rack"}, ("r1/h1", "r1/h2"), good=False),
        Example(
            "two per rack allowed",
            {"level": "rack", "max_per_domain": 2},
            ("r1/h1", "r1/h1", "r3/h1"),
            good=True,
        ),
        Example(
            "three in a rack where two are allowed",
            {"level": "rack", "max_per_domain": 2},
            ("r1/h1", "r1/h2", "r1/h3"),
            good=False,
        ),
        Example("one in no rack", {"level": "rack"}, ("r1/h1", OUTSIDE), good=False),
        Example("it is a host all the same", {}, ("r1/h1", OUTSIDE), good=True),
    )

    max_per_domain: int = field(
        default=1, metadata=about("How many members one domain may hold.", minimum=1)
    )
    level: str = field(default=HOST, metadata=about("Level of the domains."))
    tree: str = field(default=DEFAULT_TREE, metadata=about("Tree the level belongs to."))

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> AntiAffinity:
        """Read wire parameters."""
        return read(cls, parameters, path=path)

    def check(self, topology: Topology) -> None:
        """Refuse a level the tree does not have."""
        topology.find_level(self.level, self.tree)

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """One for each domain that holds too many, as large as the surplus."""
        level = Level(self.tree, self.level)
        return (
            *members_without_domain(edge, placement, level),
            *self._crowded(edge, placement, level),
        )

    def _crowded(self, edge: Edge, placement: Placement, level: Level) -> Iterator[Violation]:
        for domain, members in placement.by_domain(edge, level).items():
            if (count := len(members)) > self.max_per_domain:
                name = placement.fleet.domain_name(level, domain)
                whole = members_text(edge)
                text = f"{level} {name} holds {count} of {whole}, more than {self.max_per_domain}"
                yield Violation(members, text, count - self.max_per_domain)

    def slack(self, edge: Edge, placement: Placement) -> int:
        """How many more members the fullest domain may take."""
        counts = placement.counts(edge, Level(self.tree, self.level))
        return self.max_per_domain - max(counts.values(), default=0)

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """At most so many in each domain, on hosts that have one."""
        level = Level(self.tree, self.level)
        limit = self.max_per_domain
        yield AtMost(policy=name, members=edge, weight=weight, level=level, limit=limit)
        yield from hosts_with_domain(edge, fleet, level, name=name, weight=weight)

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """Enough domains: members over the limit, rounded up."""
        level = Level(self.tree, self.level)
        least = -(-len(edge) // self.max_per_domain)
        limit = f"(max {self.max_per_domain} per {level})"
        return f"{domains_text(level, least)} for {members_text(edge)} {limit}"

    def weaker(self, edge: Edge) -> Iterable[Weaker]:
        """A larger limit, up to the number of members."""
        most = min(len(edge), self.max_per_domain + STEPS)
        for limit in range(self.max_per_domain + 1, most + 1):
            yield Weaker(limit - self.max_per_domain, {"max_per_domain": limit})
