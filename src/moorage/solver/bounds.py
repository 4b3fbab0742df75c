"""A lower bound on the cost of any placement, by counting."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.requests import Objective
from moorage.domain.topology import HOST
from moorage.policies.primitives import SameDomain
from moorage.policies.shared_domains import domains_needed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from moorage.engine.joint.problem import Problem
    from moorage.engine.joint.problem_index import LevelConstraint, ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


def lower_bound(numbers: ProblemIndex) -> int:
    """A lower bound on the cost of placements that meet the required primitives."""
    return _disliked(numbers) + _objective(numbers)


def _disliked(numbers: ProblemIndex) -> int:
    """The least cost of preferred named hosts, summed over the members."""
    problem = numbers.problem
    total = 0
    least: dict[int, int] = {}
    for m, row in enumerate(problem.fixed.tolist()):
        group = numbers.group_of[m]
        if row >= 0:
            total += int(numbers.preference_cost[group][row])
            continue
        if group not in least:
            rows = numbers.rows_of(group)
            least[group] = int(numbers.preference_cost[group][rows].min()) if len(rows) else 0
        total += least[group]
    return total


def _objective(numbers: ProblemIndex) -> int:
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
        case Objective.ROOM:
            return 0


def _most_hosts(numbers: ProblemIndex) -> int:
    """An upper bound on the number of distinct hosts in use."""
    problem = numbers.problem
    usable = np.zeros(len(problem.hosts), dtype=np.bool_)
    for group in {numbers.group_of[m] for m in numbers.to_place}:
        usable |= numbers.allowed[group]
    usable[problem.fixed[problem.fixed >= 0]] = True
    heads = _on_one_host(numbers)
    if problem.choices:
        # One of each member's choices is placed, and all others are in the absent row.
        most = min(len(heads), len(problem.members) - _absent(problem)) + 1
    else:
        most = _most_by_group(numbers, heads)
    return min(most, int(usable.sum()))


def _on_one_host(numbers: ProblemIndex) -> set[int]:
    """One member of each set of members that are on one host in every placement."""
    problem = numbers.problem
    head = list(range(len(problem.members)))

    def find(m: int) -> int:
        while head[m] != m:
            m = head[m]
        return m

    for constraint in numbers.constraints:
        if (
            problem.hosts_are_domains
            and _hosts(constraint)
            and constraint.required
            and isinstance(constraint.primitive, SameDomain)
        ):
            for m in constraint.members[1:]:
                head[find(m)] = find(constraint.members[0])
    # Fixed members on one host share it whatever the rest does.
    first: dict[int, int] = {}
    for m, row in enumerate(problem.fixed.tolist()):
        if row >= 0:
            head[find(m)] = find(first.setdefault(row, m))
    return {find(m) for m in range(len(problem.members))}


def _most_by_group(numbers: ProblemIndex, members: Iterable[int]) -> int:
    """An upper bound on the hosts of these members: each is on a host of its group's."""
    fixed = numbers.problem.fixed
    standing = sum(1 for m in members if fixed[m] >= 0)
    moving = Counter(numbers.group_of[m] for m in members if fixed[m] < 0)
    return standing + sum(min(n, len(numbers.rows_of(group))) for group, n in moving.items())


def _absent(problem: Problem) -> int:
    """How many members are not placed, whatever is chosen."""
    return sum(len(some) - 1 for some in problem.choices)


def _fewest_hosts(numbers: ProblemIndex) -> int:
    """A lower bound on the number of distinct hosts in use."""
    problem = numbers.problem
    moving = [m for m in numbers.to_place if m not in numbers.optional]
    standing = np.unique(problem.fixed[problem.fixed >= 0])
    least = max(1, len(standing))
    demand = problem.demand[problem.role_of[moving]].sum(axis=0)
    for k in np.flatnonzero(demand).tolist():
        free = np.maximum(problem.free[: problem.host_count, k], 0)
        # The standing hosts are used anyway; the rest of the demand takes the roomiest others.
        rest = demand[k] - free[standing].sum()
        if rest > 0:
            others = np.sort(np.delete(free, standing))[::-1]
            least = max(least, len(standing) + _prefix(others, int(rest)))
    for constraint in numbers.constraints:
        if constraint.required:
            count = _surely_placed(problem, constraint)
            least = max(least, domains_needed(constraint.primitive, count))
    return least + bool(problem.choices)


def _surely_placed(problem: Problem, constraint: LevelConstraint) -> int:
    """How many of a constraint's members are on a host whatever is chosen."""
    members = set(constraint.members)
    chosen = [members.intersection(some) for some in problem.choices]
    whole = sum(len(mine) == len(some) for mine, some in zip(chosen, problem.choices, strict=True))
    return len(members) - sum(map(len, chosen)) + whole


def _prefix(amounts: Ints, wanted: int) -> int:
    """How many of the largest amounts it takes to reach `wanted` (or all there are)."""
    return min(int(np.searchsorted(np.cumsum(amounts), wanted)) + 1, len(amounts))


def _least_fill(numbers: ProblemIndex) -> int:
    """A lower bound on the fullest host's fill, in percent rounded up."""
    problem = numbers.problem
    least = 0
    for m, row in enumerate(problem.fixed.tolist()):
        role = int(problem.role_of[m])
        demand = problem.demand[role] if row < 0 else np.zeros_like(problem.demand[role])
        hosts = (
            numbers.allowed[numbers.group_of[m]]
            if row < 0
            else np.arange(len(problem.hosts)) == row
        )
        if hosts.any():
            least = max(least, int(_fill(problem.capacity, problem.free, demand)[hosts].min()))
    return least


def _fill(capacity: Ints, free: Ints, demand: Ints) -> Ints:
    used = capacity - free + demand
    percent = -(-100 * used // np.maximum(capacity, 1))
    return np.asarray(np.where(capacity > 0, percent, 0).max(axis=1, initial=0), dtype=np.int64)


def _hosts(constraint: LevelConstraint) -> bool:
    return constraint.primitive.level.name == HOST
