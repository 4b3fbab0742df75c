"""Strategies in sequence: the best answer counts, and what fails or is wrong is passed over."""

import logging
from dataclasses import dataclass, field

import numpy as np
import pytest

from moorage.domain.period import SECOND, Duration
from moorage.engine.joint.cost import cost
from moorage.engine.joint.problem import Outcome, Problem, Verdict
from moorage.solver.greedy import Greedy
from moorage.solver.strategies import Strategies
from moorage.testing.problems import random_built, story_a

PROBLEM = story_a().problem
LIMIT = 8 * SECOND


@dataclass
class Says:
    """Always gives the same answer, or raises it."""

    answer: Outcome | Exception
    limits: list[Duration] = field(default_factory=list)

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        self.limits.append(time_limit)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def good() -> Outcome:
    found = Greedy().solve(PROBLEM, time_limit=LIMIT, seed=0)
    assert found.hosts is not None
    return found


def answer(hosts: object, *, value: int = 0, bound: int = 0) -> Outcome:
    rows = None if hosts is None else np.asarray(hosts)
    return Outcome(Verdict.FEASIBLE, "theirs", rows, value=value, bound=bound)


def solved(**strategies: Says) -> Outcome:
    return Strategies(strategies).solve(PROBLEM, time_limit=LIMIT, seed=0)


MEMBERS = len(PROBLEM.members)
WRONG: dict[str, Outcome | Exception] = {
    "nowhere": answer(None),
    "too few": answer([0]),
    "no row": answer([10**6] * MEMBERS),
    "before the first": answer([-1] * MEMBERS),
    "one host for all": answer([0] * MEMBERS),
    "no numbers": answer(["h1"] * MEMBERS),
    "an error": RuntimeError("unfinished"),
}


@pytest.mark.parametrize("wrong", list(WRONG))
def test_a_wrong_answer_is_logged_and_the_next_one_counts(
    wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        found = solved(tabu=Says(WRONG[wrong]), other=Says(good()))
    assert found.verdict is Verdict.FEASIBLE
    assert found.solver == "other"
    assert "strategy tabu" in caplog.text
    alone = solved(tabu=Says(WRONG[wrong]))
    assert (alone.verdict, alone.hosts) == (Verdict.UNKNOWN, None)


def test_the_cost_is_computed_and_the_bound_no_higher() -> None:
    known = good()
    value = int(cost(PROBLEM, np.asarray(known.hosts)[None, :])[0])
    found = solved(boaster=Says(answer(known.hosts, value=-7, bound=10**9)))
    assert (found.value, found.bound, found.solver) == (value, value, "boaster")


def test_a_member_that_stands_may_not_move() -> None:
    built = next(
        one
        for seed in range(1000)
        if ((one := random_built(seed, fixed=0.6)).problem.fixed >= 0).sum() > 1
        and len(one.problem.hosts) > 1
    )
    problem = built.problem
    rows = np.where(problem.fixed >= 0, (problem.fixed + 1) % len(problem.hosts), 0)
    found = Strategies({"mover": Says(answer(rows))}).solve(problem, time_limit=LIMIT, seed=0)
    assert found.hosts is None


def test_time_is_shared_and_a_proof_ends_the_search() -> None:
    first, second, third = Says(Outcome(Verdict.UNKNOWN, "")), Says(good()), Says(good())
    found = solved(first=first, second=second, third=third)
    assert first.limits == [pytest.approx(LIMIT / 3, rel=0.2)]
    assert second.limits == [pytest.approx(LIMIT / 2, rel=0.2)]
    assert found.proven
    assert third.limits == []


def test_that_nothing_fits_is_believed() -> None:
    found = solved(exact=Says(Outcome(Verdict.INFEASIBLE, "theirs")))
    assert (found.verdict, found.solver) == (Verdict.INFEASIBLE, "exact")


def test_without_memory_the_process_is_replaced() -> None:
    with pytest.raises(MemoryError):
        solved(greedy=Says(MemoryError()))
