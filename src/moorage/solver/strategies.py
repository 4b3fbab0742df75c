"""Several strategies in sequence, of which any may be a plug-in's.

Each strategy gets an equal share of the time that is left, and the search ends with the first
proof. A plug-in's placement is checked against the problem, and its cost computed here; one that
fails or answers wrongly is logged and passed over, and the next one has the time it left.
That a problem is infeasible, and its bounds, are believed: only its tests can check them.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.period import SECOND
from moorage.engine.joint.cost import cost, satisfies
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.solver.solver_plugins import CPSAT, make_strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Problem, SupportsSolve

    Ints: TypeAlias = NDArray[np.int64]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Strategies:
    """The strategies by name, in the order in which they are tried."""

    by_name: Mapping[str, SupportsSolve]

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """The best placement that any of them found, with the tightest bound.

        Raises:
            Busy, or another error of CP-SAT's.
        """
        until = time.monotonic() + time_limit / SECOND
        best: Outcome | None = None
        for tried, (name, strategy) in enumerate(self.by_name.items()):
            seconds = (until - time.monotonic()) / (len(self.by_name) - tried)
            if best is not None and seconds <= 0:
                break
            found = _solve(name, strategy, problem, max(int(seconds * SECOND), 1), seed)
            if found is not None:
                best = found if best is None else better(best, found)
                if best.proven:
                    break
        return best or Outcome(Verdict.UNKNOWN, ",".join(self.by_name))


def in_order(names: tuple[str, ...]) -> SupportsSolve:
    """What searches by the strategies of these names in turn.

    Raises:
        BadPlugin: one cannot be made.
    """
    made = {name: make_strategy(name) for name in names}
    return made[CPSAT] if tuple(made) == (CPSAT,) else Strategies(made)


def better(first: Outcome, second: Outcome) -> Outcome:
    """The cheaper answer with the tighter bound; a proof counts if neither has an answer."""
    if first.verdict is not Verdict.FEASIBLE:
        return first if second.verdict is Verdict.UNKNOWN else second
    if second.verdict is not Verdict.FEASIBLE:
        return first
    best = second if second.value < first.value else first
    return replace(best, bound=min(best.value, max(first.bound, second.bound)))


def _solve(
    name: str, strategy: SupportsSolve, problem: Problem, time_limit: Duration, seed: int
) -> Outcome | None:
    """The answer of one strategy; None if it failed or is wrong, which is logged."""
    if name == CPSAT:
        return strategy.solve(problem, time_limit=time_limit, seed=seed)
    try:
        found = strategy.solve(problem, time_limit=time_limit, seed=seed)
        return _checked(name, problem, found)
    except MemoryError:
        raise  # the process is replaced
    except Exception:  # noqa: BLE001 - whatever a plug-in raises: others may find an answer
        _log.exception("strategy %s failed; the next one searches", name)
        return None


def _checked(name: str, problem: Problem, found: Outcome) -> Outcome | None:
    """A plug-in's answer with the cost that its placement has; None if that is none."""
    if found.verdict is not Verdict.FEASIBLE:
        return replace(found, solver=name)
    rows = np.asarray(found.hosts, dtype=np.int64)
    if not _valid(problem, rows):
        _log.error("strategy %s gave a placement that breaks the request", name)
        return None
    value = int(cost(problem, rows[None, :])[0])
    return replace(found, solver=name, hosts=rows, value=value, bound=min(found.bound, value))


def _valid(problem: Problem, rows: Ints) -> bool:
    """Whether the rows are a placement that the problem permits."""
    if rows.shape != (len(problem.members),) or ((rows < 0) | (rows >= len(problem.hosts))).any():
        return False
    stay = problem.fixed >= 0
    permitted = np.where(stay, rows == problem.fixed, problem.allowed[problem.role_of, rows])
    return bool(permitted.all()) and bool(satisfies(problem, rows[None, :])[0])
