"""Refutes policies that cross: members forced into one domain that must be apart, or spread.

Or members in more domains than there are others, of which each domain needs one. A proof that needs
no search and no capacity, only which domains lie within which. Like every test by counting it is a
necessary condition: passing it proves nothing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from moorage.policies.primitives import Apart, AtLeastDomains, AtMost, AtMostTogether, SameDomain
from moorage.policies.shared_domains import JoinedMembers, others_too_few

if TYPE_CHECKING:
    from moorage.domain.topology import Level
    from moorage.engine.joint.problem import Problem
    from moorage.engine.joint.problem_index import LevelConstraint, ProblemIndex


def joined_members_refute(numbers: ProblemIndex) -> bool:
    """Whether members that must share a domain violate another required constraint by that."""
    problem = numbers.problem
    housed = _Housed(numbers)
    required = [one for one in numbers.constraints if one.required and housed.all_of(one)]
    if others_too_few([one.primitive for one in required]):
        return True
    joining = [one.primitive for one in required if isinstance(one.primitive, SameDomain)]
    if not joining:
        return False

    @cache
    def implies(inner: Level, outer: Level) -> bool:
        return _within(problem, inner, outer)

    @cache
    def together(level: Level) -> JoinedMembers:
        return JoinedMembers.by(one for one in joining if implies(one.level, level))

    return any(
        together(one.primitive.level).violate(one.primitive)
        for one in required
        if isinstance(one.primitive, AtMost | AtMostTogether | AtLeastDomains | Apart)
    )


def _within(problem: Problem, inner: Level, outer: Level) -> bool:
    """Whether every domain of one level lies in one domain of the other, as a whole."""
    if inner == outer:
        return True
    inside = problem.domains[inner] >= 0
    inner_of, outer_of = problem.domains[inner][inside], problem.domains[outer][inside]
    if not len(inner_of) or (outer_of < 0).any():
        return False
    one_of_each = np.zeros(int(inner_of.max()) + 1, dtype=np.int64)
    one_of_each[inner_of] = outer_of
    return bool((one_of_each[inner_of] == outer_of).all())


class _Housed:
    """Which members are in some domain of a level wherever they may stand."""

    def __init__(self, numbers: ProblemIndex) -> None:
        self.numbers = numbers
        self._groups: dict[tuple[Level, int], bool] = {}

    def all_of(self, constraint: LevelConstraint) -> bool:
        """Whether all its members are: those elsewhere would not be counted."""
        if self.numbers.hosts_by(constraint.primitive.level).covers_all:
            return True
        fixed = self.numbers.fixed_rows
        members = (*constraint.members, *constraint.others)
        groups = {self.numbers.group_of[m] for m in members if fixed[m] < 0}
        rows = [fixed[m] for m in members if fixed[m] >= 0]
        return all(constraint.domain_of[row] >= 0 for row in rows) and all(
            self._group(constraint, group) for group in groups
        )

    def _group(self, constraint: LevelConstraint, group: int) -> bool:
        key = (constraint.primitive.level, self.numbers.alike[group])
        if key not in self._groups:
            hosts = constraint.domain_of[self.numbers.rows_of(group)]
            self._groups[key] = bool((hosts >= 0).all())
        return self._groups[key]
