"""Why a unit has no move or no place in what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.engine.moves.place_search import Placing
from moorage.engine.moves.problem import Stuck, StuckCode
from moorage.engine.moves.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator


class Reasons:
    """Reasons of units, as all units stand in one state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.problem = state.problem
        self.placing = Placing(state)
        self.alone = Placing(State(self.problem))
        """The same as it was at the start."""

    def of(self, unit: int, *, placed: bool) -> Stuck:
        """Why the unit stays where it is, although it has a target; or why it has none."""
        problem = self.problem
        if problem.start[unit] >= 0 and not problem.movable[unit]:
            return Stuck(unit, StuckCode.PINNED)
        if placed:
            broken = self._broken(unit)
            return Stuck(unit, StuckCode.POLICY if broken else StuckCode.NO_ORDER, broken)
        excluding = self._excluding(unit)
        if excluding:
            return Stuck(unit, StuckCode.POLICY, excluding)
        if next(self.alone.choices(unit), None) is not None:
            return Stuck(unit, StuckCode.UNDECIDED)
        return Stuck(unit, StuckCode.NO_ROOM)

    def _broken(self, unit: int) -> tuple[str, ...]:
        """Names of the unit's rules that are violated beyond their limits."""
        rules = self.problem.rules_of[unit]
        return tuple(self.problem.rules[one].name for one in rules if self.state.excess(one))

    def _excluding(self, unit: int) -> tuple[str, ...]:
        """Names of the rules that exclude each host with room: those of all hosts, or else any."""
        every = list(self._violated(unit)) if self.problem.rules_of[unit] else []
        if not every or not all(every):
            return ()
        common = set.intersection(*every)
        return tuple(sorted(common or set.union(*every)))

    def _violated(self, unit: int) -> Iterator[set[str]]:
        rules = self.problem.rules_of[unit]
        for choice in self.placing.choices(unit):
            amounts = self.state.amounts_at(unit, choice.host, rules)
            yield {
                self.problem.rules[one].name
                for one, amount in zip(rules, amounts, strict=True)
                if amount > self.problem.rules[one].limit
            }
