"""The solvers in sequence: greedy search with counting, then an exact solver.

Most requests never reach the exact solver: a greedy answer whose cost meets the lower bound is the
best there is, and counting refutes what cannot be.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from moorage.domain import search_progress
from moorage.domain.decisions import SolveEnd
from moorage.domain.errors import Busy
from moorage.domain.period import SECOND
from moorage.engine.joint.problem import Verdict
from moorage.http.process_queue import NoAnswer
from moorage.solver.greedy import IMPROVING, Greedy
from moorage.solver.strategies import better

if TYPE_CHECKING:
    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Outcome, Problem, SupportsSolve


MOST_LISTED: Final = 40_000
"""Primitives that list more members than this take the exact solver longer to state than it has to
improve a placement: those of every two of a hundred sides of ten members list 99,000."""


@dataclass(frozen=True)
class Portfolio:
    """Combines the other solvers; `exact` searches in this process, or in a pool of processes."""

    exact: SupportsSolve
    greedy: Greedy = field(default_factory=Greedy)
    improving: int = IMPROVING
    """A valid answer is improved for one part in this many of the time limit, at most."""

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """The best placement found within the limit; `infeasible` only when proved.

        Raises:
            Busy: no greedy answer, and the exact solver's queue is full.
        """
        with search_progress.one_search():
            return self._solve(problem, time_limit, seed)

    def _solve(self, problem: Problem, time_limit: Duration, seed: int) -> Outcome:
        started = time.monotonic()
        quick = self.greedy.solve(problem, time_limit=time_limit, seed=seed)
        left = time_limit - int(_since(started) / 1000 * SECOND)
        if quick.verdict is Verdict.FEASIBLE:
            left = min(left, time_limit // self.improving)
        placed = quick.verdict is Verdict.FEASIBLE
        if quick.proven or left <= 0 or (placed and _listed(problem) > MOST_LISTED):
            return self._ended(quick, started)
        try:
            exact = self.exact.solve(problem, time_limit=left, seed=seed)
        except NoAnswer:
            # What a process does not answer in its time is as unknown as what it cannot decide.
            return self._ended(quick, started, SolveEnd.BUSY)
        except Busy:
            # A valid answer that might be improved is better than none; its bound says so.
            if quick.verdict is not Verdict.FEASIBLE:
                raise
            return self._ended(quick, started, SolveEnd.BUSY)
        return self._ended(better(quick, exact), started)

    def _ended(
        self, found: Outcome, started: float, otherwise: SolveEnd = SolveEnd.TIME_LIMIT
    ) -> Outcome:
        """The outcome with its time, and why the search ended if nothing is proved."""
        ended = SolveEnd.PROVED if found.proven else otherwise
        wall_ms, scatter = _since(started), self.greedy.scatter
        return replace(found, ended=ended, wall_ms=wall_ms, scatter=scatter)


def _listed(problem: Problem) -> int:
    """How many members the primitives list together."""
    lists = ((one.members, getattr(one, "others", ())) for one in problem.primitives)
    return sum(len(members) + len(others) for members, others in lists)


def _since(started: float) -> float:
    """Milliseconds since an instant."""
    return (time.monotonic() - started) * 1000
