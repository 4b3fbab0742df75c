"""Chooses the members that leave when an ensemble shrinks, so that its policies keep holding.

A choice is judged by the policies' meanings on the members that stay: no required policy may be
violated more than it is now. Among such choices the least penalty of preferred policies is best,
then members that come early in the given order. A small shrinking is decided by trying every
choice. A large one removes one member after the other and then exchanges members; what it finds is
judged in the same way, but another choice may be better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from math import comb, prod
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.ensembles import KEEPING, MemberSelection, edges
from moorage.domain.topology import DEFAULT_TREE, HOST, Level
from moorage.policies.rules import edges_among

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

    from moorage.domain.ensembles import Role
    from moorage.domain.member_names import MemberName
    from moorage.domain.placement import Placement
    from moorage.policies.rules import PolicyRule

MOST_TRIED: Final = 2_000
"""Choices up to which all are tried."""
_MOST_JUDGED: Final = 500_000
"""Members judged in all choices together, up to which all are tried."""
_EASED: Final = frozenset({"affinity", "anti-affinity", "separation", "fence", "ban", *KEEPING})
"""Policy types that fewer members can only meet better."""


@dataclass(frozen=True, slots=True)
class Shrinking:
    """An ensemble that shrinks: its rules, where its members are, and who may leave."""

    roles: Sequence[Role]
    rules: Sequence[PolicyRule]
    """The policies that must hold for what stays."""
    placement: Placement
    """All placed members; the others violate nothing."""
    counts: Mapping[str, int]
    """Role -> how many of its members leave."""
    order: Sequence[MemberName]
    """Members that may leave: those first that leave rather than others."""
    unplaced: Collection[MemberName] = ()
    """Members without a place, of which nothing is judged; a zip pairs them with others."""

    def judged(self, gone: Collection[MemberName]) -> Judgement:
        """What the policies say of the members that stay."""
        every = [one for one in (*self.placement.hosts, *self.unplaced) if one not in gone]
        stay = self.placement.hosts.keys() - set(gone)
        selection = MemberSelection(self.roles, every)
        required: dict[str, int] = {}
        penalty = 0
        for rule in self.rules:
            amount = sum(
                violation.amount
                for edge in edges_among(rule.statement, selection.edges(rule.statement), stay)
                for violation in rule.policy.violations(edge, self.placement)
            )
            if rule.statement.weight is None:
                required[rule.statement.name] = amount
            else:
                penalty += rule.statement.weight * amount
        return Judgement(required, penalty)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How much the required policies are violated, and the penalty of the preferred ones."""

    required: Mapping[str, int]
    penalty: int

    def excess(self, before: Judgement) -> int:
        """By how much required policies are violated more than before, all together."""
        return sum(max(amount - before.required[name], 0) for name, amount in self.required.items())


@dataclass(frozen=True, slots=True)
class ShrinkChoice:
    """The members that leave; or, if `broken`, the least bad choice that was found."""

    gone: tuple[MemberName, ...]
    broken: tuple[str, ...] = ()
    """Required policies that would be violated more than they are."""
    proved: bool = True
    """Whether every choice was tried."""


