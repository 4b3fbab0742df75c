"""Why a unit has no move or no place in what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.engine.moves.place_search import Placing
from moorage.engine.moves.problem import Stuck, StuckCode
from moorage.engine.moves.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator


def reason(state: State, unit: int, *, placed: bool) -> Stuck:
    """Why the unit stays where it is, or has no place, as all units stand in this state."""
    problem = state.problem
    if problem.start[unit] >= 0 and not problem.movable[unit]:
        return Stuck(unit, StuckCode.PINNED)
    if placed:
        broken = _broken(state, unit)
        return Stuck(unit, StuckCode.POLICY if broken else StuckCode.NO_ORDER, broken)
    excluding = _excluding(state, unit)
    if excluding:
        return Stuck(unit, StuckCode.POLICY, excluding)
    alone = State(problem)
    if any(True for _ in Placing(alone).choices(unit)):
        return Stuck(unit, StuckCode.UNDECIDED)
    return Stuck(unit, StuckCode.NO_ROOM)


def _broken(state: State, unit: int) -> tuple[str, ...]:
    """Names of the unit's rules that are violated beyond their limits."""
    return tuple(
        rule.name
        for rule in (state.problem.rules[one] for one in state.problem.rules_of[unit])
        if rule.amount(state.hosts) > rule.limit
    )


def _excluding(state: State, unit: int) -> tuple[str, ...]:
    """Names of the rules that exclude each host with room: those of all hosts, or else any."""
    every: list[set[str]] = list(_violated(state, unit))
    if not every or not all(every):
        return ()
    common = set.intersection(*every)
    return tuple(sorted(common or set.union(*every)))


def _violated(state: State, unit: int) -> Iterator[set[str]]:
    rules = state.problem.rules_of[unit]
    for choice in Placing(state).choices(unit):
        amounts = state.amounts_at(unit, choice.host, rules)
        yield {
            state.problem.rules[one].name
            for one, amount in zip(rules, amounts, strict=True)
            if amount > state.problem.rules[one].limit
        }
