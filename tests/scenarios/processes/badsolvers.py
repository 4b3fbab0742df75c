"""Solvers that misbehave as no real one should; run by real solver processes."""

import time
from typing import Any

import numpy as np

from moorage.engine.joint.problem import Outcome, Problem
from moorage.solver.exhaustive import Exhaustive


class Worst:
    """What it does depends on the number of members."""

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        misdeeds: dict[int, Any] = {
            3: lambda: time.sleep(60),
            4: lambda: np.ones(2**30, np.int64),
            5: lambda: 1 // 0,
        }
        misdeeds.get(len(problem.members), lambda: None)()
        return Exhaustive().solve(problem, time_limit=time_limit, seed=seed)
