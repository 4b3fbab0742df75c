"""Finds ordered moves: targets, their order, and an exact search where a problem is small."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.engine.moves import exhaustive
from moorage.engine.moves.bounds import impossible, lower_bound
from moorage.engine.moves.order import ordered
from moorage.engine.moves.problem import MovePlan, NoPlan, Stuck, StuckCode
from moorage.engine.moves.reasons import reason
from moorage.engine.moves.state import State
from moorage.engine.moves.targets import Placing
from moorage.engine.moves.waits import with_waits

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.engine.moves.problem import MoveProblem

    Rows: TypeAlias = NDArray[np.int32]


def plan_moves(problem: MoveProblem, *, seed: int = 0) -> MovePlan | NoPlan:
    """The cheapest plan that was found until the deadline; or why there is none."""
    proof = impossible(problem)
    if proof:
        return NoPlan(proved=True, stuck=proof, partial=_part(problem, _find(problem)[0], seed))
    bound = lower_bound(problem)
    ends, unplaced = _find(problem)
    found = None if unplaced else _whole(problem, ends, seed, bound)
    if (found is None or not found.optimal) and exhaustive.is_small(problem):
        exact = exhaustive.search(problem, at_most=None if found is None else found.cost)
        bound = max(bound, exact.bound)
        if exact.moves is not None:
            return _plan(problem, exact.moves, dict(exact.newcomers), bound)
        if found is not None:
            return MovePlan(found.steps, found.hosts, found.cost, min(bound, found.cost))
        if exact.complete:
            return _no_plan(problem, ends, unplaced, seed, proved=True)
    if found is not None:
        return found
    return _no_plan(problem, ends, unplaced, seed, proved=False)


def order_moves(
    problem: MoveProblem, targets: Sequence[int] | Rows, *, seed: int = 0
) -> MovePlan | NoPlan:
    """An order of the moves to known targets: [U] the host row of each unit at the end."""
    ends = {unit: int(host) for unit, host in enumerate(targets) if host >= 0}
    wrong = _misplaced(problem, ends)
    if wrong:
        return NoPlan(proved=True, stuck=wrong)
    found = _whole(problem, ends, seed, _direct(problem, ends))
    if found is not None:
        return found
    return _no_plan(problem, ends, (), seed, proved=False)


def _find(problem: MoveProblem) -> tuple[dict[int, int], tuple[int, ...]]:
    """Unit -> host row at the end, and the units without a place."""
    state = State(problem)
    away = [unit for unit in problem.leaving if problem.movable[unit]]
    for unit in away:
        state.remove(unit)
    placing = Placing(state)
    placing.place_all([*away, *problem.newcomers])
    return state.hosts, tuple(placing.unplaced)


def _moves_to(problem: MoveProblem, ends: Mapping[int, int]) -> dict[int, int]:
    """The units that move, and their targets."""
    return {unit: host for unit, host in ends.items() if problem.start[unit] not in {host, -1}}


def _direct(problem: MoveProblem, ends: Mapping[int, int]) -> int:
    return sum(int(problem.cost[unit]) for unit in _moves_to(problem, ends))


def _whole(problem: MoveProblem, ends: Mapping[int, int], seed: int, bound: int) -> MovePlan | None:
    """The plan that attains this end; None: rules exclude it, or there is no order."""
    for rule in problem.rules:
        if rule.amount(ends) > rule.limit:
            return None
    order = ordered(problem, _moves_to(problem, ends), seed=seed)
    if order.blocked:
        return None
    return _plan(problem, order.moves, {one: ends[one] for one in problem.newcomers}, bound)


def _plan(
    problem: MoveProblem,
    moves: Sequence[tuple[int, int, int]],
    newcomers: Mapping[int, int],
    bound: int,
) -> MovePlan:
    hosts = problem.start.astype(np.int32, copy=True)
    for unit, _, target in moves:
        hosts[unit] = target
    for unit, host in newcomers.items():
        hosts[unit] = host
    cost = sum(int(problem.cost[unit]) for unit, _, _ in moves)
    return MovePlan(with_waits(problem, moves), hosts, cost, min(bound, cost))


def _no_plan(
    problem: MoveProblem,
    ends: Mapping[int, int],
    unplaced: Collection[int],
    seed: int,
    *,
    proved: bool,
) -> NoPlan:
    """Why there is no plan, and what can be attained."""
    partial = _part(problem, ends, seed)
    moved = {step.unit for step in partial.steps} if partial is not None else set()
    state = State(problem)
    for unit in (*problem.leaving, *problem.newcomers):
        if unit in state.hosts and unit in ends and state.hosts[unit] != ends[unit]:
            state.move(unit, ends[unit])
        elif unit not in state.hosts and unit in ends:
            state.put(unit, ends[unit])
    stuck = [
        reason(state, unit, placed=unit not in unplaced)
        for unit in (*problem.leaving, *problem.newcomers)
        if unit not in moved and (unit in unplaced or problem.start[unit] >= 0)
    ]
    if not stuck:
        stuck = _rule_units(problem, ends)
    return NoPlan(proved=proved, stuck=tuple(stuck), partial=partial)


def _rule_units(problem: MoveProblem, ends: Mapping[int, int]) -> list[Stuck]:
    """The units of the rules that the end violates; of all that are broken now, if it does not."""
    broken = [rule for rule in problem.rules if rule.amount(ends) > rule.limit]
    names: dict[int, list[str]] = {}
    for rule in broken:
        for unit in rule.units:
            names.setdefault(unit, []).append(rule.name)
    found = [Stuck(unit, StuckCode.POLICY, tuple(some)) for unit, some in sorted(names.items())]
    return found or [
        Stuck(unit, StuckCode.NO_ORDER)
        for unit in sorted({*_moves_to(problem, ends), *problem.newcomers})
    ]


def _part(problem: MoveProblem, ends: Mapping[int, int], seed: int) -> MovePlan | None:
    """As many moves as can be made, without those that would break a rule at the end."""
    moves = _moves_to(problem, ends)
    while moves:
        order = ordered(problem, moves, seed=seed)
        made = {unit: host for unit, host in moves.items() if unit not in order.blocked}
        hosts = {**problem.placed, **made}
        broken = {
            unit
            for rule, now in zip(problem.rules, problem.amounts_now, strict=True)
            if rule.amount(hosts) > max(rule.limit, now)
            for unit in rule.units
        }
        if not broken & made.keys() and not order.blocked:
            return _plan(problem, order.moves, {}, 0)
        moves = {unit: host for unit, host in made.items() if unit not in broken}
    return None


def _misplaced(problem: MoveProblem, ends: Mapping[int, int]) -> tuple[Stuck, ...]:
    """The units whose target is none: by masks, room or rules."""
    found = []
    room = problem.free.astype(np.int64, copy=True)
    entered: dict[int, list[int]] = {}
    for unit in range(len(problem.start)):
        start, end = int(problem.start[unit]), ends.get(unit, -1)
        if end == start:
            if start < 0 or problem.leave[start]:
                found.append(Stuck(unit, StuckCode.UNDECIDED))
            continue
        if start >= 0 and not problem.movable[unit]:
            found.append(Stuck(unit, StuckCode.PINNED))
            continue
        if end < 0 or not problem.entries[problem.mask_of[unit], end]:
            found.append(Stuck(unit, StuckCode.NO_ROOM))
            continue
        room[end] -= problem.amounts[unit]
        if start >= 0:
            room[start] += problem.amounts[unit]
        entered.setdefault(end, []).append(unit)
    for host, units in entered.items():
        lacking = room[host] < 0
        found += [
            Stuck(unit, StuckCode.NO_ROOM)
            for unit in units
            if (lacking & (problem.amounts[unit] > 0)).any()
        ]
    for rule in problem.rules:
        if rule.amount(ends) > rule.limit:
            found += [Stuck(unit, StuckCode.POLICY, (rule.name,)) for unit in rule.units]
    return tuple(found)
