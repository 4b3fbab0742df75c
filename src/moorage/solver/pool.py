"""The pool's client: a `Solver` whose work is done by the supervisor's solver processes."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage import logs
from moorage.domain.errors import Busy
from moorage.domain.period import SECOND
from moorage.engine import instance
from moorage.solver import channel

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from moorage.domain.period import Duration
    from moorage.engine.problem import Outcome, Problem

_MARGIN: Final = 2.0
"""Seconds past its limit that a solver has to hand over what it found."""


class SolverFailed(RuntimeError):
    """A solver process met an error of its own; its log has the traceback."""


@dataclass(frozen=True)
class PoolSolver:
    """Hands problems to the solver processes listening at `address`.

    The time limit covers the wait for a free process and the solve. Nothing is kept between
    calls, so a replaced process is found by the next call without ado.
    """

    address: str

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """The pool's answer.

        Raises:
            Busy: the queue is full, no process became free in time, or the one that had the
                problem died or went past its limit.
            SolverFailed: the solver itself failed.
        """
        deadline = time.monotonic() + time_limit / SECOND
        message = instance.dumps(problem)
        connection = self._turn(deadline)
        try:
            left = max(int((deadline - time.monotonic()) * SECOND), 1)
            ids = logs.current()
            terms = {"time_limit": left, "seed": seed, "for": [ids.own, ids.called_by]}
            connection.send_bytes(json.dumps(terms).encode())
            connection.send_bytes(message)
            if not connection.poll(left / SECOND + _MARGIN):
                raise Busy("the solver went past its time limit", retry_after=5)
            if connection.recv_bytes(channel.LONGEST_MESSAGE) != channel.OK:
                raise SolverFailed("the solver process failed; its log says more")
            return instance.loads_outcome(connection.recv_bytes(channel.LONGEST_MESSAGE))
        except (EOFError, OSError) as error:
            raise Busy("the solver process ended while it solved", retry_after=2) from error
        finally:
            connection.close()

    def _turn(self, deadline: float) -> Connection:
        """A connection to a process that has taken it from the queue.

        A process that dies between taking it and the first word costs nothing: queue again.
        """
        while True:
            connection = channel.connect(self.address)
            try:
                if connection.poll(max(deadline - time.monotonic(), 0)):
                    connection.recv_bytes(len(channel.READY))
                    return connection
            except (EOFError, OSError):
                connection.close()
                continue
            connection.close()
            raise Busy("no solver became free in time", retry_after=2)
