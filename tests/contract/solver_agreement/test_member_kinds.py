"""Servers, volumes and ports together: every solver against all assignments, by the meanings."""

from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest
from tests.engine.test_devices import Givers, Oracle
from tests.seeds import cases

from moorage.domain.member_names import MemberName
from moorage.domain.placement import Placement
from moorage.domain.requests import Objective
from moorage.engine.joint.alternatives import constant_cost
from moorage.engine.joint.build import BuiltProblem, build
from moorage.engine.joint.cost import preference_scale
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.instance import dumps_request, loads_request
from moorage.engine.joint.problem import SupportsSolve, Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.engine.joint.verify import placed_members, verify
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.trees import random_members, snapshot

LIMIT = 30_000_000
CASES = cases(100, 300)
SOLVERS: dict[str, SupportsSolve] = {
    "exhaustive": Exhaustive(),
    "portfolio": Portfolio(CpSat()),
    "greedy": Greedy(),
}

Placed = tuple[tuple[int, str], ...]
"""Per member, sorted: its choice and its host."""


def possible(oracle: Oracle, built: BuiltProblem) -> Iterator[Placed]:
    """Every placement that some assignment of providers serves, whatever the policies say."""
    request = built.request
    options: list[dict[tuple[int, str], list[Givers]]] = []
    for name in sorted(request.members):
        mine: dict[tuple[int, str], list[Givers]] = {}
        for choice, role in enumerate(request.role_of(name).choices):
            for host, givers in oracle.options(role):
                mine.setdefault((choice, host), []).append(givers)
        options.append(mine)
    for chosen in product(*options):
        ways = product(*(mine[one] for mine, one in zip(options, chosen, strict=True)))
        if any(oracle.fits(way) for way in ways):
            yield chosen


def cost(built: BuiltProblem, chosen: Placed) -> int | None:
    """What a placement costs; None if a required policy forbids it."""
    row_of = built.terrain.row_of
    hosts = [host for _, host in chosen]
    rows = {
        name: row_of[host] for name, host in zip(sorted(built.request.members), hosts, strict=True)
    }
    placement = Placement(built.policy_view, rows)
    penalty = sum(choice for choice, _ in chosen) if built.request.first_choices else 0
    for rule in built.rules:
        found = (v for edge in rule.edges for v in rule.policy.violations(edge, placement))
        amount = sum(one.amount for one in found)
        if amount and rule.statement.required:
            return None
        penalty += amount * (rule.statement.weight or 0)
    used = len(set(hosts))
    spread = built.request.objective is Objective.SPREAD
    return preference_scale(built.problem) * penalty + (len(hosts) - used if spread else used)


def check(seed: int, counts: Counter[str]) -> None:
    nodes, request, topology = random_members(seed)
    built = build(request, snapshot(nodes, topology))
    fitting = {one: cost(built, one) for one in possible(Oracle(nodes, []), built)}
    costs = [one for one in fitting.values() if one is not None]
    counts["infeasible"] += not costs
    if costs:
        assert not refuted(built.problem), seed
    for solver, one in SOLVERS.items():
        outcome = solve(one, built.problem, time_limit=LIMIT, seed=0)
        if outcome.hosts is None:
            assert not costs or outcome.verdict is Verdict.UNKNOWN, seed
            counts[f"{solver} {outcome.verdict}{' wrongly' if costs else ''}"] += 1
            continue
        verify(built, outcome.hosts)
        choice_of = {} if built.alternatives is None else built.alternatives.choice_of
        placed: dict[MemberName, tuple[int, str]] = {}
        for name, m, row in placed_members(built, outcome.hosts):
            part = built.problem.members[m]
            placed[name] = (choice_of.get(part, 0), built.problem.hosts[row])
        assert fitting.get(tuple(placed[name] for name in sorted(placed))) is not None, seed
        if outcome.proven:
            assert outcome.value - constant_cost(built.problem) == min(costs), seed
        counts[f"{solver} {'proven' if outcome.proven else 'placed'}"] += 1
        kinds = {request.role_of(name).choices[one].kind for name, (one, _) in placed.items()}
        counts["mixed"] += len(kinds) > 1
        counts["on pools"] += any(host.startswith("pool") for _, host in placed.values())


def test_all_kinds_are_placed_as_their_words_say() -> None:
    counts: Counter[str] = Counter()
    for seed in range(CASES):
        check(seed, counts)
    assert CASES / 10 < counts["infeasible"] < 9 * CASES / 10, counts
    assert counts["mixed"] > CASES / 5, counts
    assert counts["on pools"] > CASES / 10, counts
    assert counts["exhaustive unknown wrongly"] < CASES / 50, counts


@pytest.mark.parametrize("seed", range(40))
def test_a_saved_request_keeps_pools_and_compute_nodes(seed: int) -> None:
    nodes, request, topology = random_members(seed)
    built = build(request, snapshot(nodes, topology))
    again = loads_request(dumps_request(built))
    assert dumps_request(again) == dumps_request(built)
    assert (again.problem.allowed == built.problem.allowed).all()
