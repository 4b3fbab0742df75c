"""Mends rules that are violated beyond their limits, by moves of single units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain import deadline

if TYPE_CHECKING:
    from moorage.engine.moves.place_search import Choice, Placing

_LIKELY: Final = 8
"""Units of which the best move is taken, if any of them has one."""
_MOVED: Final = 0.1
"""Cost of another place for a unit that has moved already."""


def mend(placing: Placing, number: int) -> bool:
    """Move units of a rule while each move lowers the excess; whether the rule is mended."""
    state = placing.state
    while state.excess(number) > 0:
        if deadline.passed():
            return False
        found = _best(placing, number)
        if found is None:
            return False
        unit, choice = found
        state.remove(unit)
        state.put(unit, choice.host)
    return True


def movers(placing: Placing, number: int) -> list[int]:
    """The units of a rule that can be elsewhere.

    Units of equal size on one host are not equal to rules, which know them by their names.
    """
    problem, state = placing.problem, placing.state
    return [
        unit
        for unit in problem.rules[number].units
        if unit in state.hosts and (problem.movable[unit] or problem.start[unit] < 0)
    ]


def _best(placing: Placing, number: int) -> tuple[int, Choice] | None:
    """The move that lowers the excess most for its cost; None: there is none that lowers it.

    Units without which the rule is violated least are tried first, and a move that lowers the
    excess as if the unit was not there is taken at once.
    """
    units = movers(placing, number)
    promise = {unit: _promise(placing, unit) for unit in units}
    units.sort(key=lambda unit: -promise[unit] / _cost(placing, unit))
    best: tuple[int, Choice] | None = None
    most = 0.0
    for tried, unit in enumerate(units):
        cost = _cost(placing, unit)
        if best is not None and (tried >= _LIKELY or max(promise[unit], 1) / cost <= most):
            break
        gain, choice = _gain(placing, unit, max(promise[unit], 1))
        if choice is not None and gain / cost > most:
            best, most = (unit, choice), gain / cost
    return best


def _cost(placing: Placing, unit: int) -> float:
    """What it costs to have the unit elsewhere: next to nothing if it has moved already."""
    state, problem = placing.state, placing.problem
    return float(problem.cost[unit]) if state.hosts[unit] == problem.start[unit] else _MOVED


def _promise(placing: Placing, unit: int) -> int:
    """By how much the excess of the unit's rules is lower without it."""
    state = placing.state
    rules = placing.problem.rules_of[unit]
    now = sum(map(state.excess, rules))
    host = state.hosts.pop(unit)
    without = sum(map(state.excess, rules))
    state.hosts[unit] = host
    return now - without


def _gain(placing: Placing, unit: int, enough: int) -> tuple[int, Choice | None]:
    """The most by which a move of the unit lowers the excess, or so much, and where to."""
    state = placing.state
    now = state.excess_at(unit, state.hosts[unit])
    mark = state.mark()
    state.remove(unit)
    best: Choice | None = None
    most = 0
    for choice in placing.choices(unit):
        if now - choice.excess > most:
            best, most = choice, now - choice.excess
        if most >= enough:
            break
    state.undo(mark)
    return most, best
