"""Refutation by counting: proves some problems infeasible without a search.

Every test is a necessary condition, so `refuted` is a proof; passing all tests proves nothing.
Counts are upper bounds: how many members a host or domain could hold if it had to hold no others.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.topology import HOST
from moorage.engine.joint.affinity_counting import blocks_refute
from moorage.engine.joint.cost import excess
from moorage.engine.joint.problem import mask_of
from moorage.engine.joint.problem_index import index_problem
from moorage.engine.joint.separation_counting import separated_sides_refute
from moorage.engine.joint.shared_domain_counting import joined_members_refute
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    Near,
    SameDomain,
    Skew,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from moorage.engine.joint.problem import Problem
    from moorage.engine.joint.problem_index import LevelConstraint, ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


_MOST_SIZES: Final = 8
"""Sizes of members of which the largest are counted together."""


def refuted(problem: Problem) -> bool:
    """Whether counting alone proves that no placement meets every required primitive."""
    numbers = index_problem(problem)
    if _capacity_refutes(numbers) or _pool_refutes(numbers) or _fixed_members_refute(numbers):
        return True
    # Equal constraints on equal members, such as one for each pair of many, are tested once.
    different = {
        _shape(numbers, constraint): constraint
        for constraint in numbers.constraints
        if constraint.required and not isinstance(constraint.primitive, Apart)
    }
    if any(_ConstraintCounts(numbers, one).refuted() for one in different.values()):
        return True
    return (
        joined_members_refute(numbers)
        or separated_sides_refute(numbers, partial(_ConstraintCounts, numbers))
        or blocks_refute(numbers)
    )


def _shape(numbers: ProblemIndex, constraint: LevelConstraint) -> object:
    """Equal for constraints that the tests cannot tell apart."""
    sides = (_side_shape(numbers, some) for some in (constraint.members, constraint.others))
    return constraint.primitive.terms, *sides


def _side_shape(numbers: ProblemIndex, members: tuple[int, ...]) -> object:
    standing: list[int] = []
    moving: dict[int, list[int]] = {}
    for m in members:
        if (row := numbers.fixed_rows[m]) >= 0:
            standing.append(row)
        else:
            moving.setdefault(numbers.group_of[m], []).append(m)
    groups = [
        (
            numbers.alike[group],
            _role(numbers, group) if numbers.never_together else None,
            len(mine),
            numbers.host_limit(tuple(mine)),
        )
        for group, mine in moving.items()
    ]
    return tuple(sorted(standing)), tuple(sorted(groups, key=str))


def _capacity_refutes(numbers: ProblemIndex) -> bool:
    """Too few slots for a group of members, or too little of a class for all of them."""
    problem = numbers.problem
    if numbers.to_place and not problem.hosts:
        return True
    counts = _members_per_group(numbers, numbers.to_place)
    role_of = {group: _role(numbers, group) for group in counts}
    demand = np.zeros(len(problem.classes), dtype=np.int64)
    for group, count in counts.items():
        demand += count * problem.demand[role_of[group]]
    if (demand > np.maximum(problem.free, 0).sum(axis=0)).any():
        return True
    # Members that prefer to stay are groups of their own: there may be many groups of one role.
    return any(
        int((np.minimum(numbers.slots(role_of[group]), count) * numbers.allowed[group]).sum())
        < count
        for group, count in counts.items()
    ) or _sizes_refute(numbers, counts)


def _sizes_refute(numbers: ProblemIndex, counts: Mapping[int, int]) -> bool:
    """Whether too few fit of the members that take most of a class, host by host.

    Even if each took only what the least of them takes of every class.
    """
    distinct, size_of = numbers.sizes
    of_size: dict[int, list[int]] = {}
    for group in counts:
        of_size.setdefault(int(size_of[_role(numbers, group)]), []).append(group)
    if len(of_size) == 1:
        return False
    tried = set[frozenset[int]]()
    for k in np.flatnonzero(distinct[list(of_size)].any(axis=0)).tolist():
        ordered = sorted(of_size, key=lambda size: -distinct[size, k])
        for length in range(2, min(len(ordered), _MOST_SIZES) + 1):
            some = frozenset(ordered[:length])
            if some in tried:
                continue
            tried.add(some)
            groups = [group for size in some for group in of_size[size]]
            count = sum(counts[group] for group in groups)
            places = np.minimum(numbers.fitting(distinct[list(some)].min(axis=0)), count)
            open_to = np.logical_or.reduce([numbers.allowed[group] for group in groups])
            if int(places[open_to].sum()) < count:
                return True
    return False


def _pool_refutes(numbers: ProblemIndex) -> bool:
    """Whether members that can be only on a pool's hosts take more than its limit."""
    for pool in numbers.pools:
        inside = mask_of(pool.hosts, len(numbers.problem.hosts))
        takes = dict(pool.amounts)
        taken = sum(
            count * takes.get(numbers.problem.roles[_role(numbers, group)], 0)
            for group, count in _members_per_group(numbers, numbers.to_place).items()
            if not (numbers.allowed[group] & ~inside).any()
        )
        if taken > pool.limit:
            return True
    return False


