"""The cost and feasibility of placements: excesses of primitives, the objective, capacity.

Every function evaluates N placements at once, as an array [N, M] of host rows. The definitions are
those of `policies.primitives` and `domain.requests.Objective`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.requests import Objective
from moorage.engine.joint.problem import mask_of, permitted_hosts
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    Near,
    NeverOn,
    NeverTogether,
    OnlyOn,
    Pooled,
    SameDomain,
    Sided,
    Skew,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.domain.topology import Level
    from moorage.engine.joint.problem import Problem
    from moorage.policies.primitives import Cut, Primitive

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


MOST_FILL = 10_000
"""Upper bound, in percent, of a host's fill when preferences are scaled against it, so that weights
can be summed in 64 bits."""


def preference_scale(problem: Problem) -> int:
    """The cost of one unit of penalty, such that it outranks the objective.

    One more than the largest `objective_cost` of a placement that fits, which for `balance` is 100
    or the fill of a host that is over-full already; 1 where the objective costs nothing.
    """
    if problem.objective in {None, Objective.ROOM}:
        return 1
    if problem.objective is not Objective.BALANCE:
        return len(problem.members) + 1
    used = problem.capacity - problem.free
    percent = -(-100 * used // np.maximum(problem.capacity, 1))
    fullest = int(np.where(problem.capacity > 0, percent, 0).max(initial=100))
    return min(fullest, MOST_FILL) + 1


def cost(problem: Problem, rows: Ints) -> Ints:
    """[N] penalties of the preferred primitives, by the problem's weights, plus the objective."""
    found = objective_cost(problem, rows)
    for primitive in problem.primitives:
        if primitive.weight is not None:
            found = found + primitive.weight * excess(problem, primitive, rows)
    return found


def satisfies(problem: Problem, rows: Ints) -> Bools:
    """[N] whether the placement fits and satisfies every required primitive and every cut."""
    found = fits(problem, rows)
    for primitive in problem.primitives:
        if primitive.weight is None:
            found &= excess(problem, primitive, rows) == 0
    for cut in problem.cuts:
        found &= cut_excess(problem, cut, rows) == 0
    return found


def fits(problem: Problem, rows: Ints) -> Bools:
    """[N] whether on every host the members take at most what is free of each class."""
    moving = np.flatnonzero(problem.fixed < 0)
    found = np.ones(len(rows), dtype=np.bool_)
    for k in range(len(problem.classes)):
        demand = problem.demand[problem.role_of, k]
        taken = _sums(rows, moving, demand, len(problem.hosts))
        found &= ((taken == 0) | (taken <= problem.free[:, k])).all(axis=1)
    return found


def excess(problem: Problem, primitive: Primitive, rows: Ints) -> Ints:
    """[N] the excess of the primitive: by how much each placement violates it."""
    match primitive:
        case OnlyOn() | NeverOn():
            forbidden = ~permitted_hosts(primitive, len(problem.hosts))
            return _ints(forbidden[rows[:, positions(problem, primitive.members)]].sum(axis=1))
        case Apart() | Near():
            ours = counts(problem, primitive.members, primitive.level, rows) > 0
            theirs = counts(problem, primitive.others, primitive.level, rows) > 0
            wrong = theirs if isinstance(primitive, Apart) else ~theirs
            return _ints((ours & wrong).sum(axis=1))
        case _:
            found = counts(problem, primitive.members, primitive.level, rows)
            return np.maximum(0, _excess_of_counts(primitive, found))


def _excess_of_counts(
    primitive: AtMost | AtMostTogether | AtLeastDomains | SameDomain | Skew, n: Ints
) -> Ints:
    """The excess from member counts [N, D]; negative where there is room."""
    match primitive:
        case AtMost():
            return _ints(np.maximum(0, n - primitive.limit).sum(axis=1))
        case AtMostTogether():
            largest = np.sort(n, axis=1)[:, ::-1][:, : primitive.domains]
            return _ints(largest.sum(axis=1) - primitive.limit)
        case AtLeastDomains():
            return _ints(primitive.limit - (n > 0).sum(axis=1))
        case SameDomain():
            return _ints((n > 0).sum(axis=1) - 1)
        case Skew():
            eligible = n[:, list(primitive.domains)]
            least = eligible.min(axis=1) if primitive.domains else 0
            most = n.max(axis=1, initial=0)
            return _ints(most - least - primitive.limit)


