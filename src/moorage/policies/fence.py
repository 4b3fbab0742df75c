"""fence: only on these hosts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from moorage.domain.errors import InvalidDescription
from moorage.policies.contract import OUTSIDE, Example, Violation, Weaker
from moorage.policies.levels import members_text
from moorage.policies.parameters import about, read
from moorage.policies.primitives import OnlyOn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge
    from moorage.policies.primitives import Primitive


@dataclass(frozen=True, slots=True)
class Fence:
    """The selected members are only on the named hosts.

    `domains` names hosts, domains of any tree and aggregates (by UUID): a host is inside when
    any of them holds it. `traits` narrows further: the host must have every one. Use it for
    licences bound to hosts, or for a part of the fleet that is set apart. Give at least one of
    the two. Broken by one for every member outside, as a host
    is that is in no domain.
    """

    type: ClassVar[str] = "fence"
    summary: ClassVar[str] = "only on these domains, aggregates or hosts"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("in the rack", {"domains": ["r1"]}, ("r1/h1", "r1/h3"), good=True),
        Example("outside", {"domains": ["r1"]}, ("r1/h1", "r2/h1"), good=False),
        Example("any of several", {"domains": ["r1", "z2"]}, ("r1/h1", "r3/h2"), good=True),
        Example("a single host", {"domains": ["r2/h2"]}, ("r2/h2",), good=True),
        Example("hosts with a trait", {"traits": ["CUSTOM_FAST"]}, ("r1/h1",), good=False),
        Example("a host in no domain", {"domains": ["z1"]}, (OUTSIDE,), good=False),
    )

    domains: frozenset[str] = field(
        default=frozenset(),
        metadata=about("Names of hosts or domains, UUIDs of aggregates; any of them will do."),
    )
    traits: frozenset[str] = field(
        default=frozenset(), metadata=about("Traits the host must have, every one.")
    )

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Fence:
        """Read wire parameters; one of `domains` and `traits` must be given."""
        policy = read(cls, parameters, path=path)
        if not policy.domains and not policy.traits:
            raise InvalidDescription("give domains, traits or both", path=path)
        return policy

    def check(self, topology: Topology) -> None:
        """No check: names may also be hosts or aggregates, which come and go."""

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """One for each member outside."""
        inside = self._inside(placement.fleet)
        return tuple(
            Violation((member,), f"{member} is on no host {self._words(placement.fleet)}")
            for member in edge
            if placement.hosts[member] not in inside
        )

    def _inside(self, fleet: PolicyView) -> frozenset[int]:
        inside = frozenset(range(fleet.host_count))
        if self.domains:
            inside &= fleet.hosts_in(self.domains)
        if self.traits:
            inside &= fleet.hosts_with_traits(self.traits)
        return inside

    def _words(self, fleet: PolicyView) -> str:
        named = [f"in {fleet.names_text(self.domains)}"] if self.domains else []
        named += [f"with {', '.join(sorted(self.traits))}"] if self.traits else []
        return " and ".join(named)

    def slack(self, edge: Edge, placement: Placement) -> None:
        """None: the policy is met or not, with no measure in between."""

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """Only on the hosts inside."""
        named = fleet.hosts_in(self.domains)
        fast = fleet.hosts_with_traits(self.traits)
        hosts = fast if not self.domains else named if not self.traits else named & fast
        yield OnlyOn(policy=name, members=edge, weight=weight, hosts=hosts)

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """Hosts inside the fence."""
        return f"hosts {self._words(fleet)} for {members_text(edge)}"

    def weaker(self, edge: Edge) -> Iterable[Weaker]:
        """One trait less."""
        if len(self.traits) > 1 or (self.traits and self.domains):
            for trait in sorted(self.traits)[:5]:
                yield Weaker(1, {"traits": sorted(self.traits - {trait})})