def _fixed_members_refute(numbers: ProblemIndex) -> bool:
    """Whether the fixed members alone violate something that further members cannot correct."""
    problem = numbers.problem
    if numbers.fixed_on_forbidden:
        return True
    rows = problem.fixed[None, :]
    return not numbers.to_place and any(
        one.weight is None and excess(problem, one, rows)[0] > 0 for one in problem.primitives
    )


def _members_per_group(numbers: ProblemIndex, members: Iterable[int]) -> dict[int, int]:
    """Group -> how many of the members it has."""
    found: dict[int, int] = {}
    for m in members:
        found[numbers.group_of[m]] = found.get(numbers.group_of[m], 0) + 1
    return found


def _role(numbers: ProblemIndex, group: int) -> int:
    return numbers.role_of_group[group]


class _ConstraintCounts:
    """Per domain of a required constraint: fixed members, and how many more it could hold."""

    def __init__(self, numbers: ProblemIndex, constraint: LevelConstraint) -> None:
        fixed = numbers.fixed_rows
        self.numbers = numbers
        self.constraint = constraint
        self.hosts = numbers.hosts_by(constraint.primitive.level)
        self.to_place = [m for m in constraint.members if fixed[m] < 0]
        standing = constraint.domain_of[[fixed[m] for m in constraint.members if fixed[m] >= 0]]
        self.fixed = np.bincount(standing[standing >= 0], minlength=constraint.domain_count)
        self.groups = _members_per_group(numbers, self.to_place)
        self.slots = {group: self._slots(group, n) for group, n in self.groups.items()}
        on_host = sum(self.slots.values(), np.zeros(len(numbers.problem.hosts), dtype=np.int64))
        on_host = np.minimum(on_host, len(self.to_place))
        if len(self.groups) > 1:
            on_host = self._together(on_host)
        self.room = np.minimum(self.hosts.sums(on_host), len(self.to_place))
        # Members on hosts without a domain count nowhere.
        homeless = 0 if self.hosts.covers_all else int(on_host[constraint.domain_of < 0].sum())
        self.least = max(len(self.to_place) - homeless, 0)

    def _slots(self, group: int, count: int) -> Ints:
        """[H] how many of the constraint's members of a group fit, host limits included."""
        numbers = self.numbers
        slots = np.minimum(numbers.slots(_role(numbers, group)), count)
        slots *= numbers.allowed[group]
        mine = [m for m in self.to_place if numbers.group_of[m] == group]
        limit = numbers.host_limit(tuple(mine))
        if limit is not None:
            hosts = slice(numbers.problem.host_count)  # not the absent row, which is no host
            slots[hosts] = np.minimum(slots[hosts], limit)
        return slots

    def _together(self, on_host: Ints) -> Ints:
        """[H] of so many members of several groups those that fit on a host together.

        Each takes at least what the least of them takes of every class.
        """
        numbers = self.numbers
        roles = [_role(numbers, group) for group in self.groups]
        found = np.minimum(on_host, numbers.fitting(numbers.problem.demand[roles].min(axis=0)))
        limit = numbers.host_limit(tuple(self.to_place))
        if limit is not None:
            hosts = slice(numbers.problem.host_count)
            found[hosts] = np.minimum(found[hosts], limit)
        return found

    def refuted(self) -> bool:
        """Whether the constraint cannot be satisfied, whatever the other members do."""
        match self.constraint.primitive:
            case AtMost(limit=limit):
                open_slots = np.minimum(self.room, np.maximum(0, limit - self.fixed))
                return bool((self.fixed > limit).any() or open_slots.sum() < self.least)
            case AtMostTogether(domains=lose, limit=limit):
                return self._at_most_together_refuted(lose, limit)
            case AtLeastDomains(limit=limit):
                usable = int(((self.fixed > 0) | (self.room > 0)).sum())
                used = int((self.fixed > 0).sum())
                return min(usable, used + len(self.to_place)) < limit
            case SameDomain():
                return self._same_domain_refuted()
            case Skew(domains=domains, limit=limit):
                return self._skew_refuted(list(domains), limit)
            case _:
                return isinstance(self.constraint.primitive, Near) and self._near_refuted()

    def _at_most_together_refuted(self, lose: int, limit: int) -> bool:
        """Whether more members must be placed than fit if the `lose` fullest hold at most `limit`.

        If the least full of the `lose` fullest domains holds t, every other holds at most t.
        """
        most = np.sort(self.fixed + self.room)[::-1]
        largest = np.sort(self.fixed)[::-1][:lose].sum()
        if limit < 0 or largest > limit:
            return True
        if len(most) <= lose:
            bound = min(limit, int(most.sum()))
        else:
            t = min(limit // lose, int(most[lose - 1]))
            rest = int(np.minimum(most, t).sum()) - lose * t
            bound = min(limit, int(most[:lose].sum())) + rest
        return int(self.fixed.sum()) + self.least > bound

    def _same_domain_refuted(self) -> bool:
        """Whether no domain has the fixed members and room for all others."""
        fits = self.fixed == self.fixed.sum()
        if not self.to_place or self.least < len(self.to_place):
            return int((self.fixed > 0).sum()) > 1
        problem = self.numbers.problem
        demand = np.zeros(len(problem.classes), dtype=np.int64)
        for group, count in self.groups.items():
            fits &= self.hosts.sums(self.slots[group]) >= count
            demand += count * problem.demand[_role(self.numbers, group)]
        for k in np.flatnonzero(demand).tolist():
            fits &= self.hosts.sums(np.maximum(problem.free[:, k], 0)) >= demand[k]
        if self.constraint.primitive.level.name == HOST and problem.hosts_are_domains:
            fits &= ~self._cut_hosts()[: len(fits)]  # without the absent row
        return bool(self.constraint.members) and not fits.any()

    def _near_refuted(self) -> bool:
        """Whether too few members fit in as many domains as can have one of the others."""
        beside = replace(self.constraint, members=self.constraint.others, others=())
        others = _ConstraintCounts(self.numbers, beside)
        alone = (self.fixed > 0) & (others.fixed == 0)
        left = len(others.to_place) - int(alone.sum())
        if left < 0 or (alone & (others.room == 0)).any():
            return True
        sure = alone | (others.fixed > 0)
        fresh = np.sort(self.room[~sure & (others.room > 0)])[::-1]
        return int(self.room[sure].sum() + fresh[:left].sum()) < self.least

    def _cut_hosts(self) -> Bools:
        """[H] hosts whose devices cannot serve all members that must be together there."""
        found = np.zeros(len(self.numbers.problem.hosts), dtype=np.bool_)
        roles: dict[str, int] = {}
        for group, count in self.groups.items():
            role = self.numbers.problem.roles[_role(self.numbers, group)]
            roles[role] = roles.get(role, 0) + count
        for cut in self.numbers.never_together:
            if not cut.jointly and all(roles.get(role, 0) >= n for role, n in cut.counts):
                found[list(cut.hosts)] = True
        return found

    def _skew_refuted(self, domains: list[int], limit: int) -> bool:
        """Whether the emptiest domain must be more than `limit` below the fullest."""
        total = int(self.fixed.sum())
        most = self.fixed + self.room
        fullest = int(self.fixed.max(initial=0))
        bottom = 0
        if domains:
            bottom = min(int(most[domains].min()), (total + len(self.to_place)) // len(domains))
            lacking = np.maximum(0, fullest - limit - self.fixed[domains]).sum()
            if lacking > len(self.to_place):
                return True
        top = bottom + limit
        return fullest > top or int(np.minimum(most, top).sum()) < total + self.least
