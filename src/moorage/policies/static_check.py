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
from moorage.policies.hypothetical_fleet import WishGround
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
    """Whether these policies visibly contradict each other on any fleet.

    `levels` are the trees' levels from the top down, where they are known; otherwise
    region > zone > row > rack is taken for granted, and other names cannot be compared.

    Raises:
        UnknownPolicy, InvalidDescription: a policy cannot be understood.
    """
    ground = WishGround(levels)
    posted = _post(list(roles), list(members), list(statements), ground)

    @cache
    def together(level: Level) -> _Together:
        return _Together.at(level, posted, ground)

    counted = (one for one in posted if not isinstance(one, OnlyOn | NeverOn | SameDomain | Skew))
    if any(_too_many(one, together(one.level)) for one in counted):
        return True
    return ground.complete and _nowhere(posted, together(Level("", HOST)), ground)


def _post(
    roles: list[Role],
    members: list[MemberName],
    statements: list[PolicyStatement],
    ground: WishGround,
) -> list[Primitive]:
    rules = [
        (one, parse(one), edges(one, roles, members))
        for one in statements
        if one.required and Phase.CREATE in one.phases
    ]
    # The first round collects the names in the ground; only the second one counts.
    posted: list[Primitive] = []
    for _ in range(2):
        posted = [
            primitive
            for statement, policy, found in rules
            for edge in found
            for primitive in policy.post(edge, ground, name=statement.name, weight=None)
        ]
    return posted


@dataclass(frozen=True)
class _Together:
    """Members that required policies join in one domain of a level: member -> group's first."""

    head: Mapping[MemberName, MemberName]

    @classmethod
    def at(cls, level: Level, posted: list[Primitive], ground: WishGround) -> _Together:
        head: dict[MemberName, MemberName] = {}

        def find(member: MemberName) -> MemberName:
            while head.setdefault(member, member) != member:
                # Halving the way keeps it short, however the edges follow one another.
                above = head[member]
                head[member] = head[above]
                member = above
            return member

        for one in posted:
            if isinstance(one, SameDomain) and ground.within(one.level, level):
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


def _too_many(one: AtMost | AtMostTogether | AtLeastDomains | Apart, together: _Together) -> bool:
    """Whether the joined groups of its members are too large, or too few."""
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


def _nowhere(posted: list[Primitive], together: _Together, ground: WishGround) -> bool:
    """Whether every kind of host is excluded for a member, or for members joined on one host."""
    left: dict[MemberName, frozenset[int]] = {}
    every = frozenset(range(ground.host_count))
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
