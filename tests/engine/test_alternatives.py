"""Members with alternatives: against every assignment of choices and hosts, by the meanings."""

import random
from collections import Counter
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from tests.seeds import cases

from moorage.domain.period import SECOND
from moorage.domain.placement import Placement
from moorage.domain.requests import Objective
from moorage.engine.joint.alternatives import constant_cost
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.cost import preference_scale
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.verify import placed_members, places, verify
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import random_built

CASES = cases(50, 150)


def with_alternatives(seed: int, *, servers: int = 0, **more: Any) -> BuiltProblem:
    """A random problem, some of whose roles have one or two alternatives."""
    built = random_built(seed, hosts=4, members=3, servers=servers, **more)
    dice = random.Random(seed)
    others = random_built(seed + 1_000_000, hosts=4, members=3, servers=servers).request.roles
    roles = []
    for number, role in enumerate(built.request.roles):
        found = [
            replace(other, name=role.name, tags=role.tags)
            for other in dice.sample(others, k=min(len(others), dice.choice((0, 1, 1, 2))))
        ]
        roles.append(replace(role, alternatives=tuple(found) if number or found else ()))
    request = replace(built.request, roles=tuple(roles), first_choices=dice.random() < 0.6)
    choices = {name: dice.randrange(len(request.role_of(name).choices)) for name in request.fixed}
    return build_on_terrain(replace(request, choices=MappingProxyType(choices)), built.terrain)


def best(built: BuiltProblem) -> int | None:
    """The least cost over every assignment, by filters, capacity and the policies' meanings."""
    request, terrain, problem = built.request, built.terrain, built.problem
    scale = preference_scale(problem)
    options = []
    for name in request.members:
        mine = []
        for choice, _ in enumerate(request.role_of(name).choices):
            role = f"{name.role}|{choice}" if request.role_of(name).alternatives else name.role
            if role not in problem.roles and built.alternatives is not None:
                continue
            allowed = problem.allowed[problem.roles.index(role)][: terrain.host_count]
            mine += [(choice, role, int(row)) for row in np.flatnonzero(allowed)]
        options.append(mine)
    least = None
    for chosen in product(*options):
        free = terrain.free.astype(np.int64).copy()
        for _, role, row in chosen:
            free[row] -= problem.demand[problem.roles.index(role)][: free.shape[1]]
        taken = terrain.free - free
        if ((free < 0) & (taken > 0)).any():
            continue
        hosts = {name: row for name, (_, _, row) in zip(request.members, chosen, strict=True)}
        placement = Placement(built.policy_view, hosts)
        penalty = sum(c for c, _, _ in chosen) if request.first_choices else 0
        for rule in built.rules:
            amount = sum(v.amount for e in rule.edges for v in rule.policy.violations(e, placement))
            weight = rule.statement.weight
            if amount and weight is None:
                break
            penalty += amount * (weight or 0)
        else:
            found = scale * penalty + objective(built, [row for _, _, row in chosen], free)
            least = found if least is None else min(least, found)
    return least


def objective(built: BuiltProblem, rows: list[int], free: Any) -> int:
    match built.request.objective:
        case Objective.PACK:
            return len(set(rows))
        case Objective.SPREAD:
            return len(rows) - len(set(rows))
        case Objective.ROOM:
            return 0
        case Objective.BALANCE:
            capacity = built.terrain.capacity
            return max(
                -(-100 * int(capacity[row, k] - free[row, k]) // int(capacity[row, k]))
                for row in rows
                for k in range(capacity.shape[1])
                if capacity[row, k] > 0
            )


@pytest.mark.parametrize("servers", [0, 3])
def test_the_encoding_means_what_the_policies_say(servers: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(CASES):
        built = with_alternatives(seed, fixed=0.0, servers=servers)
        if built.alternatives is None:
            continue
        expected = best(built)
        found = Exhaustive().solve(built.problem, time_limit=SECOND, seed=0)
        assert (found.verdict is Verdict.FEASIBLE) == (expected is not None), seed
        if expected is None:
            counts["infeasible"] += 1
            continue
        assert found.value - constant_cost(built.problem) == expected, seed
        counts["feasible"] += 1
        assert found.hosts is not None
        counts["second"] += any(one.choice for one in places(built, found.hosts).values())
    assert min(counts["infeasible"], counts["second"]) > CASES // 15


@pytest.mark.parametrize("servers", [0, 3])
@pytest.mark.parametrize("partial", [False, True])
def test_every_solver_agrees(servers: int, *, partial: bool) -> None:
    for seed in range(CASES):
        built = with_alternatives(seed, partial=partial, servers=servers)
        if built.alternatives is None:
            continue
        problem = built.problem
        expected = Exhaustive().solve(problem, time_limit=SECOND, seed=0)
        for solver in (Greedy(), CpSat(), Portfolio(CpSat())):
            found = solver.solve(problem, time_limit=10 * SECOND, seed=0)
            if found.verdict is Verdict.UNKNOWN:
                assert isinstance(solver, Greedy)
                continue
            assert found.verdict is expected.verdict, (seed, solver)
            if found.hosts is not None:
                verify(built, found.hosts)
                names = [name for name, _, _ in placed_members(built, found.hosts)]
                assert sorted(names) == sorted(built.request.members)
                assert found.bound <= expected.value <= found.value, (seed, solver)
                if not isinstance(solver, Greedy):
                    assert found.value == expected.value, (seed, solver)
