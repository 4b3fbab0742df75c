"""Finds ordered moves: targets, their order, and an exact search where a problem is small."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline
from moorage.engine.moves import exhaustive
from moorage.engine.moves.bounds import impossible, lower_bound, overfull
from moorage.engine.moves.end_search import Ends, find_ends
from moorage.engine.moves.order import ordered
from moorage.engine.moves.problem import MovePlan, NoPlan, Stuck, StuckCode
from moorage.engine.moves.reasons import Reasons
from moorage.engine.moves.state import State
from moorage.engine.moves.waits import with_waits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.engine.moves.problem import MoveProblem

    Rows: TypeAlias = NDArray[np.int32]


_ATTEMPTS: Final = 4
"""Ends that are searched where there is no order of moves to the one before."""
_FEW_STATES: Final = 3_000
"""States of a small problem that are searched before anything else."""
_PARTIAL_ROUNDS: Final = 20
"""Rounds of the search for a part, where it is proved that there is no whole."""


def plan_moves(problem: MoveProblem, *, seed: int = 0) -> MovePlan | NoPlan:
    """The cheapest plan that was found until the deadline; or why there is none."""
    proof = impossible(problem)
    none = bool(proof) or overfull(problem)
    small = not none and exhaustive.is_small(problem)
    exact = exhaustive.search(problem, most=_FEW_STATES) if small else exhaustive.UNDECIDED
    bound = max(lower_bound(problem), exact.bound)
    found: MovePlan | None = None
    ends: Ends | None = None
    if not none and not exact.complete:
        found, ends = _search(problem, bound, seed)
        if small and (found is None or not found.optimal):
            exact = exhaustive.search(problem, at_most=None if found is None else found.cost)
            bound = max(bound, exact.bound)
    if exact.moves is not None:
        return _plan(problem, exact.moves, dict(exact.newcomers), exact.bound)
    if found is not None:
        return replace(found, lower_bound=min(bound, found.cost))
    ends = ends or find_ends(problem, bound=bound, seed=seed, rounds=_PARTIAL_ROUNDS)
    found_none = _no_plan(problem, ends, seed, proved=none or exact.complete)
    if not proof:
        return found_none
    known = {stuck.unit for stuck in proof}
    others = [stuck for stuck in found_none.stuck if stuck.unit not in known]
    return replace(found_none, stuck=(*proof, *others))


def _search(problem: MoveProblem, bound: int, seed: int) -> tuple[MovePlan | None, Ends]:
    """A plan, if an end with an order of moves to it is found; and the last end."""
    ends = find_ends(problem, bound=bound, seed=seed)
    for attempt in range(1, _ATTEMPTS):
        if not ends.complete:
            break
        found = _whole(problem, ends.hosts, seed, bound)
        if found is not None or deadline.passed():
            return found, ends
        ends = find_ends(problem, bound=bound, seed=seed + attempt, tight=attempt % 2 == 1)
    return None, ends


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
    return _no_plan(problem, Ends(ends), seed, proved=False)


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


def _no_plan(problem: MoveProblem, ends: Ends, seed: int, *, proved: bool) -> NoPlan:
    """Why there is no plan, and what can be attained."""
    partial = _part(problem, ends.hosts, seed)
    moved = {step.unit for step in partial.steps} if partial is not None else set()
    state = State(problem)
    concerned = (*problem.leaving, *problem.newcomers)
    for unit in concerned:
        if unit in ends.hosts:
            if unit in state.hosts:
                state.remove(unit)
            state.put(unit, ends.hosts[unit])
    reasons = Reasons(state)
    unplaced = set(ends.unplaced)
    stuck = [
        reasons.of(unit, placed=unit not in unplaced)
        for unit in concerned
        if unit not in moved and (unit in unplaced or problem.start[unit] >= 0)
    ]
    return NoPlan(proved, tuple(stuck or _rule_units(problem, ends.hosts)), partial)


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
