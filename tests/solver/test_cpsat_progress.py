"""The progress of exact solves: true, and without influence on the answer."""

import numpy as np
import pytest
from tests.solver.test_portfolio import LIMIT

from moorage.domain.search_progress import SearchProgress, listening
from moorage.engine.joint.problem import Outcome, Problem, Verdict
from moorage.solver import cpsat
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import random_built


def watched(problem: Problem, seed: int = 0) -> tuple[Outcome, list[SearchProgress]]:
    heard: list[SearchProgress] = []
    with listening(heard.append):
        found = Portfolio(CpSat()).solve(problem, time_limit=LIMIT, seed=seed)
    return found, heard


def test_the_last_report_is_the_answer() -> None:
    searched = 0
    for seed in range(60):
        problem = random_built(seed).problem
        found, heard = watched(problem, seed)
        if found.verdict is not Verdict.FEASIBLE:
            assert all(one.value is None for one in heard)
            continue
        last = heard[-1]
        assert last.value == found.value
        assert last.bound <= found.bound <= found.value
        assert all(one.bound <= found.value for one in heard)
        searched += any(one.solver == "cpsat" for one in heard)
    assert searched


def test_listening_changes_no_answer() -> None:
    for seed in range(20):
        problem = random_built(seed).problem
        found, _ = watched(problem, seed)
        alone = Portfolio(CpSat()).solve(problem, time_limit=LIMIT, seed=seed)
        assert (found.verdict, found.value, found.bound) == (
            alone.verdict,
            alone.value,
            alone.bound,
        )
        if found.hosts is not None:
            assert alone.hosts is not None
            assert np.array_equal(found.hosts, alone.hosts)


@pytest.mark.parametrize("cells", [12, cpsat.CELLS])
def test_reported_bounds_are_true(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a model that leaves out hosts: a placement on another may cost less."""
    monkeypatch.setattr(cpsat, "CELLS", cells)
    monkeypatch.setattr(cpsat, "MOST_CELLS", cells)
    for seed in range(100):
        problem = random_built(seed, hosts=6).problem
        truth = Exhaustive().solve(problem, time_limit=LIMIT, seed=0)
        _, heard = watched(problem, seed)
        if truth.verdict is Verdict.FEASIBLE:
            assert all(one.bound <= truth.value for one in heard), seed
            assert all(one.value is None or truth.value <= one.value for one in heard), seed
