"""ban: never on these hosts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from moorage.domain.errors import InvalidDescription
from moorage.policies.contract import OUTSIDE, Example, Violation, Weaker
from moorage.policies.levels import members_text
from moorage.policies.parameters import about, read
from moorage.policies.primitives import NeverOn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge
    from moorage.policies.primitives import Primitive


@dataclass(frozen=True, slots=True)
class Ban:
    """The selected members are on none of the named hosts.

    `domains` names hosts, domains of any tree and aggregates (by UUID); `traits` adds every
    host that has any one of them. Use it to keep a role off hosts that are being retired, or
    off a zone with a planned outage. Give at least one of the two. Broken by one for every
    member on a banned host; one that is in no domain is banned by its name, an aggregate or a trait
    only.
    """

    type: ClassVar[str] = "ban"
    summary: ClassVar[str] = "never on these domains, aggregates or hosts"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("elsewhere", {"domains": ["r1"]}, ("r2/h1", "r3/h1"), good=True),
        Example("in the banned rack", {"domains": ["r1"]}, ("r1/h2", "r3/h1"), good=False),
        Example("any of several", {"domains": ["r2", "z2"]}, ("r3/h2",), good=False),
        Example("a single host", {"domains": ["r2/h2"]}, ("r2/h1",), good=True),
        Example("no host has the trait", {"traits": ["CUSTOM_OLD"]}, ("r1/h1",), good=True),
        Example("a host in no domain", {"domains": ["z1", "z2"]}, (OUTSIDE,), good=True),
    )

    domains: frozenset[str] = field(
        default=frozenset(),
        metadata=about("Names of hosts or domains, UUIDs of aggregates; all are banned."),
    )
    traits: frozenset[str] = field(
        default=frozenset(), metadata=about("Traits of which the host must not have any.")
    )

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Ban:
        """Read wire parameters; one of `domains` and `traits` must be given."""
        policy = read(cls, parameters, path=path)
        if not policy.domains and not policy.traits:
            raise InvalidDescription("give domains, traits or both", path=path)
        return policy

    def check(self, topology: Topology) -> None:
        """No check: names may also be hosts or aggregates, which come and go."""

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """One for each member on a banned host."""
        banned = self._banned(placement.fleet)
        return tuple(
            Violation((member,), f"{member} stands on a banned host", named=False)
            for member in edge
            if placement.hosts[member] in banned
        )

    def _banned(self, fleet: PolicyView) -> frozenset[int]:
        banned = fleet.hosts_in(self.domains) if self.domains else frozenset[int]()
        for trait in self.traits:
            banned |= fleet.hosts_with_traits(frozenset({trait}))
        return banned

    def slack(self, edge: Edge, placement: Placement) -> None:
        """None: the policy is met or not, with no measure in between."""

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """One ban for what is named and one for each trait, no host counted twice."""
        seen = frozenset[int]()
        groups = [fleet.hosts_in(self.domains)] if self.domains else []
        groups += [fleet.hosts_with_traits(frozenset({trait})) for trait in sorted(self.traits)]
        for hosts in groups:
            if hosts - seen:
                yield NeverOn(policy=name, members=edge, weight=weight, hosts=hosts - seen)
            seen |= hosts

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """Hosts that are not banned."""
        named = [f"outside {fleet.names_text(self.domains)}"] if self.domains else []
        named += [f"without {', '.join(sorted(self.traits))}"] if self.traits else []
        return f"hosts {' and '.join(named)} for {members_text(edge)}"

    def weaker(self, edge: Edge) -> Iterable[Weaker]:
        """One name less."""
        if len(self.domains) + len(self.traits) > 1:
            for name in sorted(self.domains)[:5]:
                yield Weaker(1, {"domains": sorted(self.domains - {name})})
            for trait in sorted(self.traits)[:5]:
                yield Weaker(1, {"traits": sorted(self.traits - {trait})})
