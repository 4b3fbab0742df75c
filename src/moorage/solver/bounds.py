"""A lower bound on the cost of any placement, by counting."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.requests import Objective
from moorage.domain.topology import HOST
from moorage.policies.primitives import AtLeastDomains, AtMost, AtMostTogether, SameDomain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.joint.problem_index import Crowd, Index

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


def lower_bound(numbers: Index) -> int:
    """A lower bound on the cost of placements that meet the required primitives."""
    return _disliked(numbers) + _objective(numbers)


def _disliked(numbers: Index) -> int:
    """The least cost of preferred named hosts, summed over the members."""
    problem = numbers.problem
    total = 0
    for m, row in enumerate(problem.fixed.tolist()):
        group = numbers.group_of[m]
        hosts = numbers.may[group]
        if row >= 0:
            total += int(numbers.dislike[group][row])
        elif hosts.any():
            total += int(numbers.dislike[group][hosts].min())
    return total


def _objective(numbers: Index) -> int:
    problem = numbers.problem
    if problem.objective is None or not problem.members:
        return 0
    match problem.objective:
        case Objective.SPREAD:
            return len(problem.members) - _most_hosts(numbers)
        case Objective.PACK:
            return _fewest_hosts(numbers)
        case Objective.BALANCE:
            return _least_fill(numbers)


def _most_hosts(numbers: Index) -> int:
    """An upper bound on the number of distinct hosts in use."""
    problem = numbers.problem
    usable = np.zeros(len(problem.hosts), dtype=np.bool_)
    for m in numbers.moving:
        usable |= numbers.may[numbers.group_of[m]]
    standing = problem.fixed[problem.fixed >= 0]
    usable[standing] = True
    head = list(range(len(problem.members)))

    def find(m: int) -> int:
        while head[m] != m:
            m = head[m]
        return m

    for crowd in numbers.crowds:
        if _hosts(crowd) and crowd.required and isinstance(crowd.primitive, SameDomain):
            for m in crowd.members[1:]:
                head[find(m)] = find(crowd.members[0])
    # Fixed members on one host share it whatever the rest does.
    first: dict[int, int] = {}
    for m, row in enumerate(problem.fixed.tolist()):
        if row >= 0:
            head[find(m)] = find(first.setdefault(row, m))
    together = len({find(m) for m in range(len(problem.members))})
    return min(together, int(usable.sum()))


def _fewest_hosts(numbers: Index) -> int:
    """A lower bound on the number of distinct hosts in use."""
    problem = numbers.problem
    moving = list(numbers.moving)
    standing = np.unique(problem.fixed[problem.fixed >= 0])
    least = max(1, len(standing))
    demand = problem.demand[problem.role_of[moving]].sum(axis=0)
    for k in np.flatnonzero(demand).tolist():
        free = np.maximum(problem.free[:, k], 0)
        # The standing hosts are used anyway; the rest of the demand takes the roomiest others.
        rest = demand[k] - free[standing].sum()
        if rest > 0:
            others = np.sort(np.delete(free, standing))[::-1]
            least = max(least, len(standing) + _prefix(others, int(rest)))
    for crowd in numbers.crowds:
        if crowd.required:
            least = max(least, _domains_needed(crowd))
    return least


def _prefix(amounts: Ints, wanted: int) -> int:
    """How many of the largest amounts it takes to reach `wanted` (or all there are)."""
    return min(int(np.searchsorted(np.cumsum(amounts), wanted)) + 1, len(amounts))


def _domains_needed(crowd: Crowd) -> int:
    count = len(crowd.members)
    match crowd.primitive:
        case AtMost(limit=limit):
            return -(-count // limit) if limit > 0 else 0
        case AtLeastDomains(limit=limit):
            return limit
        case AtMostTogether(domains=lose, limit=limit):
            each = limit // lose
            return lose + -(-(count - limit) // each) if each > 0 and count > limit else 0
        case _:
            return 0


def _least_fill(numbers: Index) -> int:
    """A lower bound on the fullest host's fill, in percent rounded up."""
    problem = numbers.problem
    least = 0
    for m, row in enumerate(problem.fixed.tolist()):
        role = int(problem.role_of[m])
        demand = problem.demand[role] if row < 0 else np.zeros_like(problem.demand[role])
        hosts = (
            numbers.may[numbers.group_of[m]] if row < 0 else np.arange(len(problem.hosts)) == row
        )
        if hosts.any():
            least = max(least, int(_fill(problem.capacity, problem.free, demand)[hosts].min()))
    return least


def _fill(capacity: Ints, free: Ints, demand: Ints) -> Ints:
    used = capacity - free + demand
    percent = -(-100 * used // np.maximum(capacity, 1))
    return np.asarray(np.where(capacity > 0, percent, 0).max(axis=1, initial=0), dtype=np.int64)


def _hosts(crowd: Crowd) -> bool:
    return crowd.primitive.level.name == HOST
