"""exclusive: no consumers of others in the members' domains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from moorage.domain.ensembles import EXCLUDING
from moorage.domain.topology import DEFAULT_TREE, HOST, SERVER, Level
from moorage.policies.contract import OUTSIDE, Example, Violation, Weaker
from moorage.policies.levels import (
    domains_text,
    hosts_with_domain,
    members_text,
    members_without_domain,
)
from moorage.policies.parameters import about, read
from moorage.policies.primitives import NeverOn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.placement import Occupant, Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge
    from moorage.policies.primitives import Primitive

OTHERS = "others"
OTHER_PROJECTS = "other_projects"
TAG = "tag:"


@dataclass(frozen=True, slots=True)
class Exclusive:
    """No foreign consumer is in a domain that holds one of the selected members.

    `against` says who is foreign: consumers of `other_projects` (the default), all `others`
    that are not of this ensemble, or those tagged `tag:<name>`. Members of the ensemble itself
    never are. While the ensemble is placed, its domains are closed to foreign consumers. At the
    level `server` it is about slices; a member that is a server shares itself with nobody.
    Broken by one for every member in a domain with a foreigner, and for every member whose host is
    in no domain of the level (of `server` servers need none).
    """

    type: ClassVar[str] = EXCLUDING
    summary: ClassVar[str] = "no consumers of others in the members' domains"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("an empty host", {}, ("r1/h1",), good=True, foreign=("r1/h2",)),
        Example("a host in use", {}, ("r1/h1",), good=False, foreign=("r1/h1",)),
        Example("a rack in use", {"level": "rack"}, ("r1/h1",), good=False, foreign=("r1/h2",)),
        Example(
            "a rack of our own",
            {"level": "rack"},
            ("r1/h1", "r1/h2"),
            good=True,
            foreign=("r2/h1", "r3/h1"),
        ),
        Example(
            "against everybody else",
            {"against": "others"},
            ("r1/h1",),
            good=False,
            foreign=("r1/h1",),
        ),
        Example(
            "only consumers with the tag are foreign",
            {"against": "tag:noisy"},
            ("r1/h1",),
            good=True,
            foreign=("r1/h1",),
        ),
        Example("alone, in no rack", {"level": "rack"}, (OUTSIDE,), good=False),
    )

    against: str = field(
        default=OTHER_PROJECTS,
        metadata=about(
            "Who is foreign: other_projects, others, or tag:<name>.",
            pattern=r"others|other_projects|tag:.+",
            allowed="others, other_projects, or tag: and a tag",
        ),
    )
    level: str = field(default=HOST, metadata=about("Level of the domains to keep alone."))
    tree: str = field(default=DEFAULT_TREE, metadata=about("Tree the level belongs to."))

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Exclusive:
        """Read wire parameters."""
        return read(cls, parameters, path=path)

    def check(self, topology: Topology) -> None:
        """Refuse a level the tree does not have."""
        topology.find_level(self.level, self.tree)

    def forbids(self, occupant: Occupant, project_id: str) -> bool:
        """Whether a consumer is foreign to an ensemble of that project."""
        if self.against == OTHERS:
            return True
        if self.against == OTHER_PROJECTS:
            return occupant.project_id != project_id
        return self.against.removeprefix(TAG) in occupant.tags

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """One for each member whose domain holds a foreign consumer."""
        level = Level(self.tree, self.level)
        return (
            *(() if level.name == SERVER else members_without_domain(edge, placement, level)),
            *self._shared(edge, placement, level),
        )

    def _shared(self, edge: Edge, placement: Placement, level: Level) -> Iterator[Violation]:
        fleet = placement.fleet
        used = set(placement.counts(edge, level))
        taken = {
            domain
            for host, domain in enumerate(fleet.domains(level))
            if domain in used and self._foreign(fleet, host)
        }
        for member in edge:
            domain = placement.domain(member, level)
            if domain in taken:
                name = fleet.domain_name(level, domain)
                yield Violation((member,), f"{member} shares {level} {name} with foreigners")

    def _foreign(self, fleet: PolicyView, host: int) -> bool:
        return any(self.forbids(one, fleet.project_id) for one in fleet.foreign_consumers(host))

    def slack(self, edge: Edge, placement: Placement) -> None:
        """None: the policy is met or not, with no measure in between."""

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """Bans the hosts of domains that hold a foreign consumer."""
        level = Level(self.tree, self.level)
        hosts = fleet.hosts_beside_foreign(lambda one: self.forbids(one, fleet.project_id), level)
        if hosts:
            yield NeverOn(policy=name, members=edge, weight=weight, hosts=hosts)
        if level.name != SERVER:
            yield from hosts_with_domain(edge, fleet, level, name=name, weight=weight)

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """Domains without foreign consumers."""
        level = Level(self.tree, self.level)
        domains = domains_text(level, 2).removeprefix("2 ")
        return f"{domains} without {self._who()} for {members_text(edge)}"

    def _who(self) -> str:
        """Who is foreign, as a phrase."""
        if self.against == OTHERS:
            return "consumers outside the ensemble"
        if self.against == OTHER_PROJECTS:
            return "consumers of other projects"
        return f"other consumers with the tag {self.against.removeprefix(TAG)}"

    def weaker(self, edge: Edge) -> Iterable[Weaker]:
        """Tolerate consumers of the own project."""
        if self.against == OTHERS:
            yield Weaker(1, {"against": OTHER_PROJECTS})
