"""What does not help on the empty fleet does not help on the present one: the exhaustive solver."""

import pytest

from moorage.domain.requests import EnsembleRequest
from moorage.engine.explain.conflicts import Core, any_placement
from moorage.engine.explain.elements import on_empty_hosts
from moorage.engine.explain.refusal import explain
from moorage.engine.explain.relaxation_candidates import ANY_CHANGE, ChangeProposals
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.problem import Problem, Verdict
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import random_built

CHUNKS = 4
SEEDS = 50


def feasible(problem: Problem) -> bool:
    outcome = Exhaustive().solve(any_placement(problem), time_limit=1_000_000, seed=0)
    return outcome.verdict is Verdict.FEASIBLE


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_is_useless_when_empty_is_useless_now(chunk: int) -> None:
    judged = 0
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        built = random_built(seed, fixed=0.0 if seed % 2 else 0.2)
        empty = on_empty_hosts(built.request, built)
        if feasible(empty.problem):
            continue
        found = explain(empty, Portfolio(CpSat()), remaining=lambda: 30.0)
        assert not feasible(built.problem), seed
        cores = [Core(one.elements, one.minimal) for one in found.conflicts]
        for one in ChangeProposals(built, cores, ANY_CHANGE).small_changes():
            if str(one.change) in found.found.useless:
                assert not _fits(built, one.request), f"{seed}: {one.change}"
                judged += 1
    assert judged


def _fits(built: BuiltProblem, request: EnsembleRequest) -> bool:
    return feasible(build_on_terrain(request, built.terrain, closed=built.closed).problem)