def choose_members(shrinking: Shrinking) -> ShrinkChoice:
    """The best choice that was found; see the module.

    Raises:
        TimeExpired: the deadline of the request passed.
    """
    shrinking = replace(shrinking, rules=_concerned(shrinking))
    pools = _pools(shrinking)
    choices = prod(comb(len(pool), count) for pool, count in pools)
    before = shrinking.judged(())
    every = choices <= min(MOST_TRIED, _MOST_JUDGED // (len(shrinking.placement.hosts) + 1))
    if every:
        gone = _exhaustive(shrinking, pools, before)
    else:
        gone = _exchanged(shrinking, _greedy(shrinking, before), before)
    after = shrinking.judged(gone)
    broken = tuple(
        name for name, amount in after.required.items() if amount > before.required[name]
    )
    return ShrinkChoice(tuple(sorted(gone)), broken, proved=every)


def _concerned(shrinking: Shrinking) -> list[PolicyRule]:
    """The policies about roles that shrink; the others stay as they are."""
    members = (*shrinking.placement.hosts, *shrinking.unplaced)
    return [
        rule
        for rule in shrinking.rules
        if any(
            shrinking.counts.get(name.role)
            for edge in edges(rule.statement, shrinking.roles, members)
            for name in edge
        )
    ]


def _pools(shrinking: Shrinking) -> list[tuple[list[MemberName], int]]:
    """The members of each role that may leave, in their order, and how many of them do."""
    return [
        ([name for name in shrinking.order if name.role == role], count)
        for role, count in shrinking.counts.items()
        if count
    ]


def _exhaustive(
    shrinking: Shrinking, pools: list[tuple[list[MemberName], int]], before: Judgement
) -> frozenset[MemberName]:
    """The best of all choices; the first of equals, as they come in the members' order."""
    best: frozenset[MemberName] = frozenset()
    least: tuple[int, int] | None = None
    for some in product(*(combinations(pool, count) for pool, count in pools)):
        deadline.check()
        gone = frozenset(name for names in some for name in names)
        value = _value(shrinking, gone, before)
        if least is None or value < least:
            best, least = gone, value
            if least == (0, 0):
                break
    return best


def _value(
    shrinking: Shrinking, gone: Collection[MemberName], before: Judgement
) -> tuple[int, int]:
    judged = shrinking.judged(gone)
    return judged.excess(before), judged.penalty


def _greedy(shrinking: Shrinking, before: Judgement) -> set[MemberName]:
    """One member after the other, each the one that does the least harm."""
    left = dict(shrinking.counts)
    kinds = _kinds(shrinking)
    waiting: dict[Hashable, list[MemberName]] = {}
    for name in reversed(shrinking.order):
        waiting.setdefault(kinds[name], []).append(name)
    gone: set[MemberName] = set()
    place = {name: at for at, name in enumerate(shrinking.order)}
    while any(left.values()):
        deadline.check()
        first = [some[-1] for some in waiting.values() if some and left.get(some[-1].role)]
        best, least = first[0], None
        for name in sorted(first, key=place.__getitem__):
            value = _value(shrinking, gone | {name}, before)
            if least is None or value < least:
                best, least = name, value
            if value == (0, 0):
                break
        waiting[kinds[best]].pop()
        gone.add(best)
        left[best.role] -= 1
    return gone


def _exchanged(
    shrinking: Shrinking, gone: set[MemberName], before: Judgement
) -> frozenset[MemberName]:
    """The choice improved by exchanges of one member, while required policies are broken."""
    chosen = frozenset(gone)
    value = _value(shrinking, chosen, before)
    while value[0] > 0:
        better = min(
            (
                (_value(shrinking, other, before), sorted(other))
                for other in _others(shrinking, chosen)
            ),
            default=(value, []),
        )
        if better[0] >= value:
            break
        value, chosen = better[0], frozenset(better[1])
    return chosen


def _others(shrinking: Shrinking, gone: frozenset[MemberName]) -> Iterator[frozenset[MemberName]]:
    """Choices that differ in one member, one for each kind of it and of the one it replaces."""
    kinds = _kinds(shrinking)
    leave = {kinds[name]: name for name in sorted(gone)}
    come = {kinds[name]: name for name in reversed(shrinking.order) if name not in gone}
    for out, into in product(leave.values(), come.values()):
        if out.role == into.role:
            deadline.check()
            yield gone - {out} | {into}


def _kinds(shrinking: Shrinking) -> Mapping[MemberName, Hashable]:
    """Members of one kind are equal for all preferences, and for what fewer members can violate."""
    single = any(
        rule.statement.zip or any(one.member is not None for one in rule.statement.members)
        for rule in shrinking.rules
    )
    if single:
        return {name: name for name in shrinking.order}
    levels = sorted(
        {
            Level(
                getattr(rule.policy, "tree", DEFAULT_TREE),
                getattr(rule.policy, "level", None) or HOST,
            )
            for rule in shrinking.rules
            if rule.statement.weight is not None or rule.statement.type not in _EASED
        }
    )
    hosts = shrinking.placement.hosts
    return {
        name: (
            name.role,
            tuple(shrinking.placement.domain(name, level) for level in levels)
            if name in hosts
            else None,
        )
        for name in shrinking.order
    }
