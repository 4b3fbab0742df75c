"""Solvers that leave room for others, against the exhaustive one, which knows nothing of it.

Room decides only between placements that cost the same, so what is proved to be the best must cost
what the best of all placements costs.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from tests.seeds import cases

from moorage.domain.period import SECOND
from moorage.domain.request_mix import RequestMix, shape
from moorage.engine.joint.build import BuiltProblem
from moorage.engine.joint.cost import cost
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.room import Room, times
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import random_built
from moorage.testing.solver_checks import LIMIT, check_answer

CHUNKS, SEEDS = 10, cases(60, 300)


def with_random_room(built: BuiltProblem, seed: int) -> BuiltProblem:
    """The problem with some mix; hosts that lack a trait have no room for a shape."""
    dice, problem = random.Random(seed), built.problem
    counts = {}
    for _ in range(dice.randint(1, 4)):
        names = dice.sample(problem.classes, dice.randint(1, len(problem.classes)))
        counts[shape({name: dice.randint(1, 8) for name in names})] = dice.randint(1, 99)
    mix = RequestMix.of(counts)
    demand = np.array([[one.whole.get(k, 0) for k in problem.classes] for one, _ in mix.shapes])
    ceiling = np.array(
        [
            np.min([times(problem.free[:, k], demand[j, k, None])[0] for k in taken], axis=0)
            for j, taken in enumerate(map(np.flatnonzero, demand))
        ]
    )
    ceiling *= np.array([[dice.random() < 0.7 for _ in problem.hosts] for _ in mix.shapes])
    total = ceiling.sum(axis=1)
    worth = np.array([count for _, count in mix.shapes]) / np.maximum(total, 1)
    room = Room(mix, demand, ceiling, (worth * dice.choice([0.01, 1, 100])).astype(np.float32))
    return replace(built, problem=replace(problem, room=room))


def problems(chunk: int) -> Iterator[tuple[int, BuiltProblem]]:
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        yield seed, with_random_room(random_built(seed), seed)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_is_proved_to_be_the_best_costs_what_the_best_costs(chunk: int) -> None:
    portfolio, greedy, oracle = Portfolio(CpSat()), Greedy(), Exhaustive()
    proved = 0
    for seed, built in problems(chunk):
        truth = oracle.solve(built.problem, time_limit=LIMIT, seed=0)
        found = check_answer(portfolio, built, seed, exact=True, truth=truth)
        proved += found.proven
        check_answer(greedy, built, seed, exact=False, truth=truth)
    assert proved == SEEDS


def test_an_answer_repeats_with_its_seed() -> None:
    """Host by host: room breaks the ties that seeds would break otherwise."""
    for seed, built in problems(0):
        for solver in (Greedy(), Portfolio(CpSat())):
            one, other = (
                solver.solve(built.problem, time_limit=20 * SECOND, seed=seed) for _ in range(2)
            )
            assert one.verdict is other.verdict, seed
            if one.hosts is not None and other.hosts is not None:
                assert one.hosts.tolist() == other.hosts.tolist(), seed


def test_room_decides_between_placements_that_cost_the_same() -> None:
    """It changes some answers of the greedy search, and none to a dearer one where both prove."""
    changed = 0
    for seed, built in problems(1):
        plain = replace(built.problem, room=None)
        with_room, without = (
            Greedy().solve(one, time_limit=LIMIT, seed=0) for one in (built.problem, plain)
        )
        if with_room.hosts is None or without.hosts is None:
            continue
        assert with_room.verdict is without.verdict is Verdict.FEASIBLE
        changed += with_room.hosts.tolist() != without.hosts.tolist()
        if with_room.proven and without.proven:
            costs = cost(plain, np.array([with_room.hosts, without.hosts]))
            assert costs[0] == costs[1], seed
    assert changed > SEEDS / 20
