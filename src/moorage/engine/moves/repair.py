"""Mends rules that are violated beyond their limits, by moves of single units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain import deadline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.engine.moves.place_search import Choice, Placing

_LIKELY: Final = 8
"""Units that are tried before all others: those without which the rule is violated least."""


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
    """The move that lowers the excess most for its cost; None: there is none that lowers it."""
    units = movers(placing, number)
    likely = _likely(placing, number, units)
    found = _least(placing, likely)
    if found is None and len(units) > len(likely):
        found = _least(placing, [unit for unit in units if unit not in likely])
    return found


def _likely(placing: Placing, number: int, units: Sequence[int]) -> list[int]:
    state = placing.state
    without: dict[int, int] = {}
    for unit in units:
        host = state.hosts.pop(unit)
        without[unit] = state.problem.rules[number].amount(state.hosts)
        state.hosts[unit] = host
    return sorted(units, key=without.__getitem__)[:_LIKELY]


def _least(placing: Placing, units: Iterable[int]) -> tuple[int, Choice] | None:
    best: tuple[int, Choice] | None = None
    most = 0.0
    for unit, choice, gain in _gains(placing, units):
        if gain > most:
            best, most = (unit, choice), gain
    return best


def _gains(placing: Placing, units: Iterable[int]) -> Iterator[tuple[int, Choice, float]]:
    """Each unit, a host for it, and by how much that lowers the excess for one unit of cost."""
    state, problem = placing.state, placing.problem
    for unit in units:
        host = state.hosts[unit]
        now = state.excess_at(unit, host)
        mark = state.mark()
        state.remove(unit)
        moved = host != problem.start[unit]
        for choice in placing.choices(unit):
            cost = 0.1 if moved or choice.host == problem.start[unit] else problem.cost[unit]
            yield unit, choice, (now - choice.excess) / float(cost)
            if choice.excess == 0:
                break
        state.undo(mark)
