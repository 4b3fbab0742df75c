"""Where all units are to stand at the end, at the least cost that is found.

Units on hosts to be left and newcomers are placed one by one; broken rules are mended by single
moves; then the search takes some units away and places them anew, as long as that pays.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.engine.moves.chains import Chains
from moorage.engine.moves.place_search import Placing
from moorage.engine.moves.repair import mend, movers
from moorage.engine.moves.state import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.engine.moves.problem import MoveProblem

_DEPTH: Final = 2
"""Units that may have to make room for each other in a row, beside the first."""
ROUNDS: Final = 400
"""Times that some units are placed anew, at most."""
_IDLE: Final = 120
"""Rounds without any gain after which the search ends."""
_MOST_RETRIED: Final = 8
"""Units without a place that are tried in one round."""
_MOST_FAILED: Final = 16
"""Kinds of units for which no room was made, after which it is tried for no other."""
_MOST_UNPLACED: Final = 50
"""Units without a place up to which rounds are worth their time."""
_MOST_ANEW: Final = 5
"""Units that are taken away in one round."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Where units stand at the end."""

    hosts: Mapping[int, int]
    """Unit -> host row, without those that have no place."""
    unplaced: tuple[int, ...] = ()
    excess: int = 0
    """By how much rules are violated beyond their limits."""
    cost: int = 0
    """Of one move for each unit that stands elsewhere."""

    @property
    def complete(self) -> bool:
        """Whether every unit has a place, and every rule holds."""
        return not self.unplaced and self.excess == 0


def find_ends(
    problem: MoveProblem, *, bound: int, seed: int, tight: bool = False, rounds: int = ROUNDS
) -> Ends:
    """The best end that was found; `bound`: no end costs less."""
    return _EndSearch(problem, seed, tight=tight).run(bound, rounds)


