"""Whether a request has a placement, by trying all, with policies read from their documentation.

It shares no code with the engine and the policies. Hosts have amounts of resource classes, traits,
aggregates and domains; members are servers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeAlias

Member: TypeAlias = tuple[str, int]
Edge: TypeAlias = Sequence[Member]
Places: TypeAlias = Mapping[Member, str]
Body: TypeAlias = dict[str, Any]
"""A role or a policy as it is written in a request."""

_NO_LIMIT = 3
"""Two hosts are never further apart: rack, zone, nothing in common."""


@dataclass
class FleetHost:
    """A host, and what is taken from it."""

    capacity: Mapping[str, int]
    traits: frozenset[str]
    aggregates: frozenset[str]
    domains: Mapping[str, str]
    """Level -> domain, but for the level `host`."""
    used: Counter[str] = field(default_factory=Counter)
    projects: list[str] = field(default_factory=list)
    """Of consumers that are of no ensemble."""

    def holds(self, choice: Body) -> bool:
        """Whether one member would fit here if the host was empty."""
        required = [{one} if isinstance(one, str) else set(one) for one in choice["required"]]
        return (
            all(self.capacity.get(name, 0) >= n for name, n in choice["resources"].items())
            and all(one & self.traits for one in required)
            and not self.traits & {*choice["forbidden"]}
            and all(one in self.aggregates for one in choice["member_of"])
        )


Fleet: TypeAlias = dict[str, FleetHost]


def is_required(policy: Body) -> bool:
    """Whether the policy is required."""
    return bool(policy.get("strength", "required") == "required")


@dataclass
class PlacementQuestion:
    """A request with the members that stand already, in the fleet as it is."""

    fleet: Fleet
    project: str
    roles: Sequence[Body]
    policies: Sequence[Body]
    standing: Mapping[Member, str] = field(default_factory=dict)
    coming: Collection[Member] | None = None
    """The members to place; None: those of all roles."""

    @property
    def members(self) -> list[Member]:
        """All members, those that stand and those that come."""
        every = {(role["name"], i) for role in self.roles for i in range(role["count"])}
        return sorted({*self.standing, *(every if self.coming is None else self.coming)})

    @property
    def is_possible(self) -> bool:
        """Whether there is a placement that keeps every required policy."""
        return next(self._placements(), None) is not None

    def broken(self, places: Places) -> list[str]:
        """The required policies that a placement breaks, of edges that are not all standing."""
        return [
            str(policy["name"])
            for policy in self.policies
            if is_required(policy)
            for edge in self.edges(policy)
            if not set(edge) <= self.standing.keys() and self.excess(policy, edge, places)
        ]

    def _placements(self) -> Iterator[dict[Member, str]]:
        size = {role["name"]: role["resources"] for role in self.roles}
        coming = [one for one in self.members if one not in self.standing]
        left = {
            name: Counter(host.capacity) - Counter(host.used) for name, host in self.fleet.items()
        }
        places = dict(self.standing)

        def placed(number: int) -> Iterator[dict[Member, str]]:
            if number == len(coming):
                if not self.broken(places):
                    yield places
                return
            member = coming[number]
            for name in self._hosts_of(member):
                if all(left[name][key] >= n for key, n in size[member[0]].items()):
                    places[member] = name
                    left[name].subtract(size[member[0]])
                    yield from placed(number + 1)
                    left[name].update(size[member[0]])
                    del places[member]

        yield from placed(0)

    def _hosts_of(self, member: Member) -> list[str]:
        role = next(one for one in self.roles if one["name"] == member[0])
        return [name for name, host in self.fleet.items() if host.holds(role)]

    def edges(self, policy: Body) -> list[list[Member]]:
        """The sets of members to which a policy applies."""
        if isinstance(policy.get("between"), list):
            chosen = [one for side in policy["between"] for role in side for one in self._of(role)]
            return [sorted(set(chosen))]
        if "zip" in policy:
            columns = [self._of(one) for one in policy["zip"]]
            return [list(dict.fromkeys(row)) for row in zip(*columns, strict=False)]
        return [sorted({one for text in policy["members"] for one in self._of(text)})]

    def _of(self, selector: str) -> list[Member]:
        tags = {role["name"]: role["tags"] for role in self.roles}
        name, _, index = selector.removesuffix("]").partition("[")
        return [
            one
            for one in self.members
            if selector in {"*", one[0]}
            or selector.removeprefix("tag:") in tags[one[0]]
            or (index and one == (name, int(index)))
        ]

    def excess(self, policy: Body, edge: Edge, places: Places) -> int:
        """By how much a placement breaks a policy for one edge, as its documentation counts."""
        if policy["type"] in {"fence", "ban"}:
            return sum(places[one] not in self._open(policy) for one in edge)
        found: int = getattr(self, f"_{policy['type'].replace('-', '_')}")(policy, edge, places)
        return found

    def _open(self, policy: Body) -> set[str]:
        """The hosts that a fence or ban leaves."""
        names, traits = {*policy.get("domains", ())}, {*policy.get("traits", ())}
        inside = {
            name
            for name, host in self.fleet.items()
            if names & {name, *host.domains.values(), *host.aggregates}
        }
        if policy["type"] == "ban":
            having = {name for name, host in self.fleet.items() if traits & host.traits}
            return {*self.fleet} - inside - having
        having = {name for name, host in self.fleet.items() if traits <= host.traits}
        return having & (inside if names else {*self.fleet})

    def domain(self, host: str, level: str) -> str | None:
        """The domain of a level in which a host is."""
        return host if level == "host" else self.fleet[host].domains.get(level)

    def _counted(self, policy: Body, edge: Edge, places: Places) -> tuple[Counter[str], int]:
        """How many members each domain holds, and how many are in none."""
        found = [self.domain(places[one], policy.get("level", "host")) for one in edge]
        return Counter(one for one in found if one is not None), found.count(None)

    def _affinity(self, policy: Body, edge: Edge, places: Places) -> int:
        counts, nowhere = self._counted(policy, edge, places)
        return nowhere + max(len(counts) - 1, 0)

    def _anti_affinity(self, policy: Body, edge: Edge, places: Places) -> int:
        counts, nowhere = self._counted(policy, edge, places)
        most: int = policy.get("max_per_domain", 1)
        return nowhere + sum(max(count - most, 0) for count in counts.values())

    def _survive(self, policy: Body, edge: Edge, places: Places) -> int:
        counts, nowhere = self._counted(policy, edge, places)
        lost = sum(count for _, count in counts.most_common(policy.get("lose", 1)))
        return nowhere + max(int(policy["keep"]) - len(edge) + lost, 0)

    def _spread(self, policy: Body, edge: Edge, places: Places) -> int:
        counts, nowhere = self._counted(policy, edge, places)
        excess = nowhere + max(int(policy.get("min_domains", 0)) - len(counts), 0)
        if "max_skew" in policy:
            fullest = max(counts.values(), default=0)
            least = min((counts[one] for one in self._eligible(policy, edge)), default=fullest)
            excess += max(fullest - least - int(policy["max_skew"]), 0)
        return excess

    def _eligible(self, policy: Body, edge: Edge) -> set[str]:
        """The domains that could hold one of the members if they were empty."""
        fences = [one for one in self.policies if one["type"] in {"fence", "ban"}]
        if policy.get("fenced_domains") == "count":
            fences = []
        found = set()
        for member in edge:
            hosts = set(self._hosts_of(member))
            for fence in fences:
                if is_required(fence) and any(member in one for one in self.edges(fence)):
                    hosts &= self._open(fence)
            found |= {self.domain(name, policy.get("level", "host")) for name in hosts}
        return {one for one in found if one is not None}

    def _exclusive(self, policy: Body, edge: Edge, places: Places) -> int:
        counts, nowhere = self._counted(policy, edge, places)
        level, against = policy.get("level", "host"), policy.get("against", "other_projects")
        taken = {
            self.domain(name, level)
            for name, host in self.fleet.items()
            if any(against == "others" or one != self.project for one in host.projects)
        }
        return nowhere + sum(count for domain, count in counts.items() if domain in taken)

    def distance(self, one: str, other: str) -> int:
        """How far two hosts are apart, in levels."""
        if one == other:
            return 0
        for number, level in enumerate(("rack", "zone"), start=1):
            if (domain := self.domain(one, level)) and domain == self.domain(other, level):
                return number
        return _NO_LIMIT

    def _proximity(self, policy: Body, edge: Edge, places: Places) -> int:
        """Whether it is broken, not by how much, where a distance is asked for."""
        most = policy.get("max_distance")
        if isinstance(policy.get("between"), list):
            return self._far_sides(policy, edge, places)
        if most is None:
            return self._affinity(policy, edge, places)
        pairs = combinations([places[one] for one in edge], 2)
        return int(any(self.distance(*pair) > most for pair in pairs))

    def _far_sides(self, policy: Body, edge: Edge, places: Places) -> int:
        first, *others = policy["between"]
        broken = 0
        for member in edge:
            if member[0] in first:
                own = self.domain(places[member], policy["level"])
                sides = [
                    {self.domain(places[one], policy["level"]) for one in edge if one[0] in side}
                    for side in others
                ]
                broken += own is None or any(own not in side for side in sides)
        return broken

    def _separation(self, policy: Body, edge: Edge, places: Places) -> int:
        """Whether it is broken, not by how much."""
        least, level = policy.get("min_distance"), policy.get("level", "host")
        sides = policy.get("between", "members")

        def side(member: Member) -> object:
            if sides == "members":
                return member
            if sides == "roles":
                return member[0]
            return next(i for i, one in enumerate(sides) if member[0] in one)

        def close(one: str, other: str) -> bool:
            if least is not None:
                return self.distance(one, other) < int(least)
            return self.domain(one, level) == self.domain(other, level)

        nowhere = least is None and any(self.domain(places[one], level) is None for one in edge)
        return int(nowhere) + sum(
            side(one) != side(other) and close(places[one], places[other])
            for one, other in combinations(edge, 2)
        )
