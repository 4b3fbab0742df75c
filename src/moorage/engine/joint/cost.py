"""What a placement costs: excesses of primitives, the objective, and whether it fits.

Every function judges N placements at once, as an array [N, M] of host rows; one placement
is N = 1. The definitions are those of `policies.primitives` and `domain.requests.Objective`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.requests import Objective
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    NeverOn,
    NeverTogether,
    OnlyOn,
    Pooled,
    SameDomain,
    Skew,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.domain.ensembles import MemberName
    from moorage.domain.topology import Level
    from moorage.engine.joint.problem import Problem
    from moorage.policies.primitives import Cut, Primitive

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


MOST_FILL = 10_000
"""Percent: beyond this a host's fill no longer counts when preferences are weighed against it,
so that weights stay small enough to be summed in 64 bits."""


def preference_scale(problem: Problem) -> int:
    """What one unit of penalty must cost so that it outranks all the objective can cost.

    One more than the most that `objective_cost` gives for an answer that fits; 1 where there is
    no objective. For `balance` that is 100, or the fill of a host that is over-full already.
    """
    if problem.objective is None:
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


def holds(problem: Problem, rows: Ints) -> Bools:
    """[N] whether every required primitive and every cut holds, and every host has room."""
    found = fits(problem, rows)
    for primitive in problem.primitives:
        if primitive.weight is None:
            found &= excess(problem, primitive, rows) == 0
    for cut in problem.cuts:
        found &= cut_excess(problem, cut, rows) == 0
    return found


def fits(problem: Problem, rows: Ints) -> Bools:
    """[N] whether no host is asked for more of a class than is free there."""
    moving = np.flatnonzero(problem.fixed < 0)
    found = np.ones(len(rows), dtype=np.bool_)
    for k in range(len(problem.classes)):
        demand = problem.demand[problem.role_of, k]
        taken = _sums(rows, moving, demand, len(problem.hosts))
        found &= ((taken == 0) | (taken <= problem.free[:, k])).all(axis=1)
    return found


def excess(problem: Problem, primitive: Primitive, rows: Ints) -> Ints:
    """[N] by how much each placement breaks the primitive."""
    match primitive:
        case OnlyOn():
            return _on(problem, primitive, rows, inside=False)
        case NeverOn():
            return _on(problem, primitive, rows, inside=True)
        case Apart():
            ours = counts(problem, primitive.members, primitive.level, rows) > 0
            theirs = counts(problem, primitive.others, primitive.level, rows) > 0
            return _ints((ours & theirs).sum(axis=1))
        case _:
            found = counts(problem, primitive.members, primitive.level, rows)
            return np.maximum(0, _counted(primitive, found))


def _counted(
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
    domain_of = problem.domains[level]
    size = int(domain_of.max(initial=-1)) + 1
    # Domain -1 falls into a last column, which is cut off.
    found = np.zeros((len(rows), size + 1), dtype=np.int64)
    every = np.arange(len(rows))
    for index in indices(problem, members):
        found[every, domain_of[rows[:, index]]] += 1
    return found[:, :size]


def indices(problem: Problem, members: Sequence[MemberName]) -> list[int]:
    """Positions of members in the problem."""
    return [problem.position_of[member] for member in members]


def objective_cost(problem: Problem, rows: Ints) -> Ints:
    """[N] what the objective alone costs."""
    if problem.objective is None or not rows.shape[1]:
        return np.zeros(len(rows), dtype=np.int64)
    if problem.objective is Objective.BALANCE:
        return _fullest(problem, rows)
    ordered = np.sort(rows, axis=1)
    distinct = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
    return _ints(distinct if problem.objective is Objective.PACK else rows.shape[1] - distinct)


def _fullest(problem: Problem, rows: Ints) -> Ints:
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
    every = np.arange(len(rows))
    for index in members.tolist():
        found[every, rows[:, index]] += amounts[index]
    return found


def _on(problem: Problem, primitive: OnlyOn | NeverOn, rows: Ints, *, inside: bool) -> Ints:
    """[N] how many of the members stand inside (or outside) the primitive's hosts."""
    named = np.zeros(len(problem.hosts), dtype=np.bool_)
    named[list(primitive.hosts)] = True
    found = named[rows[:, indices(problem, primitive.members)]] == inside
    return _ints(found.sum(axis=1))


def cut_excess(problem: Problem, cut: Cut, rows: Ints) -> Ints:
    """[N] by how much each placement breaks what devices can do."""
    match cut:
        case NeverTogether():
            return _together(problem, cut, rows)
        case Pooled():
            return _pooled(problem, cut, rows)


def _together(problem: Problem, cut: NeverTogether, rows: Ints) -> Ints:
    """[N] hosts where every count is reached; with `jointly` 1 if all of them reach it."""
    hosts = sorted(cut.hosts)
    reached = np.ones((len(rows), 1 if cut.jointly else len(hosts)), dtype=np.bool_)
    ones = np.ones(len(problem.members), dtype=np.int64)
    for role, number in cut.counts:
        standing = _sums(rows, _placed(problem, role), ones, len(problem.hosts))[:, hosts]
        reached &= (standing.sum(axis=1)[:, None] if cut.jointly else standing) >= number
    return _ints(reached.sum(axis=1))


def _pooled(problem: Problem, cut: Pooled, rows: Ints) -> Ints:
    """[N] by how much more is taken than there is."""
    named = np.zeros(len(problem.hosts), dtype=np.bool_)
    named[list(cut.hosts)] = True
    taken = np.zeros(len(rows), dtype=np.int64)
    for role, amount in cut.amounts:
        taken += amount * named[rows[:, _placed(problem, role)]].sum(axis=1)
    return _ints(np.maximum(0, taken - cut.limit))


def _placed(problem: Problem, role: str) -> Ints:
    """Members of a role that are placed now."""
    if role not in problem.roles:
        return np.zeros(0, dtype=np.int64)
    mine = (problem.role_of == problem.roles.index(role)) & (problem.fixed < 0)
    return np.flatnonzero(mine).astype(np.int64)


def _ints(values: object) -> Ints:
    """Say to the type checker what numpy's reductions do not."""
    return np.asarray(values, dtype=np.int64)
