"""Whether as many new members fit one after the other as fit at once.

One after the other, each gets some place that is allowed, and keeps it. With bounds in domains of
one tree it does not matter which: these bounds are a laminar matroid, in which what remains for the
others depends only on how many came. This includes members that must be in one domain each, with a
pair, if those come first of which the domain is the smallest, and rounds of a spread without skew,
after which no domain has more than another, so that spreads over what these are parts of are as
they are too. It is not so of bounds in two trees, as each place uses up one of both, nor of devices
and pools that several hosts share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.topology import HOST
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

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.domain.topology import Level
    from moorage.engine.joint.build import BuiltProblem
    from moorage.policies.primitives import Primitive

    Bools: TypeAlias = NDArray[np.bool_]


def fits_in_any_order(built: BuiltProblem, *, at_once: bool = False) -> bool:
    """Whether its members to place, which fit, can be placed one by one, wherever each goes.

    They are of one role, and come in the order of their names. With `at_once` they come together,
    and further members of the role after them. False may be said of some that can.
    """
    problem = built.problem
    if problem.cuts or problem.proof is not None or built.alternatives is not None:
        return False
    bounds = _Bounds(built, at_once=at_once)
    return not bounds.are_relaxed() and bounds.are_laminar()


class _Bounds:
    """What the required policies demand of the new members."""

    def __init__(self, built: BuiltProblem, *, at_once: bool) -> None:
        self._built = built
        self._at_once = at_once
        self._problem = built.problem
        self._row = dict(zip(built.problem.members, built.problem.fixed.tolist(), strict=True))
        self._new = [one for one in built.problem.members if self._row[one] < 0]
        self._role = int(built.problem.role_of[built.problem.members.index(self._new[0])])
        self._levels: list[Level] = []
        self._skews: list[Skew] = []
        self._alone: dict[MemberName, Bools] = {}
        """New member -> hosts of the domain in which alone it may be."""

    def are_laminar(self) -> bool:
        """See `fits_in_any_order`."""
        if not all(self._counts(one) for one in self._problem.primitives):
            return False
        if len({level.tree for level in self._levels if level.name != HOST}) > 1:
            return False
        if self._skews:
            return not self._alone and self._keep_rounds()
        return self._come_in_order()

    def are_relaxed(self) -> bool:
        """Whether standing members break a policy in a way that changes with the new ones.

        What separates members, or names hosts, keeps the new ones off the same hosts throughout.
        """
        new = set(self._new)
        for rule in self._built.rules:
            broken = self._built.standing.get(rule.statement.name)
            if broken is None or not any(new & set(edge) for edge in rule.edges):
                continue
            posted = self._built.policy_view.posted(rule)
            if not all(isinstance(one, AtMost | OnlyOn | NeverOn) for one in posted):
                return True
        return False

    def _keep_rounds(self) -> bool:
        """Whether each round leaves skews and other bounds as they would be by any other way."""
        bounded = {level.name for level in self._levels}
        if len(self._skews) == 1:
            return bounded <= {HOST, self._skews[0].level.name}
        levels = self._problem.domains
        upwards = [HOST, *self._built.terrain.topology.upwards(self._skews[0].level.tree)]
        finest = min(self._skews, key=lambda one: upwards.index(one.level.name))
        open_to = np.flatnonzero(self._problem.allowed[self._role][: self._problem.host_count])
        everywhere = np.isin(levels[finest.level][open_to], list(finest.domains)).all()
        return finest.limit == 0 and bool(everywhere)

    def _come_in_order(self) -> bool:
        """Whether each that must be in a domain comes before those of which this is a part."""
        everywhere = np.ones(len(self._problem.hosts), dtype=np.bool_)
        seen: list[Bools] = []
        for member in self._new:
            hosts = self._alone.get(member, everywhere)
            if any((one & hosts).any() and (one & ~hosts).any() for one in seen):
                return False
            if not any(np.array_equal(one, hosts) for one in seen):
                seen.append(hosts)
        return True

    def _counts(self, one: Primitive) -> bool:
        """Note what a primitive bounds; False if it cannot be told."""
        members = members_of(one)
        new = [member for member in members if self._row[member] < 0]
        if one.weight is not None or not new:
            return True
        if len(new) < len(self._new):
            return self._restricts(one, new)
        match one:
            case OnlyOn() | NeverOn():
                return True
            case Apart() | Near():
                others = set(new) & set(one.others)
                return not others or (isinstance(one, Apart) and len(others) == len(new))
            case AtMost() | Skew():
                self._levels.append(one.level)
                self._skews += [one] if isinstance(one, Skew) else []
                return True
            case _:
                return self._is_met(one, [row for m in members if (row := self._row[m]) >= 0])

    def _is_met(self, one: AtMostTogether | AtLeastDomains | SameDomain, fixed: list[int]) -> bool:
        """Whether standing members see to it that a primitive does not depend on the order."""
        if not fixed or isinstance(one, SameDomain):
            # What bounds from below, of which `survive` grows with the members, is met for good by
            # those that come at once.
            return bool(fixed) or (self._at_once and not isinstance(one, SameDomain))
        used = self._used(one.level, fixed)
        if isinstance(one, AtLeastDomains):
            return int((used > 0).sum()) >= one.limit
        # Its limit grows with the members, or is not reached by all of them in one domain.
        top = np.sort(used)[::-1][: one.domains].sum()
        return int(top) + len(self._new) <= one.limit

    def _used(self, level: Level, rows: list[int]) -> NDArray[np.int64]:
        domains = self._problem.domains[level][rows]
        return np.bincount(domains[domains >= 0], minlength=1)

    def _restricts(self, one: Primitive, new: list[MemberName]) -> bool:
        """Note where a part of the new members may be, if each has to be in a domain of its own."""
        everyone = members_of(one)
        fixed = [self._row[member] for member in everyone if self._row[member] >= 0]
        if len(new) != 1 or not fixed:
            return False
        (member,) = new
        if isinstance(one, OnlyOn):
            # Where hosts with a domain are meant, the pair's domain is said as well.
            known = self._alone.get(member)
            return known is not None and bool(np.isin(np.flatnonzero(known), list(one.hosts)).all())
        if not isinstance(one, SameDomain):
            return False
        domain_of = self._problem.domains[one.level]
        used = np.unique(domain_of[fixed])
        if len(used) != 1 or used[0] < 0:
            return False
        self._levels.append(one.level)
        hosts = domain_of == used[0]
        known = self._alone.get(member, hosts)
        if (hosts & known).sum() != min(hosts.sum(), known.sum()):
            return False
        self._alone[member] = hosts & known
        return True