def counts(problem: Problem, members: Sequence[MemberName], level: Level, rows: Ints) -> Ints:
    """[N, D] how many of the members each domain of the level holds."""
    domain_of, size = problem.domains[level], problem.domain_counts[level]
    domains = domain_of[rows[:, positions(problem, members)]]
    # Domain -1 is counted in a last column, which is dropped.
    cells = np.where(domains < 0, size, domains) + (size + 1) * np.arange(len(rows))[:, None]
    found = np.bincount(cells.reshape(-1), minlength=len(rows) * (size + 1))
    return _ints(found.reshape(len(rows), size + 1)[:, :size])


def members_of(primitive: Primitive) -> tuple[MemberName, ...]:
    """The members that a primitive restricts."""
    others = primitive.others if isinstance(primitive, Sided) else ()
    return (*primitive.members, *others)


def positions(problem: Problem, members: Sequence[MemberName]) -> list[int]:
    """Positions of members in the problem."""
    return [problem.position_of[member] for member in members]


def objective_cost(problem: Problem, rows: Ints) -> Ints:
    """[N] the cost of the objective alone."""
    if problem.objective in {None, Objective.ROOM} or not rows.shape[1]:
        return np.zeros(len(rows), dtype=np.int64)
    if problem.objective is Objective.BALANCE:
        return _max_fill(problem, rows)
    ordered = np.sort(rows, axis=1)
    distinct = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
    return _ints(distinct if problem.objective is Objective.PACK else rows.shape[1] - distinct)


def _max_fill(problem: Problem, rows: Ints) -> Ints:
    """[N] the fill of the fullest host used, in percent rounded up."""
    moving = np.flatnonzero(problem.fixed < 0)
    found = np.zeros(len(rows), dtype=np.int64)
    every = np.arange(len(rows))[:, None]
    for k in range(len(problem.classes)):
        taken = _sums(rows, moving, problem.demand[problem.role_of, k], len(problem.hosts))
        capacity = problem.capacity[:, k]
        used = (capacity - problem.free[:, k] + taken)[every, rows]
        total = capacity[rows]
        percent = -(-100 * used // np.maximum(total, 1))
        found = np.maximum(found, np.where(total > 0, percent, 0).max(axis=1))
    return found


def _sums(rows: Ints, members: Ints, amounts: Ints, hosts: int) -> Ints:
    """[N, H] how much the members take on each host."""
    found = np.zeros((len(rows), hosts), dtype=np.int64)
    every = np.arange(len(rows))[:, None]
    np.add.at(found, (every, rows[:, members]), amounts[members])
    return found


def cut_excess(problem: Problem, cut: Cut, rows: Ints) -> Ints:
    """[N] the excess of the cut: by how much each placement violates it."""
    match cut:
        case NeverTogether():
            return _never_together_excess(problem, cut, rows)
        case Pooled():
            return _pool_excess(problem, cut, rows)


def _never_together_excess(problem: Problem, cut: NeverTogether, rows: Ints) -> Ints:
    """[N] number of hosts where every count is reached; with `jointly` 0 or 1 for all hosts."""
    hosts = sorted(cut.hosts)
    reached = np.ones((len(rows), 1 if cut.jointly else len(hosts)), dtype=np.bool_)
    ones = np.ones(len(problem.members), dtype=np.int64)
    for role, number in cut.counts:
        standing = _sums(rows, _to_place_of_role(problem, role), ones, len(problem.hosts))[:, hosts]
        reached &= (standing.sum(axis=1)[:, None] if cut.jointly else standing) >= number
    return _ints(reached.sum(axis=1))


def _pool_excess(problem: Problem, cut: Pooled, rows: Ints) -> Ints:
    """[N] by how much more is taken than the pool's limit."""
    named = mask_of(cut.hosts, len(problem.hosts))
    taken = np.zeros(len(rows), dtype=np.int64)
    for role, amount in cut.amounts:
        taken += amount * named[rows[:, _to_place_of_role(problem, role)]].sum(axis=1)
    return _ints(np.maximum(0, taken - cut.limit))


def _to_place_of_role(problem: Problem, role: str) -> Ints:
    """Numbers of the role's members that are to be placed."""
    if role not in problem.roles:
        return np.zeros(0, dtype=np.int64)
    mine = (problem.role_of == problem.roles.index(role)) & (problem.fixed < 0)
    return np.flatnonzero(mine).astype(np.int64)


def _ints(values: object) -> Ints:
    """Convert to int64 with a type that numpy's reductions do not declare."""
    return np.asarray(values, dtype=np.int64)
