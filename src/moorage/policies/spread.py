"""spread: over many domains, and evenly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from moorage.domain.errors import InvalidDescription
from moorage.domain.topology import DEFAULT_TREE, HOST, Level
from moorage.policies.contract import OUTSIDE, Example, Violation, Weaker
from moorage.policies.levels import (
    domains_text,
    hosts_with_domain,
    members_text,
    members_without_domain,
)
from moorage.policies.parameters import about, read
from moorage.policies.primitives import AtLeastDomains, Skew

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge
    from moorage.policies.primitives import Primitive

STEPS = 4
SKIP = "skip"
COUNT = "count"


@dataclass(frozen=True, slots=True)
class Spread:
    """The selected members use at least `min_domains` domains and differ by at most `max_skew`.

    The skew is the number of members in the fullest domain less that in the emptiest
    *eligible* one, used or not. A domain is eligible when at least one of its hosts could hold
    one of the members if it were empty, so a rack without suitable hosts does not count, and a
    rack that is merely full does. Domains in which the request's own required fences and bans
    leave no host to any of the members do not count either; with `fenced_domains: count` they
    do, as empty ones. Where no domain counts, none of the members to be placed has a host, and
    there is no skew. Give at least one of `min_domains` and `max_skew`. Broken by the number of
    domains missing, by the skew above the limit, and by one for every member whose host is in no
    domain of the level; such hosts count neither as a domain that is used nor in the skew.

    Elsewhere these names mean something else:

    - Kubernetes' `minDomains` counts the *eligible* domains there are: with fewer, the emptiest
      counts as empty, and else it has no effect. `min_domains` here counts the domains that the
      members *use*, whatever `max_skew` says, and is broken by what is missing.
    - Kubernetes' `maxSkew` judges one incoming pod in its domain, beside all pods that a label
      selector finds, of whatever workload, at the time. `max_skew` here judges the placement of
      this policy's members as a whole, counts no others, and may be 0.
    - Kubernetes' `nodeAffinityPolicy` says which nodes count: by default (`Honor`) those that the
      pod's affinity and selector match. `fenced_domains: skip` does so for fences and bans that
      are required of the members, `count` as `Ignore`; traits and aggregates that a role requires
      always narrow what counts. `nodeTaintsPolicy`, by default `Ignore`, has no equal here: hosts
      that are disabled, away, full or kept to others still count.
    - Nomad's `spread` only prefers: it scores nodes by target percentages of an attribute, evenly
      if none are given, together with bin packing. That is closest to this with a `strength` of
      `preferred`; shares of a percentage cannot be said here.
    - BtrPlace's `spread` puts every VM on a node of its own, in its continuous form also during a
      reconfiguration: that is `anti-affinity` here, with `phase: transition` for the latter.
      `min_domains` at the level `host` is BtrPlace's `mostlySpread`.
    """

    type: ClassVar[str] = "spread"
    summary: ClassVar[str] = "over at least so many domains, evenly"
    examples: ClassVar[tuple[Example, ...]] = (
        Example(
            "two racks are enough",
            {"level": "rack", "min_domains": 2},
            ("r1/h1", "r1/h2", "r2/h1"),
            good=True,
        ),
        Example(
            "two hosts are one rack only",
            {"level": "rack", "min_domains": 2},
            ("r1/h1", "r1/h2"),
            good=False,
        ),
        Example(
            "even over all three racks",
            {"level": "rack", "max_skew": 1},
            ("r1/h1", "r2/h1", "r3/h1", "r3/h2"),
            good=True,
        ),
        Example(
            "an unused rack counts as empty",
            {"level": "rack", "max_skew": 1},
            ("r1/h1", "r1/h2", "r2/h1"),
            good=False,
        ),
        Example(
            "both at once",
            {"level": "zone", "min_domains": 2, "max_skew": 2},
            ("r1/h1", "r2/h1", "r2/h2", "r3/h1"),
            good=True,
        ),
        Example(
            "two racks, and a member in none",
            {"level": "rack", "min_domains": 2},
            ("r1/h1", "r2/h1", OUTSIDE),
            good=False,
        ),
        Example(
            "even over the racks, and a member in none",
            {"level": "rack", "max_skew": 0},
            ("r1/h1", "r2/h1", "r3/h1", OUTSIDE),
            good=False,
        ),
    )

    min_domains: int | None = field(
        default=None, metadata=about("How many domains must be used at least.", minimum=1)
    )
    max_skew: int | None = field(
        default=None,
        metadata=about("How many members the fullest domain may be ahead of the emptiest."),
    )
    level: str = field(default=HOST, metadata=about("Level of the domains."))
    tree: str = field(default=DEFAULT_TREE, metadata=about("Tree the level belongs to."))
    fenced_domains: str = field(
        default=SKIP,
        metadata=about(
            "Whether the skew takes domains that required fences and bans of the request close"
            " to all the members for empty ones (count), or leaves them out (skip).",
            choices=(SKIP, COUNT),
        ),
    )

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Spread:
        """Read wire parameters; one of `min_domains` and `max_skew` must be given."""
        policy = read(cls, parameters, path=path)
        if policy.min_domains is None and policy.max_skew is None:
            raise InvalidDescription("give min_domains, max_skew or both", path=path)
        return policy

    def check(self, topology: Topology) -> None:
        """Refuse a level the tree does not have."""
        topology.find_level(self.level, self.tree)

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """One for too few domains, one for too great a skew."""
        level = Level(self.tree, self.level)
        counts = placement.counts(edge, level)
        return (
            *members_without_domain(edge, placement, level),
            *self._too_few(edge, counts, level),
            *self._uneven(edge, placement, counts),
        )

    def _too_few(self, edge: Edge, counts: dict[int, int], level: Level) -> Iterator[Violation]:
        missing = (self.min_domains or 0) - len(counts)
        if missing > 0:
            used = domains_text(level, len(counts))
            text = f"{members_text(edge)} use {used}, fewer than {self.min_domains}"
            yield Violation(edge, text, missing, named=False)

    def _uneven(
        self, edge: Edge, placement: Placement, counts: dict[int, int]
    ) -> Iterator[Violation]:
        skew = self._skew(edge, placement, counts)
        if self.max_skew is not None and skew > self.max_skew:
            members = members_text(edge)
            text = f"{members} have skew {skew} over the {self.level}s, above {self.max_skew}"
            yield Violation(edge, text, skew - self.max_skew, named=False)

    def _skew(self, edge: Edge, placement: Placement, counts: dict[int, int]) -> int:
        fullest = max(counts.values(), default=0)
        eligible = self._eligible(edge, placement.fleet)
        return fullest - min((counts.get(domain, 0) for domain in eligible), default=fullest)

    def _eligible(self, edge: Edge, fleet: PolicyView) -> frozenset[int]:
        """The domains among which the emptiest is looked for.

        Without any there is no skew: then the filters and fences refuse the members by themselves.
        So the fewer elements a request has, the more domains count, and the harder this is to meet.
        """
        level = Level(self.tree, self.level)
        return fleet.eligible_domains(edge, level, fenced=self.fenced_domains == SKIP)

    def slack(self, edge: Edge, placement: Placement) -> int:
        """The smaller of domains to spare and skew to spare."""
        counts = placement.counts(edge, Level(self.tree, self.level))
        spare = []
        if self.min_domains is not None:
            spare.append(len(counts) - self.min_domains)
        if self.max_skew is not None:
            spare.append(self.max_skew - self._skew(edge, placement, counts))
        return min(spare)

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """Enough domains; a bounded skew over the eligible ones; on hosts that have one."""
        level = Level(self.tree, self.level)
        if self.min_domains is not None:
            limit = self.min_domains
            yield AtLeastDomains(policy=name, members=edge, weight=weight, level=level, limit=limit)
        if self.max_skew is not None and (eligible := self._eligible(edge, fleet)):
            yield Skew(
                policy=name,
                members=edge,
                weight=weight,
                level=level,
                domains=tuple(sorted(eligible)),
                limit=self.max_skew,
            )
        yield from hosts_with_domain(edge, fleet, level, name=name, weight=weight)

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """The domains asked for, and what evenness means for them."""
        level = Level(self.tree, self.level)
        parts = []
        if self.min_domains is not None:
            parts.append(f"{domains_text(level, self.min_domains)} for {members_text(edge)}")
        if self.max_skew is not None:
            several = domains_text(level, 2).removeprefix("2 ")
            parts.append(f"{members_text(edge)} over all {several} with skew <= {self.max_skew}")
        return "; ".join(parts)

    def weaker(self, edge: Edge) -> Iterable[Weaker]:
        """More skew, fewer domains, or those alone that no fence closes; and more members.

        More of them can even out the domains.
        """
        if self.max_skew is not None and self.fenced_domains == COUNT:
            yield Weaker(1, {"fenced_domains": SKIP})
        for step in range(1, STEPS + 1):
            if self.max_skew is not None and self.max_skew + step <= len(edge):
                yield Weaker(step, {"max_skew": self.max_skew + step})
            if self.min_domains is not None and self.min_domains - step >= 1:
                yield Weaker(step, {"min_domains": self.min_domains - step})
        if self.max_skew is not None:
            yield Weaker(2, {}, grow=1)
