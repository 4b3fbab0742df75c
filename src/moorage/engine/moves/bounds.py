"""What is proved without a search: the least cost of any plan, and that there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.engine.moves.problem import Stuck, StuckCode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.moves.problem import MoveProblem

    Ints: TypeAlias = NDArray[np.int64]


def lower_bound(problem: MoveProblem) -> int:
    """No plan costs less: every unit on a host to be left moves, and a broken rule needs a move."""
    leaving = set(problem.leaving)
    found = sum(int(problem.cost[unit]) for unit in leaving)
    if problem.newcomers:
        return found  # they may mend rules
    broken = 0
    for rule, now in zip(problem.rules, problem.amounts_now, strict=True):
        if now > rule.limit and not leaving.intersection(rule.units):
            costs = [int(problem.cost[unit]) for unit in rule.units if problem.movable[unit]]
            broken = max(broken, min(costs, default=0))
    return found + broken


def impossible(problem: MoveProblem) -> tuple[Stuck, ...]:
    """Units for which it is proved that no plan moves or places them; none: nothing is proved."""
    found = [Stuck(unit, StuckCode.PINNED) for unit in problem.leaving if not problem.movable[unit]]
    most = most_room(problem)
    for unit in (*problem.leaving, *problem.newcomers):
        amounts = problem.amounts[unit]
        open_ = problem.entries[problem.mask_of[unit]]
        if not (open_ & ((most >= amounts) | (amounts == 0)).all(axis=1)).any():
            found.append(Stuck(unit, StuckCode.NO_ROOM))
    for rule, now in zip(problem.rules, problem.amounts_now, strict=True):
        free = [one for one in rule.units if problem.movable[one] or problem.start[one] < 0]
        if now > rule.limit and not free:
            found += [Stuck(unit, StuckCode.POLICY, (rule.name,)) for unit in rule.units]
    return tuple(found)


def most_room(problem: MoveProblem) -> Ints:
    """[H, K] room of each host if all units that can move were elsewhere."""
    found = problem.free.astype(np.int64, copy=True)
    movers = np.flatnonzero(problem.movable & (problem.start >= 0))
    np.add.at(found, problem.start[movers], problem.amounts[movers])
    return found
