"""The answers are valid, and there is one to most problems that have one."""

from moorage_restarts import Restarts

from moorage.testing.solver_checks import check_solver

PROBLEMS = 150


def test_the_answers_are_valid() -> None:
    answered = check_solver(Restarts(), problems=PROBLEMS)
    assert answered > PROBLEMS / 3
