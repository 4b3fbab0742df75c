"""Contradictions between policies that are visible without a fleet or a search.

Everything is read from the primitives the policies compile to, so a plug-in's policies are
checked as well, in time that grows with the description alone. Only required policies that
hold at creation count. What passes may still be impossible: `satisfiable` searches further.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from moorage.domain.ensembles import Phase, edges
from moorage.domain.topology import HOST, Level
from moorage.policies.hypothetical_fleet import HypotheticalFleet
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    NeverOn,
    OnlyOn,
    SameDomain,
    Skew,
)
from moorage.policies.registry import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.ensembles import MemberName, PolicyStatement, Role
    from moorage.policies.primitives import Primitive


def contradictory(
    roles: Iterable[Role],
    members: Iterable[MemberName],
    statements: Iterable[PolicyStatement],
    *,
    levels: Mapping[str, tuple[str, ...]] | None = None,
) -> bool:
    """Whether these policies contradict each other on every fleet, as far as primitives show it.

    `levels` are the trees' levels from the top down, if known; otherwise region > zone > row > rack
    is assumed, and other names cannot be compared.

    Raises:
        UnknownPolicy, InvalidDescription: a policy is of an unknown type or invalid.
    """
    fleet = HypotheticalFleet(levels)
    posted = _post(list(roles), list(members), list(statements), fleet)

    @cache
    def together(level: Level) -> _JoinedMembers:
        return _JoinedMembers.at(level, posted, fleet)

    counted = (one for one in posted if not isinstance(one, OnlyOn | NeverOn | SameDomain | Skew))
    if any(_violates_counts(one, together(one.level)) for one in counted):
        return True
    return fleet.complete and _has_no_host(posted, together(Level("", HOST)), fleet)


def _post(
    roles: list[Role],
    members: list[MemberName],
    statements: list[PolicyStatement],
    fleet: HypotheticalFleet,
) -> list[Primitive]:
    rules = [
        (one, parse(one), edges(one, roles, members))
        for one in statements
        if one.required and Phase.CREATE in one.phases
    ]
    # The first round collects the names in the fleet; only the second one counts.
    posted: list[Primitive] = []
    for _ in range(2):
        posted = [
            primitive
            for statement, policy, found in rules
            for edge in found
            for primitive in policy.post(edge, fleet, name=statement.name, weight=None)
        ]
    return posted


@dataclass(frozen=True)
class _JoinedMembers:
    """Members that policies force into one domain of a level: member -> representative."""

    head: Mapping[MemberName, MemberName]

    @classmethod
    def at(cls, level: Level, posted: list[Primitive], fleet: HypotheticalFleet) -> _JoinedMembers:
        head: dict[MemberName, MemberName] = {}

        def find(member: MemberName) -> MemberName:
            while head.setdefault(member, member) != member:
                # Halving the way keeps it short, however the edges follow one another.
                above = head[member]
                head[member] = head[above]
                member = above
            return member

        for one in posted:
            if isinstance(one, SameDomain) and fleet.implies(one.level, level):
                for member in one.members[1:]:
                    head[find(member)] = find(one.members[0])
        return cls({member: find(member) for member in head})

    def groups(self, members: Iterable[MemberName]) -> dict[MemberName, int]:
        """The number of the members in each joined group."""
        found: dict[MemberName, int] = {}
        for member in members:
            first = self.head.get(member, member)
            found[first] = found.get(first, 0) + 1
        return found


def _violates_counts(
    one: AtMost | AtMostTogether | AtLeastDomains | Apart, together: _JoinedMembers
) -> bool:
    """Whether the joined groups of its members violate the primitive by their sizes or number."""
    groups = together.groups(one.members)
    largest = sorted(groups.values(), reverse=True)
    match one:
        case AtMost(limit=limit):
            return bool(largest) and largest[0] > limit
        case AtMostTogether(domains=lose, limit=limit):
            return (len(one.members) > limit and limit < lose) or sum(largest[:lose]) > limit
        case AtLeastDomains(limit=limit):
            return len(groups) < limit
        case Apart():
            return bool(groups.keys() & together.groups(one.others).keys())


def _has_no_host(
    posted: list[Primitive], together: _JoinedMembers, fleet: HypotheticalFleet
) -> bool:
    """Whether all hosts are excluded for a member, or for members joined on one host."""
    left: dict[MemberName, frozenset[int]] = {}
    every = frozenset(range(fleet.host_count))
    for one in posted:
        if not isinstance(one, OnlyOn | NeverOn):
            continue
        hosts = one.hosts if isinstance(one, OnlyOn) else every - one.hosts
        for member in one.members:
            head = together.head.get(member, member)
            left[head] = left.get(head, every) & hosts
            if not left[head]:
                return True
    return False
