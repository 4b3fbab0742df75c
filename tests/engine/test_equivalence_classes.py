"""Hosts that nothing tells apart are exchangeable, and only as many are needed as members."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.period import SECOND
from moorage.engine.joint.cost import cost, satisfies
from moorage.engine.joint.equivalence_classes import equivalence_classes, sufficient_hosts
from moorage.solver.exhaustive import Exhaustive
from moorage.testing.problems import random_built, story_a


@given(seed=st.integers(0, 10**6))
def test_exchanging_two_hosts_of_a_class_changes_nothing(seed: int) -> None:
    problem = random_built(seed, hosts=8).problem
    of_class = equivalence_classes(problem)
    noise = np.random.default_rng(seed)
    rows = noise.integers(0, len(problem.hosts), (20, len(problem.members)))
    rows[:, problem.fixed >= 0] = problem.fixed[problem.fixed >= 0]
    for number in np.unique(of_class):
        same = np.flatnonzero(of_class == number)
        if len(same) > 1:
            swap = np.arange(len(problem.hosts))
            swap[same[0]], swap[same[1]] = same[1], same[0]
            assert (satisfies(problem, rows) == satisfies(problem, swap[rows])).all()
            assert (cost(problem, rows) == cost(problem, swap[rows])).all()


@given(seed=st.integers(0, 10**6))
def test_the_hosts_that_are_enough_hold_a_best_answer(seed: int) -> None:
    problem = random_built(seed, hosts=7, members=3).problem
    rows = sufficient_hosts(
        problem, equivalence_classes(problem), np.zeros(len(problem.hosts), dtype=np.int64)
    )
    barred = np.ones(len(problem.hosts), dtype=np.bool_)
    barred[rows] = False
    allowed = problem.allowed & ~barred
    fewer = replace(problem, allowed=allowed)
    full, reduced = (Exhaustive().solve(p, time_limit=SECOND, seed=0) for p in (problem, fewer))
    assert (full.verdict, full.value) == (reduced.verdict, reduced.value)


def test_the_hosts_of_story_a_fall_into_four_classes() -> None:
    """r1 and r2 are alike inside; r3 has one host with 8 free and two with 6."""
    assert len(np.unique(equivalence_classes(story_a().problem))) == 4
