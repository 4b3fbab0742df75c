"""restarts: random placements, improved by moving one member at a time.

A descent starts from each of several random placements, and moves members while that helps. It
proves nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain import search_progress
from moorage.domain.period import SECOND
from moorage.engine.joint.cost import cost, satisfies
from moorage.engine.joint.problem import Outcome, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Problem

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Restarts:
    """Descends from so many random placements; the same seed gives the same answer."""

    starts: int = 30
    name: str = "restarts"

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """The cheapest placement found, or `unknown`."""
        started = time.monotonic()
        deadline = started + time_limit / SECOND
        dice = np.random.default_rng(seed)
        best: Outcome | None = None
        for _ in range(self.starts):
            if time.monotonic() > deadline:
                break
            rows = _random(problem, dice)
            rows = None if rows is None else _descended(problem, rows, dice, deadline)
            if rows is None:
                continue
            value = int(cost(problem, rows[None, :])[0])
            if best is None or value < best.value:
                best = Outcome(Verdict.FEASIBLE, self.name, rows, value=value)
                search_progress.report(self.name, value, 0)
        return best or Outcome(Verdict.UNKNOWN, self.name)


def _random(problem: Problem, dice: np.random.Generator) -> Ints | None:
    """[M] a host for every member: its own if it is fixed, else any that suits its role."""
    rows = problem.fixed.copy()
    for member in problem.to_place.tolist():
        suits = np.flatnonzero(problem.allowed[problem.role_of[member]])
        if not len(suits):
            return None
        rows[member] = dice.choice(suits)
    return rows


def _descended(
    problem: Problem, rows: Ints, dice: np.random.Generator, deadline: float
) -> Ints | None:
    """[M] the placement after moves of single members to hosts where it is valid and cheapest.

    A member that makes it valid nowhere goes to a random host. None: it is not valid at the end.
    """
    improved = True
    while improved and time.monotonic() < deadline:
        improved = False
        for member in dice.permutation(problem.to_place).tolist():
            suits = np.flatnonzero(problem.allowed[problem.role_of[member]])
            tried = np.repeat(rows[None, :], len(suits), axis=0)
            tried[:, member] = suits
            valid = satisfies(problem, tried)
            if not valid.any():
                rows[member] = dice.choice(suits)
                continue
            costs = np.where(valid, cost(problem, tried), np.iinfo(np.int64).max)
            here = bool(satisfies(problem, rows[None, :])[0])
            least = int(np.argmin(costs))
            if not here or costs[least] < cost(problem, rows[None, :])[0]:
                rows, improved = tried[least], True
    return rows if bool(satisfies(problem, rows[None, :])[0]) else None
