"""A placement: the total assignment of members to hosts, as policies look at it.

Hosts are integers (rows of the problem), so that meanings stay cheap; what a host is called
is the engine's affair. A server on which slices are placed is a row as well. `PolicyView` is what
policies may ask about the fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from moorage.domain.member_names import MemberName
from moorage.domain.resources import Amounts
from moorage.domain.topology import Level, Topology


@dataclass(slots=True, unsafe_hash=True)
class Occupant:
    """A foreign consumer on a host, and its owner; does not change, as a `Booking` does not."""

    consumer: Final[str]
    project_id: Final[str]
    tags: Final[frozenset[str]] = frozenset()


class PolicyView(Protocol):
    """The fleet as policies see it. Host arguments and results are row numbers."""

    @property
    def topology(self) -> Topology:
        """The trees, for looking up levels and distances."""

    @property
    def project_id(self) -> str:
        """The project of the ensemble; consumers of others are foreign."""

    @property
    def host_count(self) -> int:
        """How many hosts there are; rows are `range(host_count)`."""

    def domains(self, level: Level) -> Sequence[int]:
        """Per host: the number of its domain at `level`, or -1.

        At the level `host` the row itself, but for servers that offer slices the row of their host.
        """

    def hosts_without_domain(self, level: Level) -> frozenset[int]:
        """Hosts that are in no domain of the level."""

    def domain_name(self, level: Level, domain: int) -> str:
        """The name of a domain number."""

    def eligible(self, member: MemberName) -> frozenset[int]:
        """Hosts that could hold the member if they were empty.

        Judged by total capacity, unit rules, traits and aggregates only: neither the present
        load nor any policy narrows it.
        """

    def eligible_domains(
        self, members: Sequence[MemberName], level: Level, *, fenced: bool = False
    ) -> frozenset[int]:
        """Domains with at least one host that is eligible for one of the members.

        With `fenced` only hosts count on which the request's required fences and bans let that
        member stand.
        """

    def hosts_in(self, names: frozenset[str]) -> frozenset[int]:
        """Hosts whose own name or UUID, or any domain (of any tree), or aggregate UUID is named."""

    def near(self, ensemble: str, level: Level) -> frozenset[int] | None:
        """Hosts in the domains of the level that hold members of another ensemble, by its id.

        None: it is not known, or deleted.
        """

    def names_text(self, names: frozenset[str]) -> str:
        """Names of hosts, domains and aggregates for texts that tenants read."""

    def hosts_with_traits(self, traits: frozenset[str]) -> frozenset[int]:
        """Hosts that have every one of the traits."""

    def hosts_beside_foreign(
        self, forbids: Callable[[Occupant], bool], level: Level
    ) -> frozenset[int]:
        """Hosts in a domain with a foreign consumer that `forbids` tells by project and tags."""

    def foreign_consumers(self, host: int) -> Sequence[Occupant]:
        """Consumers booked on the host's tree that are not of this ensemble."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The host of every member, on one fleet."""

    fleet: PolicyView
    hosts: Mapping[MemberName, int]

    def domain(self, member: MemberName, level: Level) -> int:
        """The number of the member's domain at `level`, or -1 where its host has none."""
        return self.fleet.domains(level)[self.hosts[member]]

    def domains(self, members: Sequence[MemberName], level: Level) -> list[int]:
        """Per member the number of its domain at `level`, or -1 where its host has none."""
        of_host, hosts = self.fleet.domains(level), self.hosts
        return [of_host[hosts[member]] for member in members]

    def counts(self, members: Sequence[MemberName], level: Level) -> dict[int, int]:
        """How many of `members` each domain of `level` holds; domain -1 is left out."""
        found: dict[int, int] = {}
        for domain in self.domains(members, level):
            if domain >= 0:
                found[domain] = found.get(domain, 0) + 1
        return found

    def by_domain(
        self, members: Sequence[MemberName], level: Level
    ) -> dict[int, tuple[MemberName, ...]]:
        """Those of `members` in each domain of `level` that holds any; -1 is left out."""
        found: dict[int, list[MemberName]] = {}
        for member, domain in zip(members, self.domains(members, level), strict=True):
            if domain >= 0:
                found.setdefault(domain, []).append(member)
        return {domain: tuple(some) for domain, some in found.items()}


@dataclass(frozen=True, slots=True)
class Place:
    """A member's place, ready to be booked: its host and the amounts per provider."""

    host: str
    """Root provider UUID."""
    allocations: Mapping[str, Amounts]
    """Provider UUID -> amounts; sums to the member's resources and those of its groups."""
    groups: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Name of a group -> UUID of the provider that serves it."""
    choice: int = 0
    """Which of its role's choices the member is placed as; 0 is the first."""
