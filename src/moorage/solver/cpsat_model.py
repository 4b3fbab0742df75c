"""The joint problem as a CP-SAT model over candidate hosts.

One integer variable per kind of members and candidate host counts how many of the kind stand
there. Hosts that are no candidates have no members; every expression below is right for them too.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from moorage.domain.requests import Objective
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    Near,
    SameDomain,
    Skew,
)
from moorage.solver.cpsat_alone import cp_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.joint.problem_index import LevelConstraint, ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Term: TypeAlias = "cp_model.LinearExprT"


@dataclass(eq=False)
class Model:
    """A CP-SAT model with the variables to read its answer from."""

    numbers: ProblemIndex
    rows: Ints
    """Candidate hosts."""
    of_class: Ints
    """[H] equivalence classes of hosts."""
    cp: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    count: list[dict[int, cp_model.IntVar]] = field(default_factory=list)
    """Per kind: host row -> how many of the kind stand there."""
    most: list[Ints] = field(default_factory=list)
    """Per kind: [H] how many of it a host has room for, were they alone."""
    costs: list[Any] = field(default_factory=list)
    constant: int = 0
    """The part of the cost that does not depend on the answer."""

    def hint(self, rows: Ints) -> None:
        """Start the search from a known placement."""
        for kind, variables in zip(self.numbers.interchangeable, self.count, strict=True):
            standing = np.bincount(rows[list(kind)], minlength=len(self.of_class))
            for row, variable in variables.items():
                self.cp.add_hint(variable, int(standing[row]))

    def read(self, solver: cp_model.CpSolver) -> Ints:
        """[M] the host row of each member."""
        found = self.numbers.problem.fixed.copy()
        for kind, variables in zip(self.numbers.interchangeable, self.count, strict=True):
            rows = [row for row, v in variables.items() for _ in range(solver.value(v))]
            found[list(kind)] = rows
        return found


def model(numbers: ProblemIndex, rows: Ints, of_class: Ints) -> Model:
    """Build the model of a problem over candidate hosts.

    Args:
        numbers: the problem.
        rows: candidate hosts; must hold every host where a fixed member stands.
        of_class: [H] classes of exchangeable hosts, whose loads are ordered.
    """
    found = Model(numbers, rows, of_class)
    for kind in numbers.interchangeable:
        _kind(found, kind)
    _standing(found)
    _capacity(found)
    _order(found)
    for constraint in numbers.constraints:
        _add_constraint(found, constraint)
    _objective(found)
    if found.costs:
        found.cp.minimize(sum(found.costs))
    return found


def _kind(model: Model, kind: tuple[int, ...]) -> None:
    numbers = model.numbers
    group = numbers.group_of[kind[0]]
    role = int(numbers.problem.role_of[kind[0]])
    slots = np.where(numbers.allowed[group], np.minimum(numbers.slots(role), len(kind)), 0)
    variables = {
        row: model.cp.new_int_var(0, int(slots[row]), "")
        for row in model.rows.tolist()
        if slots[row]
    }
    model.cp.add(sum(variables.values()) == len(kind))
    model.count.append(variables)
    model.most.append(slots)
    dislike = numbers.preference_cost[group]
    model.costs += [int(dislike[row]) * v for row, v in variables.items() if dislike[row]]


def _standing(model: Model) -> None:
    """Add the cost of fixed members; infeasible if one stands where it must not."""
    numbers = model.numbers
    if numbers.fixed_on_forbidden:
        model.cp.add_bool_or([])
    model.constant += sum(
        int(numbers.preference_cost[numbers.group_of[m]][h]) for m, h in numbers.fixed_members
    )


def _capacity(model: Model) -> None:
    """Add the capacity of each host, unless the bounds of the variables imply it.

    Over time a class stands for many instants at which the same kinds are there: of these the one
    with the least room counts.
    """
    problem, rows = model.numbers.problem, model.rows
    roles = [int(problem.role_of[kind[0]]) for kind in model.numbers.interchangeable]
    demands, which = np.unique(
        problem.demand[np.array(roles, dtype=np.intp)], axis=1, return_inverse=True
    )
    for k, demand in enumerate(demands.T):
        taking = np.flatnonzero(demand)
        free = np.maximum(problem.free[rows][:, which.reshape(-1) == k].min(axis=1), 0)
        most = sum((demand[kind] * model.most[kind][rows] for kind in taking), np.zeros_like(free))
        amounts = [(int(demand[kind]), model.count[kind]) for kind in taking]
        for row, room in zip(rows[most > free].tolist(), free[most > free].tolist(), strict=True):
            taken = [(some[row], amount) for amount, some in amounts if row in some]
            variables, weights = zip(*taken, strict=True)
            model.cp.add(cp_model.LinearExpr.weighted_sum(variables, weights) <= room)


def _order(model: Model) -> None:
    """Break symmetry: of exchangeable hosts the earlier one carries at least as much."""
    rows = model.rows.tolist()
    for before, after in itertools.pairwise(rows):
        if model.of_class[before] == model.of_class[after]:
            model.cp.add(_load(model, before) >= _load(model, after))


def _load(model: Model, row: int) -> Any:  # noqa: ANN401 - CP-SAT's sums are of many types
    return sum(variables[row] for variables in model.count if row in variables)


# --- primitives that count per domain ----------------------------------------------------


def _add_constraint(model: Model, constraint: LevelConstraint) -> None:
    n = _counts(model, constraint, constraint.members)
    match constraint.primitive:
        case AtMost(limit=limit):
            for one in n.values():
                _at_most(model, constraint, one - limit)
        case AtMostTogether(domains=lose, limit=limit):
            _together(model, constraint, n, lose, limit)
        case AtLeastDomains(limit=limit):
            used = [_used(model, one, len(constraint.members), least=False) for one in n.values()]
            _at_most(model, constraint, limit - sum(used))
        case SameDomain():
            used = [_used(model, one, len(constraint.members), least=True) for one in n.values()]
            _at_most(model, constraint, sum(used) - 1)
        case Skew(domains=domains, limit=limit):
            _skew(model, constraint, n, domains, limit)
        case Apart() | Near():
            _sides(model, constraint, n, _counts(model, constraint, constraint.others))


def _sides(
    model: Model, constraint: LevelConstraint, n: dict[int, Any], theirs: dict[int, Any]
) -> None:
    near = isinstance(constraint.primitive, Near)
    for domain in n if near else n.keys() & theirs.keys():
        one = _used(model, n[domain], len(constraint.members), least=True)
        if near:
            _at_most(model, constraint, one - theirs.get(domain, 0))
        else:
            other = _used(model, theirs[domain], len(constraint.others), least=True)
            _at_most(model, constraint, one + other - 1)


def _counts(model: Model, constraint: LevelConstraint, members: tuple[int, ...]) -> dict[int, Any]:
    """Domain -> the number of the members in it; domains that can have none are left out."""
    parts: dict[int, list[Any]] = {}
    chosen = set(members)
    domain_of = constraint.domain_of.tolist()
    for kind, variables in zip(model.numbers.interchangeable, model.count, strict=True):
        if kind[0] in chosen:
            for row, variable in variables.items():
                if domain_of[row] >= 0:
                    parts.setdefault(domain_of[row], []).append(variable)
    for m in members:
        row = int(model.numbers.problem.fixed[m])
        if row >= 0 and domain_of[row] >= 0:
            parts.setdefault(domain_of[row], []).append(1)
    return {domain: sum(parts[domain]) for domain in sorted(parts)}


def _at_most(model: Model, constraint: LevelConstraint, excess: Any) -> None:  # noqa: ANN401 - as `_load`
    """Constrain `excess` <= 0 if required; otherwise add its positive part to the cost."""
    weight = constraint.primitive.weight
    if weight is None:
        if isinstance(excess, int):
            # CP-SAT has no constant constraints: a broken one empties the domain of a variable.
            if excess > 0:
                model.cp.add_bool_or([])
        else:
            model.cp.add(excess <= 0)
    elif isinstance(excess, int):
        model.constant += weight * max(0, excess)
    else:
        most = len(constraint.members) + len(constraint.others) + constraint.domain_count
        limit = abs(getattr(constraint.primitive, "limit", 0))
        above = model.cp.new_int_var(0, 2 * most + limit, "")
        model.cp.add(above >= excess)
        model.costs.append(weight * above)


def _used(model: Model, count: Any, most: int, *, least: bool) -> Any:  # noqa: ANN401 - as `_load`
    """A 0/1 variable for a domain in use.

    With `least` the solver may only err upwards (1 for an unused one), otherwise only
    downwards; the constraint it enters pushes it to the truth.
    """
    if isinstance(count, int):
        return int(count > 0)
    used = model.cp.new_bool_var("")
    if least:
        model.cp.add(count <= most * used)
    else:
        model.cp.add(count >= used)
    return used


def _together(
    model: Model, constraint: LevelConstraint, n: dict[int, Any], lose: int, limit: int
) -> None:
    """The sum of the `lose` largest counts is the least of `lose * t + sum(max(0, n - t))`."""
    most = len(constraint.members)
    t = model.cp.new_int_var(0, most, "")
    above = []
    for one in n.values():
        surplus = model.cp.new_int_var(0, most, "")
        model.cp.add(surplus >= one - t)
        above.append(surplus)
    _at_most(model, constraint, lose * t + sum(above) - limit)


def _skew(
    model: Model,
    constraint: LevelConstraint,
    n: dict[int, Any],
    domains: tuple[int, ...],
    limit: int,
) -> None:
    most = len(constraint.members)
    top = model.cp.new_int_var(0, most, "")
    bottom = model.cp.new_int_var(0, most, "")
    for one in n.values():
        model.cp.add(top >= one)
    if not domains or any(domain not in n for domain in domains):
        model.cp.add(bottom == 0)
    for domain in domains:
        if domain in n:
            model.cp.add(bottom <= n[domain])
    _at_most(model, constraint, top - bottom - limit)


# --- objective ---------------------------------------------------------------------------


def _objective(model: Model) -> None:
    problem = model.numbers.problem
    if problem.objective in {None, Objective.ROOM} or not problem.members:
        return
    standing = set(problem.fixed[problem.fixed >= 0].tolist())
    used: dict[int, Any] = {}
    for row in model.rows.tolist():
        load = _load(model, row)
        if row in standing:
            used[row] = 1
        elif not isinstance(load, int):
            least = problem.objective is not Objective.SPREAD
            used[row] = _used(model, load, len(problem.members), least=least)
    match problem.objective:
        case Objective.PACK:
            model.costs += [1 * one for row, one in used.items() if row not in standing]
            model.constant += len(standing)
        case Objective.SPREAD:
            model.costs += [-1 * one for row, one in used.items() if row not in standing]
            model.constant += len(problem.members) - len(standing)
        case Objective.BALANCE:
            _balance(model, used)


def _balance(model: Model, used: dict[int, Any]) -> None:
    """The fullest host used, in percent rounded up."""
    problem = model.numbers.problem
    roles = [int(problem.role_of[kind[0]]) for kind in model.numbers.interchangeable]
    booked = problem.capacity - problem.free
    present = -(-100 * booked // np.maximum(problem.capacity, 1))
    fullest = model.cp.new_int_var(0, max(100, int(present.max(initial=0))), "")
    for row, one in used.items():
        for k in range(len(problem.classes)):
            total = int(problem.capacity[row, k])
            if total <= 0:
                continue
            taken = sum(
                int(problem.demand[role, k]) * variables[row]
                for role, variables in zip(roles, model.count, strict=True)
                if problem.demand[role, k] and row in variables
            )
            bounded = model.cp.add(100 * (int(booked[row, k]) + taken) <= total * fullest)
            if not isinstance(one, int):
                bounded.only_enforce_if(one)
    model.costs.append(1 * fullest)
