"""Contradictions between policies that need no fleet and no search to be seen.

Everything is read from the primitives the policies compile to, so a plug-in's policies are
checked as well, in time that grows with the description alone. Only required policies that
hold at creation count. What passes may still be impossible: `satisfiable` searches further.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from moorage.domain.ensembles import Phase, edges
from moorage.domain.errors import Contradiction
from moorage.domain.topology import HOST, Level
from moorage.policies.levels import plural
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
from moorage.policies.wishes import WishGround

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.ensembles import MemberName, PolicyStatement, Role
    from moorage.policies.primitives import Primitive


def check(
    roles: Iterable[Role],
    members: Iterable[MemberName],
    statements: Iterable[PolicyStatement],
    *,
    levels: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Refuse policies that no placement on any fleet can meet together.

    `levels` are the trees' levels from the top down, where they are known; otherwise
    region > zone > row > rack is taken for granted, and other names cannot be compared.

    Raises:
        Contradiction: the policies are named; a single one can contradict itself.
        UnknownPolicy, InvalidDescription: a policy cannot be understood.
    """
    ground = WishGround(levels)
    posted = _post(list(roles), list(members), list(statements), ground)

    @cache
    def together(level: Level) -> _Together:
        return _Together.at(level, posted, ground)

    for one in posted:
        if not isinstance(one, OnlyOn | NeverOn | SameDomain | Skew):
            _check_counts(one, together(one.level))
    if ground.complete:
        _check_hosts(posted, together(Level("", HOST)), ground)


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
    # The first round tells the ground which names there are; only the second one counts.
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
    """Members that required policies put into one domain of a level, and which ones did."""

    head: Mapping[MemberName, MemberName]
    policies: Mapping[MemberName, frozenset[str]]
    """Head -> policies that join its members."""

    @classmethod
    def at(cls, level: Level, posted: list[Primitive], ground: WishGround) -> _Together:
        head: dict[MemberName, MemberName] = {}
        joins = [
            one for one in posted if isinstance(one, SameDomain) and ground.within(one.level, level)
        ]

        def find(member: MemberName) -> MemberName:
            while head.setdefault(member, member) != member:
                # Halving the way keeps it short, however the edges follow one another.
                above = head[member]
                head[member] = head[above]
                member = above
            return member

        for one in joins:
            for member in one.members[1:]:
                head[find(member)] = find(one.members[0])
        policies: dict[MemberName, frozenset[str]] = {}
        for one in joins:
            if len(one.members) > 1:
                first = find(one.members[0])
                policies[first] = policies.get(first, frozenset()) | {one.policy}
        return cls({member: find(member) for member in head}, policies)

    def groups(self, members: Iterable[MemberName]) -> dict[MemberName, int]:
        """How many of the members each joined group has."""
        found: dict[MemberName, int] = {}
        for member in members:
            first = self.head.get(member, member)
            found[first] = found.get(first, 0) + 1
        return found

    def blame(self, policy: str, heads: Iterable[MemberName]) -> tuple[str, ...]:
        """The policy, and those that joined these groups."""
        joining = frozenset[str]().union(*(self.policies.get(one, frozenset()) for one in heads))
        return (policy, *sorted(joining - {policy}))


def _check_counts(
    one: AtMost | AtMostTogether | AtLeastDomains | Apart, together: _Together
) -> None:
    groups = together.groups(one.members)
    largest = sorted(groups, key=lambda head: -groups[head])
    match one:
        case AtMost(limit=limit):
            if groups and groups[largest[0]] > limit:
                _refuse(one, together, largest[:1], f"allows {limit} in one {one.level}")
        case AtMostTogether(domains=lose, limit=limit):
            if len(one.members) > limit and limit < lose:
                keep = len(one.members) - limit
                lost = plural(one.level, lose)
                text = f"cannot keep {keep} of {len(one.members)} after losing {lost}"
                _refuse(one, together, [], text)
            if sum(groups[head] for head in largest[:lose]) > limit:
                _refuse(
                    one, together, largest[:lose], f"allows {limit} in {plural(one.level, lose)}"
                )
        case AtLeastDomains(limit=limit):
            if len(groups) < limit:
                joined = [head for head in groups if groups[head] > 1]
                text = f"needs {plural(one.level, limit)}, its {len(one.members)} members use fewer"
                _refuse(one, together, joined if len(one.members) >= limit else [], text)
        case Apart():
            both = groups.keys() & together.groups(one.others).keys()
            if both:
                _refuse(one, together, both, f"keeps them in different {one.level}s")


def _refuse(one: Primitive, together: _Together, heads: Iterable[MemberName], text: str) -> None:
    policies = together.blame(one.policy, heads)
    others = f"; {' and '.join(policies[1:])} puts members together" if policies[1:] else ""
    raise Contradiction(f"{one.policy} {text}{others}", policies=policies)


def _check_hosts(posted: list[Primitive], together: _Together, ground: WishGround) -> None:
    """Members, or members joined on one host, for whom every kind of host is ruled out."""
    left: dict[MemberName, frozenset[int]] = {}
    policies: dict[MemberName, list[str]] = {}
    every = frozenset(range(ground.host_count))
    for one in posted:
        if not isinstance(one, OnlyOn | NeverOn):
            continue
        hosts = one.hosts if isinstance(one, OnlyOn) else every - one.hosts
        for member in one.members:
            head = together.head.get(member, member)
            left[head] = left.get(head, every) & hosts
            policies.setdefault(head, []).append(one.policy)
            if not left[head]:
                joined = together.blame(one.policy, [head])
                named = tuple(dict.fromkeys((*policies[head], *joined)))
                raise Contradiction(
                    f"{' and '.join(named)} leave no host for {member}", policies=named
                )
