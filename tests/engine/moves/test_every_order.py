"""Plans of random small problems against every order of moves."""

import pytest
from tests.engine.moves.brute_force import BruteForce
from tests.engine.moves.instances import random_problem
from tests.seeds import cases

from moorage.engine.moves.plan import plan_moves
from moorage.engine.moves.problem import MovePlan


@pytest.mark.parametrize("hundred", range(cases(4, 50)))
def test_a_plan_is_valid_and_no_possible_one_is_called_impossible(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        problem = random_problem(seed)
        judge = BruteForce(problem)
        optimum = judge.optimum()
        found = plan_moves(problem, seed=seed)
        if isinstance(found, MovePlan):
            judge.check(found)
            assert optimum is not None, seed
            assert found.lower_bound <= optimum <= found.cost, seed
            assert not found.optimal or found.cost == optimum, seed
        else:
            assert not (found.proved and optimum is not None), seed
            assert found.stuck, seed
            assert optimum is None, f"{seed}: there is a plan, and none was found"
            if found.partial is not None:
                judge.check(found.partial, partial=True)
                assert found.partial.steps, seed
