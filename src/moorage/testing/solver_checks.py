"""The checks that every solver passes, Moorage's own and those of plug-ins.

A plug-in's test calls `check_solver` with a solver:

    from moorage.testing.solver_checks import check_solver

    def test_the_answers_are_valid() -> None:
        check_solver(Restarts())

A failed check raises `AssertionError` with the seed of the random problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.period import SECOND
from moorage.engine.joint.cost import cost
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.verify import verify
from moorage.solver.exhaustive import Exhaustive
from moorage.testing.problems import random_built

if TYPE_CHECKING:
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem import Outcome, SupportsSolve

LIMIT = 30 * SECOND


def check_solver(solver: SupportsSolve, *, exact: bool = False, problems: int = 300) -> int:
    """Check a solver's answers to random small problems by trying every placement.

    Every placement must be valid, of the cost that it says, and no better than the bound; a proof
    must be true. An `exact` solver must also find the best placement. The same seed must give the
    same answer.

    Returns:
        To how many of the problems that have an answer the solver gave one.
    """
    answered = 0
    for seed in range(problems):
        built = random_built(seed)
        found = check_answer(solver, built, seed, exact=exact)
        again = solver.solve(built.problem, time_limit=LIMIT, seed=seed)
        assert (found.verdict, found.value) == (again.verdict, again.value), f"seed {seed}"
        answered += found.verdict is Verdict.FEASIBLE
    return answered


def check_answer(
    solver: SupportsSolve,
    built: BuiltProblem,
    seed: int,
    *,
    exact: bool,
    truth: Outcome | None = None,
) -> Outcome:
    """Check one answer; see `check_solver`. `truth` is the oracle's, if it was asked before."""
    problem = built.problem
    truth = truth or Exhaustive().solve(problem, time_limit=LIMIT, seed=0)
    found = solver.solve(problem, time_limit=LIMIT, seed=seed)
    told = f"seed {seed}: {found}, truly {truth}"
    if found.verdict is Verdict.FEASIBLE:
        assert found.hosts is not None, told
        verify(built, found.hosts)
        assert found.value == int(cost(problem, found.hosts[None, :])[0]), told
        assert found.bound <= truth.value <= found.value, told
    elif found.verdict is Verdict.INFEASIBLE:
        assert truth.verdict is Verdict.INFEASIBLE, told
    if exact:
        assert found.verdict is truth.verdict, told
        assert (found.value, found.bound) == (truth.value, truth.value), told
    return found
