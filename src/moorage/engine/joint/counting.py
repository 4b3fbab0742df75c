"""Refutation by counting: requests that cannot be met, without any search.

Every test is a necessary condition, so `refuted` is a proof; passing them all proves nothing.
Counts are upper bounds: how many members a host or domain could hold if everything else
gave way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.topology import HOST
from moorage.engine.joint.cost import excess
from moorage.engine.joint.problem_index import index
from moorage.policies.primitives import (
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    SameDomain,
    Skew,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from moorage.engine.joint.problem import Problem
    from moorage.engine.joint.problem_index import Crowd, Index

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


def refuted(problem: Problem) -> bool:
    """Whether counting alone proves that no placement meets every required primitive."""
    numbers = index(problem)
    if _too_little_room(numbers) or _too_small_a_pool(numbers) or _already_broken(numbers):
        return True
    return any(_Tally(numbers, crowd).refuted() for crowd in numbers.crowds if crowd.required)


def _too_little_room(numbers: Index) -> bool:
    """Too few slots for a group of members, or too little of a class for all of them."""
    problem = numbers.problem
    if numbers.moving and not problem.hosts:
        return True
    counts = _groups(numbers, numbers.moving)
    role_of = {group: _role(numbers, group) for group in counts}
    wanted = np.zeros(len(problem.classes), dtype=np.int64)
    for group, count in counts.items():
        wanted += count * problem.demand[role_of[group]]
    if (wanted > np.maximum(problem.free, 0).sum(axis=0)).any():
        return True
    # Who prefers to stay is a group alone: there may be many of one role.
    return any(
        int(np.minimum(numbers.slots(role_of[group]), count)[numbers.may[group]].sum()) < count
        for group, count in counts.items()
    )


def _too_small_a_pool(numbers: Index) -> bool:
    """Whether members that can stand on a pool's hosts only take more than there is."""
    for pool in numbers.pools:
        inside = np.zeros(len(numbers.problem.hosts), dtype=np.bool_)
        inside[list(pool.hosts)] = True
        takes = dict(pool.amounts)
        taken = sum(
            count * takes.get(numbers.problem.roles[_role(numbers, group)], 0)
            for group, count in _groups(numbers, numbers.moving).items()
            if not (numbers.may[group] & ~inside).any()
        )
        if taken > pool.limit:
            return True
    return False


def _already_broken(numbers: Index) -> bool:
    """Whether the fixed members alone break something that further members cannot mend."""
    problem = numbers.problem
    if numbers.misplaced:
        return True
    rows = problem.fixed[None, :]
    return not numbers.moving and any(
        one.weight is None and excess(problem, one, rows)[0] > 0 for one in problem.primitives
    )


def _groups(numbers: Index, members: Iterable[int]) -> dict[int, int]:
    """How many of the members are of each group."""
    found: dict[int, int] = {}
    for m in members:
        found[numbers.group_of[m]] = found.get(numbers.group_of[m], 0) + 1
    return found


def _role(numbers: Index, group: int) -> int:
    return numbers.role_of_group[group]


