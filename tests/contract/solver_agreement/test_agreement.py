"""Every solver against the exhaustive one, on thousands of random small problems.

All policies, strengths and objectives, fixed members, odd hosts: 400 problems at every push, 40,000
at night (`MOORAGE_HYPOTHESIS=nightly pytest tests/contract/solver_agreement`). A failure names its
seed.
"""

import itertools
from collections.abc import Iterator

import pytest
from tests.seeds import cases

from moorage.domain.period import SECOND
from moorage.engine.joint.build import BuiltProblem
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.engine.joint.problem_index import index_problem
from moorage.solver.bounds import lower_bound
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import random_built
from moorage.testing.solver_checks import check_answer

CHUNKS, SEEDS = cases(4, 400), 100
LIMIT = 30 * SECOND


def problems(chunk: int) -> Iterator[tuple[int, BuiltProblem, Outcome]]:
    """The chunk's seeds with their problems and the oracle's answers."""
    oracle = Exhaustive()
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        built = random_built(seed)
        yield seed, built, oracle.solve(built.problem, time_limit=LIMIT, seed=0)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_exact_solvers_find_the_same_verdict_and_the_same_cost(chunk: int) -> None:
    solvers = (CpSat(), Portfolio(CpSat()))
    for seed, built, truth in problems(chunk):
        for solver in solvers:
            check_answer(solver, built, seed, exact=True, truth=truth)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_greedy_answers_are_valid_and_bounds_are_below_the_truth(chunk: int) -> None:
    missed = []
    for seed, built, truth in problems(chunk):
        found = check_answer(Greedy(), built, seed, exact=False, truth=truth)
        if truth.verdict is Verdict.INFEASIBLE:
            assert found.verdict is not Verdict.FEASIBLE, seed
            continue
        assert not refuted(built.problem), f"seed {seed}: refuted, truly {truth}"
        assert lower_bound(index_problem(built.problem)) <= truth.value, seed
        if found.verdict is Verdict.UNKNOWN:
            missed.append(seed)
    assert len(missed) <= SEEDS * 0.02, f"greedy finds nothing for seeds {missed}"


def test_the_problems_are_worth_solving() -> None:
    """Neither all feasible nor all refuted: a generator gone dull would prove nothing."""
    seen = list(itertools.islice(problems(0), 100))
    feasible = [built for _, built, truth in seen if truth.verdict is Verdict.FEASIBLE]
    costly = [truth for _, _, truth in seen if truth.value > 0]
    assert 25 <= len(feasible) <= 90
    assert len(costly) >= 20
    assert {rule.statement.type for built in feasible for rule in built.rules} >= {
        "affinity", "anti-affinity", "ban", "exclusive", "fence", "proximity", "separation",
        "spread", "survive",
    }  # fmt: skip
