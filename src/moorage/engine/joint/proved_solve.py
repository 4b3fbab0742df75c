"""Solves a problem, and proves the devices of every answer before it is accepted.

A placement whose devices cannot serve it becomes a cut, and the problem is solved again. A
problem without devices is solved once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.period import SECOND
from moorage.engine.joint.device_cuts import lesson
from moorage.engine.joint.problem import Outcome, Verdict

if TYPE_CHECKING:
    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Problem, Solves

ROUNDS: Final = 100
"""Solves of one problem at most."""
_MILLISECOND: Final = SECOND // 1000


def solve(solver: Solves, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
    """The best placement that devices can serve, or a verdict that there is none.

    `unknown` also where a search over devices gave up, and nothing else was found. No solve goes
    on past the deadline of the work at hand.

    Raises:
        Busy: as of the solver.
        TimeExpired: the deadline has passed.
    """
    time_limit = deadline.bounded(time_limit)
    if problem.proof is None:
        return solver.solve(problem, time_limit=time_limit, seed=seed)
    sure, spent = True, 0.0
    for _ in range(ROUNDS):
        left = deadline.bounded(time_limit) - int(spent * _MILLISECOND)
        if left <= 0:
            break
        # A solver that improves its answer uses all the time it gets; some is left to mend it.
        outcome = solver.solve(problem, time_limit=max(left // 2, 1), seed=seed)
        spent += outcome.wall_ms
        outcome = replace(outcome, wall_ms=spent)
        if outcome.hosts is None:
            if outcome.verdict is Verdict.INFEASIBLE and not sure:
                break
            return outcome
        assigned = problem.proof.assign(problem.role_of, problem.moving, outcome.hosts)
        if not assigned.conflicts:
            # A cut that was not proved may have kept the best answer out.
            return outcome if sure else replace(outcome, bound=min(outcome.bound, 0))
        learned = [lesson(problem, problem.proof, outcome.hosts, one) for one in assigned.conflicts]
        sure = sure and all(one.sure for one in learned)
        new = dict.fromkeys(cut for one in learned for cut in one.cuts)
        problem = replace(problem, cuts=(*problem.cuts, *new))
    return Outcome(Verdict.UNKNOWN, "devices", wall_ms=spent)