class _Tally:
    """One required crowd: what stands in each domain, and what could at most be added."""

    def __init__(self, numbers: Index, crowd: Crowd) -> None:
        fixed = numbers.problem.fixed
        self.numbers = numbers
        self.crowd = crowd
        self.moving = [m for m in crowd.members if fixed[m] < 0]
        self.standing = self._per_domain(
            np.bincount(
                [fixed[m] for m in crowd.members if fixed[m] >= 0],
                minlength=len(numbers.problem.hosts),
            )
        )
        self.groups = _groups(numbers, self.moving)
        self.slots = {group: self._slots(group, n) for group, n in self.groups.items()}
        on_host = sum(self.slots.values(), np.zeros(len(numbers.problem.hosts), dtype=np.int64))
        on_host = np.minimum(on_host, len(self.moving))
        self.room = np.minimum(self._per_domain(on_host), len(self.moving))
        # Members on hosts without a domain count nowhere.
        homeless = int(on_host[crowd.domain_of < 0].sum())
        self.least = max(len(self.moving) - homeless, 0)

    def _slots(self, group: int, count: int) -> Ints:
        """[H] how many of the crowd's members of a group fit, their own limits included."""
        numbers = self.numbers
        slots = np.minimum(numbers.slots(_role(numbers, group)), count)
        slots = np.where(numbers.may[group], slots, 0)
        mine = {m for m in self.moving if numbers.group_of[m] == group}
        for c in numbers.crowds_of[next(iter(mine))]:
            other = numbers.crowds[c]
            level = other.primitive.level
            if (
                other.required
                and level.name == HOST
                and isinstance(other.primitive, AtMost)
                and mine <= set(other.members)
            ):
                slots = np.minimum(slots, other.primitive.limit)
        return slots

    def _per_domain(self, values: Ints) -> Ints:
        inside = self.crowd.domain_of >= 0
        sums = np.bincount(
            self.crowd.domain_of[inside], weights=values[inside], minlength=self.crowd.size
        )
        return sums.astype(np.int64)

    def refuted(self) -> bool:
        """Whether the crowd cannot hold whatever the others do."""
        match self.crowd.primitive:
            case AtMost(limit=limit):
                open_slots = np.minimum(self.room, np.maximum(0, limit - self.standing))
                return bool((self.standing > limit).any() or open_slots.sum() < self.least)
            case AtMostTogether(domains=lose, limit=limit):
                return self._too_many(lose, limit)
            case AtLeastDomains(limit=limit):
                usable = int(((self.standing > 0) | (self.room > 0)).sum())
                used = int((self.standing > 0).sum())
                return min(usable, used + len(self.moving)) < limit
            case SameDomain():
                return self._torn_apart()
            case Skew(domains=domains, limit=limit):
                return self._uneven(list(domains), limit)
            case _:
                return False

    def _too_many(self, lose: int, limit: int) -> bool:
        """More members than fit when the `lose` fullest domains hold at most `limit`.

        If the least full of these holds t, every other domain holds at most t.
        """
        most = np.sort(self.standing + self.room)[::-1]
        largest = np.sort(self.standing)[::-1][:lose].sum()
        if limit < 0 or largest > limit:
            return True
        if len(most) <= lose:
            bound = min(limit, int(most.sum()))
        else:
            t = min(limit // lose, int(most[lose - 1]))
            rest = int(np.minimum(most, t).sum()) - lose * t
            bound = min(limit, int(most[:lose].sum())) + rest
        return int(self.standing.sum()) + self.least > bound

    def _torn_apart(self) -> bool:
        """No domain has the fixed members and room for all others."""
        fits = self.standing == self.standing.sum()
        if not self.moving or self.least < len(self.moving):
            return int((self.standing > 0).sum()) > 1
        problem = self.numbers.problem
        wanted = np.zeros(len(problem.classes), dtype=np.int64)
        for group, count in self.groups.items():
            fits &= self._per_domain(self.slots[group]) >= count
            wanted += count * problem.demand[_role(self.numbers, group)]
        for k in np.flatnonzero(wanted).tolist():
            fits &= self._per_domain(np.maximum(problem.free[:, k], 0)) >= wanted[k]
        if self.crowd.primitive.level.name == HOST:
            fits &= ~self._cut()
        return bool(self.crowd.members) and not fits.any()

    def _cut(self) -> Bools:
        """[H] hosts whose devices cannot serve all members that must be together there."""
        found = np.zeros(len(self.numbers.problem.hosts), dtype=np.bool_)
        roles: dict[str, int] = {}
        for group, count in self.groups.items():
            role = self.numbers.problem.roles[_role(self.numbers, group)]
            roles[role] = roles.get(role, 0) + count
        for cut in self.numbers.together:
            if not cut.jointly and all(roles.get(role, 0) >= n for role, n in cut.counts):
                found[list(cut.hosts)] = True
        return found

    def _uneven(self, domains: list[int], limit: int) -> bool:
        """The emptiest domain cannot keep up with the fullest."""
        total = int(self.standing.sum())
        most = self.standing + self.room
        fullest = int(self.standing.max(initial=0))
        bottom = 0
        if domains:
            bottom = min(int(most[domains].min()), (total + len(self.moving)) // len(domains))
            lacking = np.maximum(0, fullest - limit - self.standing[domains]).sum()
            if lacking > len(self.moving):
                return True
        top = bottom + limit
        return fullest > top or int(np.minimum(most, top).sum()) < total + self.least
