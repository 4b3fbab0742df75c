"""A test oracle: judges every placement, one by one.

Complete and exact by construction, for small instances only. It shares no search with the
other solvers; it extends all partial placements by one member at a time and drops those
that overfill a host, which nothing later can repair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.engine.joint.cost import cost, satisfies
from moorage.engine.joint.problem import Outcome, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Problem

    Ints: TypeAlias = NDArray[np.int64]

MOST_PLACEMENTS = 2_000_000


class TooLarge(ValueError):
    """The instance has too many placements for the oracle."""


class Exhaustive:
    """Tries every placement; ignores the time limit, refuses large instances."""

    name = "exhaustive"

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:  # noqa: ARG002 - the port's signature; nothing here is random or cut short
        """The first of the best placements in row order, or a proof that there is none.

        Raises:
            TooLarge: more than `MOST_PLACEMENTS` fit side by side.
        """
        rows = every_placement(problem)
        rows = rows[satisfies(problem, rows)]
        if not len(rows):
            return Outcome(Verdict.INFEASIBLE, self.name)
        costs = cost(problem, rows)
        best = int(np.argmin(costs))
        value = int(costs[best])
        return Outcome(Verdict.FEASIBLE, self.name, rows[best], value=value, bound=value)


def every_placement(problem: Problem) -> Ints:
    """[N, M] every assignment of members to hosts that the filters and the capacity allow."""
    rows = np.zeros((1, 0), dtype=np.int64)
    free = problem.free[None, :, :]
    for index in range(len(problem.members)):
        role = problem.role_of[index]
        fixed = int(problem.fixed[index])
        hosts = np.array([fixed]) if fixed >= 0 else np.flatnonzero(problem.allowed[role])
        if len(rows) * len(hosts) > MOST_PLACEMENTS:
            raise TooLarge(f"more than {MOST_PLACEMENTS} placements")
        count = len(rows)
        rows = np.hstack(
            [np.repeat(rows, len(hosts), axis=0), np.tile(hosts, count)[:, None]]
        ).astype(np.int64)
        free = np.repeat(free, len(hosts), axis=0)
        if fixed < 0:
            demand = problem.demand[role]
            free[np.arange(len(rows)), rows[:, index]] -= demand
            left = free[np.arange(len(rows)), rows[:, index]]
            fits = ((left >= 0) | (demand == 0)).all(axis=1)
            rows, free = rows[fits], free[fits]
    return rows
