"""Members that required policies force into one domain or several, and what cannot hold then.

Used without a fleet, by `static_check`, and for the hosts of a problem, by counting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from moorage.policies.primitives import Apart, AtLeastDomains, AtMost, AtMostTogether, Near

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from moorage.domain.member_names import MemberName
    from moorage.policies.primitives import Primitive, SameDomain

Counted: TypeAlias = AtMost | AtMostTogether | AtLeastDomains | Apart
"""The primitives that joined members can violate."""


@dataclass(frozen=True)
class JoinedMembers:
    """Members that policies force into one domain of a level: member -> representative."""

    head: Mapping[MemberName, MemberName]

    @classmethod
    def by(cls, joining: Iterable[SameDomain]) -> JoinedMembers:
        """The members joined by these primitives, each of which implies the level."""
        head: dict[MemberName, MemberName] = {}

        def find(member: MemberName) -> MemberName:
            while head.setdefault(member, member) != member:
                # Halving the way keeps it short, however the edges follow one another.
                above = head[member]
                head[member] = head[above]
                member = above
            return member

        for one in joining:
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

    def violate(self, one: Counted) -> bool:
        """Whether the joined groups of its members violate the primitive by their sizes or number.

        It is assumed that every member stands in some domain of the primitive's level.
        """
        groups = self.groups(one.members)
        largest = sorted(groups.values(), reverse=True)
        match one:
            case AtMost(limit=limit):
                return bool(largest) and largest[0] > limit
            case AtMostTogether(domains=lose, limit=limit):
                return (len(one.members) > limit and limit < lose) or sum(largest[:lose]) > limit
            case AtLeastDomains(limit=limit):
                return len(groups) < limit
            case Apart():
                return bool(groups.keys() & self.groups(one.others).keys())


def domains_needed(one: Primitive, count: int) -> int:
    """How many domains so many of its members need, if all stand in some."""
    match one:
        case AtMost(limit=limit):
            return -(-count // limit) if limit > 0 else 0
        case AtLeastDomains(limit=limit):
            return limit
        case AtMostTogether(domains=lose, limit=limit):
            each = limit // lose
            return lose + -(-(count - limit) // each) if each > 0 and count > limit else 0
        case _:
            return 0


def others_too_few(posted: Collection[Primitive]) -> bool:
    """Whether members that need others near them need more domains than there are others.

    It is assumed that every member stands in some domain of each primitive's level.
    """
    return any(
        isinstance(one, Counted)
        and one.level == near.level
        and domains_needed(one, len(one.members)) > len(near.others)
        and set(near.members).issuperset(one.members)
        for near in posted
        if isinstance(near, Near)
        for one in posted
    )
