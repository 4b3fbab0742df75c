"""Relaxes required policies that standing (fixed) members violate already.

Refusing a request does not move a server that runs where a policy does not allow it. So beside such
members a required policy demands that a placement makes nothing worse: its excess must be the least
that the standing members leave possible, if the others could be placed anywhere. For a primitive
with k members to be placed:

| Primitive | Least excess | Required of the others |
|---|---|---|
| `AtMost` | the surplus of standing members | to avoid the over-full domains |
| `AtMostTogether` | the sum of the largest standing counts above the limit | not to raise it |
| `SameDomain` | domains used by standing members beyond the first | to use one of these |
| `Apart` | domains shared by standing members | to avoid these, and to share no other |
| `OnlyOn`, `NeverOn` | standing members on wrong hosts | right hosts |
| `AtLeastDomains` | domains missing once k more are used | to add as many as they can |
| `Skew` | fullest less the level that k could fill up to, above the limit | the same |
| `Near` | domains of standing members without others, once k others stand there | the same |

For the last three, "no worse than now" would demand nothing while an ensemble is half placed, so
the new members must reduce the violation as far as their number can. Each primitive is replaced by
ones that hold exactly when the excess is the least (for `Apart` and `Near` slightly stricter ones:
no member comes to a domain that violates them), so solvers need no special case.

Only a hyperedge that was there before the decision is relaxed, as far as its members were in it and
had places: an edge that comes into being must hold, whoever is in it. So a zip's edge is relaxed if
it joined the same members before; that of other policies, for the part of it that stood. A policy
that the request states anew is not relaxed. Nor is one that no placement of all its members could
satisfy: then more members are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.joint.cost import members_of
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    Near,
    NeverOn,
    OnlyOn,
    SameDomain,
    Skew,
)
from moorage.policies.rules import edges_among

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.problem import Problem
    from moorage.policies.primitives import Primitive
    from moorage.policies.rules import PolicyRule

    Ints: TypeAlias = NDArray[np.int64]

Members: TypeAlias = "tuple[MemberName, ...]"


@dataclass(frozen=True, slots=True)
class StandingViolation:
    """By how much standing members violate a required policy, and which members do."""

    amount: int
    members: Members


NO_VIOLATION: Final = StandingViolation(0, ())


@dataclass(frozen=True, eq=False)
class FormerEdges:
    """The edges of one policy before the decision."""

    zipped: bool
    edges: Mapping[MemberName, tuple[frozenset[MemberName], ...]]
    """Member -> the edges that it was in."""

    def stood(self, edge: Iterable[MemberName]) -> frozenset[MemberName]:
        """The members of an edge, or of what was posted for it, that stood in it before."""
        members = frozenset(edge)
        known = (edge for one in members for edge in self.edges.get(one, ()))
        if self.zipped:
            return members if any(members <= edge for edge in known) else NOBODY
        return members & next(known, NOBODY)


NOBODY: Final[frozenset[MemberName]] = frozenset()


def former_edges(
    rules: Iterable[PolicyRule], request: EnsembleRequest
) -> Mapping[str, FormerEdges]:
    """Required policy that is not restated -> its edges before the decision of a request."""
    found: dict[str, FormerEdges] = {}
    for rule in rules:
        statement = rule.statement
        if not statement.required or statement.name in request.restated:
            continue
        if request.former_edges is None:
            edges = edges_among(statement, rule.edges, request.fixed)
        else:
            edges = request.former_edges.get(statement.name, ())
        of_member: dict[MemberName, tuple[frozenset[MemberName], ...]] = {}
        for edge in map(frozenset, edges):
            of_member |= {one: (*of_member.get(one, ()), edge) for one in edge}
        found[statement.name] = FormerEdges(statement.zip, of_member)
    return found


def relax_for_standing(
    problem: Problem, former: Mapping[str, FormerEdges]
) -> tuple[Problem, Mapping[str, StandingViolation]]:
    """Relax the required primitives that standing members violate.

    The primitives are as the policies posted them; those of policies without `former` edges are
    not relaxed.

    Returns:
        The relaxed problem, and policy -> violation by standing members.
    """
    if not (problem.fixed >= 0).any():
        return problem, MappingProxyType({})
    rows = {
        member: row
        for member, row in zip(problem.members, problem.fixed.tolist(), strict=True)
        if row >= 0
    }
    primitives: list[Primitive] = []
    found: dict[str, StandingViolation] = {}
    for one in problem.primitives:
        stood = former[one.policy].stood(members_of(one)) if one.policy in former else NOBODY
        standing = {member: rows[member] for member in stood if member in rows}
        broken, instead = _Relaxer(problem, standing).relax(one)
        if not broken.amount:
            primitives.append(one)
            continue
        primitives += (other for other in instead if other.members)
        known = found.get(one.policy, NO_VIOLATION)
        members = tuple(sorted({*known.members, *broken.members}))
        found[one.policy] = StandingViolation(known.amount + broken.amount, members)
    return replace(problem, primitives=tuple(primitives)), MappingProxyType(found)


class _Relaxer:
    """Relaxes a primitive, given the rows of its standing members; all others are to be placed."""

    def __init__(self, problem: Problem, standing: Mapping[MemberName, int]) -> None:
        self._problem = problem
        self._row = standing

    def _to_place(self, members: Members) -> Members:
        return tuple(one for one in members if one not in self._row)

    def _counts(self, domain_of: Ints, members: Members) -> Ints:
        """[D] the number of standing members in each domain."""
        rows = [self._row[one] for one in members if one in self._row]
        domains = domain_of[rows] if rows else np.zeros(0, dtype=np.int64)
        size = int(domain_of.max(initial=-1)) + 1
        return np.bincount(domains[domains >= 0], minlength=size).astype(np.int64)

    def _standing_in(self, domain_of: Ints, members: Members, domains: Iterable[int]) -> Members:
        numbers = set(domains)
        return tuple(
            one for one in members if one in self._row and int(domain_of[self._row[one]]) in numbers
        )

    def relax(self, one: Primitive) -> tuple[StandingViolation, Iterable[Primitive]]:
        """The violation of a required primitive, and the primitives that replace it."""
        if not any(member in self._row for member in one.members):
            return NO_VIOLATION, (one,)
        match one:
            case OnlyOn() | NeverOn():
                return self._hosts(one)
            case Apart() | Near():
                return self._apart(one) if isinstance(one, Apart) else self._near(one)
            case _:
                domain_of = self._problem.domains[one.level]
                counts = self._counts(domain_of, one.members)
        match one:
            case AtMost():
                return self._at_most(one, domain_of, counts)
            case SameDomain():
                return self._same_domain(one, domain_of, counts)
            case _:
                return self._with_other_limit(one, domain_of, counts)

    def _with_other_limit(
        self, one: AtMostTogether | AtLeastDomains | Skew, domain_of: Ints, counts: Ints
    ) -> tuple[StandingViolation, Iterable[Primitive]]:
        """Relax the primitives for which another limit is enough."""
        to_blame, surplus = list(range(len(counts))), 0
        match one:
            case AtMostTogether():
                to_blame = np.argsort(-counts, kind="stable")[: one.domains].tolist()
                surplus = int(counts[to_blame].sum()) - one.limit
            case AtLeastDomains():
                surplus = one.limit - int((counts > 0).sum()) - len(self._to_place(one.members))
            case Skew():
                top = int(counts.max(initial=0))
                to_blame = np.flatnonzero(counts == top).tolist()
                surplus = top - self._level(one, counts) - one.limit
        amount = 0 if self._unsatisfiable(one) else max(0, surplus)
        limit = one.limit + (-amount if isinstance(one, AtLeastDomains) else amount)
        members = self._standing_in(domain_of, one.members, to_blame)
        return StandingViolation(amount, members), (replace(one, limit=limit),)

    def _unsatisfiable(self, one: AtMostTogether | AtLeastDomains | Skew) -> bool:
        """Whether members are to be placed, and no placement of all members satisfies it."""
        count = len(one.members)
        if not self._to_place(one.members):
            return False
        match one:
            case AtMostTogether():
                return min(count, one.domains) > one.limit
            case AtLeastDomains():
                return count < one.limit
            case Skew():
                uneven = not one.domains or count % len(one.domains) > 0
                return one.limit < int(uneven)

    def _level(self, one: Skew, counts: Ints) -> int:
        """How full the emptiest eligible domain could become with the members to place."""
        if not one.domains:
            return 0
        eligible = np.sort(counts[list(one.domains)])
        left = len(self._to_place(one.members))
        level = int(eligible[0])
        for filled, above in enumerate([*eligible[1:].tolist(), None], start=1):
            if above is None or (above - level) * filled > left:
                return level + left // filled
            left -= (above - level) * filled
            level = int(above)
        raise AssertionError("the last step returns")

    def _hosts(self, one: OnlyOn | NeverOn) -> tuple[StandingViolation, Iterable[Primitive]]:
        inside = isinstance(one, OnlyOn)
        wrong = tuple(
            member
            for member in one.members
            if member in self._row and (self._row[member] in one.hosts) is not inside
        )
        rest = replace(one, members=_without(one.members, wrong))
        return StandingViolation(len(wrong), wrong), (rest,)

    def _at_most(
        self, one: AtMost, domain_of: Ints, counts: Ints
    ) -> tuple[StandingViolation, Iterable[Primitive]]:
        full = np.flatnonzero(counts > one.limit)
        standing = self._standing_in(domain_of, one.members, full.tolist())
        amount = int((counts[full] - one.limit).sum())
        return StandingViolation(amount, standing), (
            replace(one, members=_without(one.members, standing)),
            self._never_on(one, self._to_place(one.members), np.isin(domain_of, full)),
        )

    def _same_domain(
        self, one: SameDomain, domain_of: Ints, counts: Ints
    ) -> tuple[StandingViolation, Iterable[Primitive]]:
        used = np.flatnonzero(counts)
        standing = self._standing_in(domain_of, one.members, used.tolist())
        elsewhere = (domain_of >= 0) & ~np.isin(domain_of, used)
        away = self._never_on(one, self._to_place(one.members), elsewhere)
        return StandingViolation(max(0, len(used) - 1), standing), (away,)

    def _apart(self, one: Apart) -> tuple[StandingViolation, Iterable[Primitive]]:
        domain_of = self._problem.domains[one.level]
        ours, theirs = (self._counts(domain_of, side) for side in (one.members, one.others))
        both = np.flatnonzero((ours > 0) & (theirs > 0))
        everyone = (*one.members, *one.others)
        standing = self._standing_in(domain_of, everyone, both.tolist())
        mine, yours = (_without(side, standing) for side in (one.members, one.others))
        shared = np.isin(domain_of, both)
        parted = (replace(one, members=mine, others=yours),) if mine and yours else ()
        return StandingViolation(len(both), standing), (
            *parted,
            self._never_on(one, self._to_place(everyone), shared),
        )

    def _near(self, one: Near) -> tuple[StandingViolation, Iterable[Primitive]]:
        domain_of = self._problem.domains[one.level]
        ours, theirs = (self._counts(domain_of, side) for side in (one.members, one.others))
        alone = np.flatnonzero((ours > 0) & (theirs == 0))
        standing = self._standing_in(domain_of, one.members, alone.tolist())
        coming = self._to_place(one.others)
        there = frozenset(np.flatnonzero(np.isin(domain_of, alone)).tolist())
        return StandingViolation(max(0, len(alone) - len(coming)), standing), (
            replace(one, members=self._to_place(one.members)),
            OnlyOn(policy=one.policy, members=coming, hosts=there),
            AtMost(policy=one.policy, members=coming, level=one.level, limit=1),
        )

    def _never_on(
        self, one: Primitive, members: Members, hosts: np.typing.NDArray[np.bool_]
    ) -> NeverOn:
        rows = frozenset(np.flatnonzero(hosts).tolist())
        return NeverOn(policy=one.policy, members=members, hosts=rows)


def _without(members: Members, gone: Members) -> Members:
    left_out = set(gone)
    return tuple(one for one in members if one not in left_out)