class _EndSearch:
    def __init__(self, problem: MoveProblem, seed: int, *, tight: bool) -> None:
        self.problem = problem
        self.dice = random.Random(seed)  # noqa: S311 - a search, no secret
        self.state = State(problem)
        self.placing = Placing(self.state, tight=tight)
        self.chains = Chains(self.placing, self.dice)
        self.unplaced: list[int] = []
        self.broken: dict[int, int] = {}
        """Rule -> by how much it is violated beyond its limit, if it is."""
        self.failed: set[tuple[int, ...]] = set()
        """Mask, amounts and rules of units for which no room was made as all stand now."""
        self.moved: set[int] = set()
        """Units that stand elsewhere than at the start, or came."""

    def run(self, bound: int, rounds: int) -> Ends:
        """See `find_ends`."""
        problem, state = self.problem, self.state
        away = [unit for unit in problem.leaving if problem.movable[unit]]
        for unit in away:
            state.remove(unit)
        self.unplaced = self._place([*away, *problem.newcomers])
        self._count(range(len(problem.rules)))
        for number in sorted(self.broken):
            mend(self.placing, number)
        self._count(range(len(problem.rules)))
        self._note(range(len(problem.start)))
        self._improve(bound, rounds)
        return Ends(
            dict(state.hosts), tuple(self.unplaced), sum(self.broken.values()), self._cost()
        )

    def _place(self, units: Iterable[int]) -> list[int]:
        """Place units, and make room for those for which there is none; returns the others."""
        unplaced = self.placing.place_all(units)
        return [unit for unit in self.placing.hardest_first(unplaced) if not self._make_room(unit)]

    def _make_room(self, unit: int) -> bool:
        """Place a unit for which others leave; not if that failed for its like just now."""
        problem = self.problem
        kind = (
            int(problem.mask_of[unit]),
            *problem.amounts[unit].tolist(),
            *problem.rules_of[unit],
        )
        if kind in self.failed or len(self.failed) >= _MOST_FAILED:
            return False
        if self.chains.place(unit, _DEPTH):
            self.failed.clear()
            return True
        self.failed.add(kind)
        return False

    def _count(self, rules: Iterable[int]) -> None:
        for number in rules:
            excess = self.state.excess(number)
            if excess:
                self.broken[number] = excess
            else:
                self.broken.pop(number, None)

    def _note(self, units: Iterable[int]) -> None:
        for unit in units:
            if unit in self.state.hosts and self.state.at[unit] != self.problem.start[unit]:
                self.moved.add(unit)
            else:
                self.moved.discard(unit)

    def _cost(self) -> int:
        return sum(
            int(self.problem.cost[unit]) for unit in self.moved if self.problem.start[unit] >= 0
        )

    def _score(self) -> tuple[int, int, int]:
        return len(self.unplaced), sum(self.broken.values()), self._cost()

    def _improve(self, bound: int, rounds: int) -> None:
        """Place some units anew, as long as that pays."""
        idle = 0
        score = self._score()
        if len(self.unplaced) > _MOST_UNPLACED:
            return
        for _ in range(rounds):
            if score <= (0, 0, bound) or idle >= _IDLE or deadline.passed():
                return
            mark = self.state.mark()
            before = (list(self.unplaced), dict(self.broken))
            self._place_anew(self._some())
            changed = self.state.changed(mark)
            self._count({one for unit in changed for one in self.problem.rules_of[unit]})
            self._note(changed)
            found = self._score()
            idle = 0 if found < score else idle + 1
            if found <= score:
                score = found
                continue
            self.state.undo(mark)
            self.unplaced, self.broken = before
            self._note(changed)

    def _some(self) -> list[int]:
        """Units to place anew: of a broken rule, or some that were moved and their neighbours."""
        count = self.dice.randint(1, _MOST_ANEW)
        found: set[int] = set()
        if self.broken and (not self.unplaced or self.dice.random() < 0.5):  # noqa: PLR2004 - evenly
            number = self.dice.choice(sorted(self.broken))
            pool = movers(self.placing, number)
            found.update(self.dice.sample(pool, min(count, len(pool))))
        moved = sorted(self.moved)
        if moved and (not found or self.dice.random() < 0.3):  # noqa: PLR2004 - at times
            found.update(self.dice.sample(moved, min(count, len(moved))))
        if self.unplaced:
            found.update(self._neighbours(self.dice.choice(self.unplaced), count))
        return sorted(found)

    def _neighbours(self, unit: int, count: int) -> list[int]:
        """Movable units on one of the hosts that the unit may enter."""
        rows = self.problem.entries[self.problem.mask_of[unit]].nonzero()[0]
        if len(rows) == 0:
            return []
        there = self.state.there.get(int(self.dice.choice(rows)), set())
        pool = [one for one in sorted(there) if self.chains.mobile[one]]
        return self.dice.sample(pool, min(count, len(pool)))

    def _place_anew(self, units: Iterable[int]) -> None:
        state = self.state
        anew = list(units)
        left = {state.remove(unit) for unit in anew}
        near = {
            other
            for unit in anew
            for number in self.problem.rules_of[unit]
            for other in self.problem.rules[number].units
        }
        self._return(
            [
                unit
                for unit in sorted(self.moved.intersection(state.hosts))
                if unit in near or self.problem.start[unit] in left
            ]
        )
        tried = self.dice.sample(self.unplaced, min(_MOST_RETRIED, len(self.unplaced)))
        waiting = [*anew, *tried]
        if self.dice.random() < 0.5:  # noqa: PLR2004 - evenly
            waiting = self.placing.hardest_first(waiting)
        else:
            self.dice.shuffle(waiting)
        self.placing.tight = self.dice.random() < 0.7  # noqa: PLR2004 - mostly
        self.unplaced = sorted(set(self.unplaced).difference(tried))
        self.failed.clear()
        for unit in waiting:
            best = self.placing.best(unit)
            # Room is made where that is better for its rules, too.
            if best is None or best.excess > 0:
                mark = state.mark()
                if self._make_room(unit):
                    if best is None or state.excess_at(unit, state.hosts[unit]) < best.excess:
                        continue
                    state.undo(mark)
            if best is None:
                self.unplaced.append(unit)
            else:
                state.put(unit, best.host)
                self.failed.clear()

    def _return(self, units: list[int]) -> None:
        """Let these stand where they stood at the start, where that is possible now."""
        state = self.state
        self.dice.shuffle(units)
        for unit in units:
            if self.problem.start[unit] < 0:
                continue
            host = state.hosts[unit]
            now = state.excess_at(unit, host)
            mark = state.mark()
            state.remove(unit)
            start = int(self.problem.start[unit])
            if state.may_stay(unit) and state.excess_at(unit, start) <= now:
                state.put(unit, start)
            else:
                state.undo(mark)
