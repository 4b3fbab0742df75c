"""Solves a problem with devices: each answer is proved, or excluded by cuts and solved again.

This is cut generation: the solver sees a relaxation without devices, and the proof of devices adds
cuts. A problem without devices is solved once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.period import SECOND
from moorage.engine.joint.device_cuts import learn_cuts
from moorage.engine.joint.problem import Outcome, Verdict

if TYPE_CHECKING:
    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Problem, SupportsSolve

ROUNDS: Final = 100
"""Solves of one problem at most."""
_MILLISECOND: Final = SECOND // 1000


def solve(solver: SupportsSolve, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
    """The best placement that devices can serve, or the verdict that there is none.

    The verdict is `unknown` also if a search over devices used up its budget and nothing else was
    found. No solve runs past the deadline of the current work.

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
        # A solver may use all its time to improve its answer; half is kept for further rounds.
        outcome = solver.solve(problem, time_limit=max(left // 2, 1), seed=seed)
        spent += outcome.wall_ms
        outcome = replace(outcome, wall_ms=spent)
        if outcome.hosts is None:
            if outcome.verdict is Verdict.INFEASIBLE and not sure:
                break
            return outcome
        placed = problem.to_place[outcome.hosts[problem.to_place] < problem.host_count]
        assigned = problem.proof.assign(problem.role_of, placed, outcome.hosts)
        if not assigned.conflicts:
            # A cut that was not proved may have excluded the best answer.
            return outcome if sure else replace(outcome, bound=min(outcome.bound, 0))
        learned = [
            learn_cuts(problem, problem.proof, outcome.hosts, one) for one in assigned.conflicts
        ]
        sure = sure and all(one.proved for one in learned)
        new = dict.fromkeys(cut for one in learned for cut in one.cuts)
        problem = replace(problem, cuts=(*problem.cuts, *new))
    return Outcome(Verdict.UNKNOWN, "devices", wall_ms=spent)
