"""The closed set of primitives that every policy compiles to.

A solver that handles these handles any policy, a plug-in's too. Adding one is an ADR.
Each primitive has an integer `excess` over a placement: 0 when it holds, otherwise by how
much it is broken. `weight` None makes it required; a number makes it preferred and costs
`weight * excess`. The sum of the excesses of what a policy posts for a hyperedge equals the
sum of the amounts of its violations there (tested for every policy).

A member on a host that has no domain at the level breaks a required level primitive; that
is posted apart, as `OnlyOn` over the hosts that do, so the level primitives count hosts with
a domain only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from moorage.domain.member_names import MemberName
    from moorage.domain.topology import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class _Posted:
    policy: str
    """Name of the policy that posted it."""
    members: tuple[MemberName, ...]
    weight: int | None = None

    @property
    def terms(self) -> tuple[object, ...]:
        """What it requires, without its policy and members; hashable."""
        own = type(self).__slots__  # the fields that its class adds
        return type(self), self.weight, *(getattr(self, one) for one in own if one != "others")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost(_Posted):
    """Each domain of `level` holds at most `limit` of the members.

    Excess: sum over domains of `max(0, count - limit)`.
    """

    level: Level
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMostTogether(_Posted):
    """Any `domains` domains of `level` together hold at most `limit` of the members.

    Excess: `max(0, sum of the `domains` largest counts - limit)`.
    """

    level: Level
    domains: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeastDomains(_Posted):
    """The members stand in at least `limit` different domains of `level`.

    Excess: `max(0, limit - domains used)`.
    """

    level: Level
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SameDomain(_Posted):
    """All members stand in one domain of `level`. Excess: `domains used - 1`."""

    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Skew(_Posted):
    """The fullest of `domains` holds at most `limit` more of the members than the emptiest.

    `domains` are the numbers of the eligible domains, used or not; a member in any other
    domain counts as well. Excess: `max(0, max count - min count over domains - limit)`.
    """

    level: Level
    domains: tuple[int, ...]
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart(_Posted):
    """No domain of `level` holds both one of `members` and one of `others`.

    Excess: number of domains that hold both.
    """

    level: Level
    others: tuple[MemberName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Near(_Posted):
    """Each domain of `level` that holds one of `members` also holds one of `others`.

    Excess: number of domains that hold one of `members` and none of `others`.
    """

    level: Level
    others: tuple[MemberName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyOn(_Posted):
    """The members stand on these hosts only (rows). Excess: members elsewhere."""

    hosts: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverOn(_Posted):
    """The members stand on none of these hosts (rows). Excess: members that do."""

    hosts: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverTogether:
    """The counts do not all occur together on any of these hosts (rows).

    `counts` are (role, number) pairs: at least so many placed members of each role at one host
    cannot be served by its devices. With `jointly` the hosts are judged as if they were one.
    Excess: hosts where all counts are reached; with `jointly` 1 for all of them.
    """

    hosts: frozenset[int]
    counts: tuple[tuple[str, int], ...]
    jointly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """The members placed on these hosts (rows) together take at most `limit` of one pool.

    `amounts` are (role, amount) pairs: what one member of that role takes.
    Excess: `max(0, taken - limit)`.
    """

    hosts: frozenset[int]
    amounts: tuple[tuple[str, int], ...]
    limit: int


Primitive: TypeAlias = (
    AtMost | AtMostTogether | AtLeastDomains | SameDomain | Skew | Apart | Near | OnlyOn | NeverOn
)
"""What policies compile to."""

Sided: TypeAlias = Apart | Near
"""The primitives with `others`."""

Cut: TypeAlias = NeverTogether | Pooled
"""Constraints that no policy posts: facts about devices that a solve finds. Always required, and
only for members to be placed; fixed members have their devices already."""
