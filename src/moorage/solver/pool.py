"""The client of the solver pool: a `Solver` whose work the solver processes do."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage import logs
from moorage.domain import search_progress
from moorage.domain.period import SECOND
from moorage.engine.joint import instance
from moorage.http.process_queue import ProcessPool

if TYPE_CHECKING:
    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Outcome, Problem

_MARGIN: Final = 2.0
"""Seconds past its limit that a solver has to hand over what it found."""


@dataclass(frozen=True)
class PoolSolver:
    """Sends problems to the solver processes listening at `address`.

    The time limit covers the wait for a free process and the solve. Nothing is kept between
    calls, so a replaced process is found by the next call without ado.
    """

    address: str

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """The pool's answer.

        Raises:
            NoAnswer: no process became free in time, or the one that had the problem died or went
                past its limit.
            Busy: the queue is full, or no process serves it.
            Failed: the solver itself failed.
        """
        until = time.monotonic() + time_limit / SECOND
        message = instance.dumps(problem)

        def messages() -> tuple[bytes, bytes]:
            left = max(int((until - time.monotonic()) * SECOND), 1)
            ids = logs.CURRENT.get()
            terms = {
                "time_limit": left,
                "seed": seed,
                "for": [ids.own, ids.called_by],
                "progress": search_progress.listener() is not None,
            }
            return json.dumps(terms).encode(), message

        pool = ProcessPool("solver", self.address)
        answer = pool.ask(messages, until=until, margin=_MARGIN, interim=_report)
        return instance.loads_outcome(answer)


def _report(message: bytes) -> None:
    """Report the progress that a solver process has sent."""
    told = json.loads(message)
    search_progress.report(told["solver"], told["value"], told["bound"])
