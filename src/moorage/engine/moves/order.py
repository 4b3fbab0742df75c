"""The order of moves whose targets are known.

A move into a host that has room for everything that is still to come there is made at once: that
never prevents another one. Among the others the search chooses, at random from the second attempt
on. Where none can be made, as when two units are to change places, one goes to a temporary host.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline
from moorage.engine.moves.state import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.engine.moves.problem import MoveProblem

    Ints: TypeAlias = NDArray[np.int64]

_ATTEMPTS: Final = 24
"""Orders that are tried where one ends without a further move or needs a temporary host."""
_MOST_TRIED: Final = 1_000
"""Moves of all these orders together, beside the first."""
_UNITS_TRIED: Final = 50
"""Units for which a temporary host is sought at a time."""
_FEW: Final = 12
"""Moves up to which a temporary host is used that makes no other move possible at once."""
_HOSTS_TRIED: Final = 40
"""Temporary hosts that are tried for one unit."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Moves in order, and the units that did not get to their targets."""

    moves: tuple[tuple[int, int, int], ...]
    """(unit, source, target) of each."""
    blocked: tuple[int, ...]
    cost: int


def ordered(problem: MoveProblem, targets: Mapping[int, int], *, seed: int) -> Ordered:
    """The best order that was found; `targets` is unit -> host row, in order of preference."""
    dice = random.Random(seed)  # noqa: S311 - a search, no secret
    least = sum(int(problem.cost[unit]) for unit in targets)
    best: Ordered | None = None
    for attempt in range(_ATTEMPTS):
        units = list(targets)
        if attempt:
            dice.shuffle(units)
        found = _Attempt(problem, targets, units, careful=attempt > 0).run()
        if best is None or (len(found.blocked), found.cost) < (len(best.blocked), best.cost):
            best = found
        if not best.blocked and best.cost == least:
            break
        if (attempt + 1) * len(targets) > _MOST_TRIED or deadline.passed():
            break
    assert best is not None
    return best


class _Attempt:
    """One order, made move by move; `careful`: moves that rules judge are chosen, too."""

    def __init__(
        self,
        problem: MoveProblem,
        targets: Mapping[int, int],
        units: Sequence[int],
        *,
        careful: bool,
    ) -> None:
        self.problem = problem
        self.careful = careful
        self.state = State(problem)
        self.rank = {unit: number for number, unit in enumerate(units)}
        self.todo = {unit: targets[unit] for unit in units}
        self.moves: list[tuple[int, int, int]] = []
        self.to_come: Ints = np.zeros_like(problem.free)
        """[H, K] what the moves that are left bring."""
        for unit, host in self.todo.items():
            self.to_come[host] += problem.amounts[unit]
        self.detours: dict[int, int] = {}
        """Unit -> temporary hosts it was on."""
        self.waiting: dict[tuple[str, int], set[int]] = {}
        """("host", row) or ("rule", number) -> units whose move waits for a change there."""
        self.contested: dict[int, None] = {}
        """Units that can move now, into hosts without room for all that is to come."""

    def run(self) -> Ordered:
        """Make moves until none is left or none can be made."""
        queue = list(self.todo)
        while self.todo:
            self._settle(queue)
            if not self.todo or deadline.passed():
                break
            chosen = self._choose()
            if chosen is None:
                chosen = self._detour()
            if chosen is None:
                break
            queue = self._make(*chosen)
        cost = sum(int(self.problem.cost[unit]) for unit, _, _ in self.moves)
        return Ordered(tuple(self.moves), tuple(self.todo), cost)

    def _settle(self, queue: list[int]) -> None:
        """Make the moves that never prevent others, and what they make possible."""
        queue.reverse()
        while queue:
            unit = queue.pop()
            if unit not in self.todo or not self._possible(unit):
                continue
            if self._harmless(unit):
                queue.extend(reversed(self._make(unit, self.todo[unit])))
            else:
                self.contested[unit] = None

    def _possible(self, unit: int) -> bool:
        """Whether the unit can go to its target now; else it waits for what may change that."""
        target = self.todo[unit]
        if self.state.hosts[unit] == target:
            return True
        if not self.state.has_room(unit, target):
            self.waiting.setdefault(("host", target), set()).add(unit)
            return False
        if not self.state.holds_meanwhile(unit, target):
            for number in self.problem.rules_of[unit]:
                self.waiting.setdefault(("rule", number), set()).add(unit)
            return False
        return True

    def _harmless(self, unit: int) -> bool:
        problem = self.problem
        if self.careful and (
            problem.fits is not None
            or any(problem.meanwhile[number] is not None for number in problem.rules_of[unit])
        ):
            return False
        target = self.todo[unit]
        wanted = self.to_come[target]
        return bool(((self.state.room[target] >= wanted) | (wanted == 0)).all())

    def _make(self, unit: int, host: int) -> list[int]:
        """Move the unit; returns the units of which something may have changed."""
        source = self.state.hosts[unit]
        if host == self.todo.get(unit):
            del self.todo[unit]
            self.contested.pop(unit, None)
            self.to_come[host] -= self.problem.amounts[unit]
        if source == host:
            return []
        self.state.move(unit, host)
        self.moves.append((unit, source, host))
        woken = self.waiting.pop(("host", source), set())
        for number in self.problem.rules_of[unit]:
            woken |= self.waiting.pop(("rule", number), set())
        woken.discard(unit)
        return sorted((one for one in woken if one in self.todo), key=self.rank.__getitem__)

    def _choose(self) -> tuple[int, int] | None:
        """A contested move that is possible: first one for whose departure others wait."""
        wanted = {key[1] for key in self.waiting if key[0] == "host"}
        for unit in sorted(
            self.contested,
            key=lambda one: (self.state.hosts[one] not in wanted, self.rank[one]),
        ):
            if self._possible(unit):
                return unit, self.todo[unit]
            del self.contested[unit]
        return None

    def _detour(self) -> tuple[int, int] | None:
        """A unit and a temporary host that make another move possible; else one of any use."""
        wanted = set(self.todo.values())
        second: tuple[int, int] | None = None
        units = heapq.nsmallest(
            _UNITS_TRIED,
            (unit for unit in self.todo if self.detours.get(unit, 0) < 2),  # noqa: PLR2004 - to a temporary host, and from there to another
            key=lambda unit: (
                self.state.hosts[unit] not in wanted,
                self.problem.cost[unit],
                self.rank[unit],
            ),
        )
        for unit in units:
            if deadline.passed():
                break
            for host in self._temporary(unit):
                if self._unblocks(unit, host):
                    self.detours[unit] = self.detours.get(unit, 0) + 1
                    return unit, host
                if len(self.todo) <= _FEW:
                    second = second or (unit, host)
        if second is not None:
            self.detours[second[0]] = self.detours.get(second[0], 0) + 1
        return second

    def _temporary(self, unit: int) -> Iterable[int]:
        """Hosts on which the unit can wait: first those with the most room beside what comes."""
        rows = self.state.enterable(unit)
        amounts = self.problem.amounts[unit]
        used = amounts > 0
        left = self.state.room[rows] - self.to_come[rows] - amounts
        slack = left[:, used].min(axis=1) if used.any() else np.zeros(len(rows), dtype=np.int64)
        rows = rows[np.argsort(-slack, kind="stable")][:_HOSTS_TRIED]
        return [
            host
            for host in self.state.fitting(unit, rows)
            if self.state.holds_meanwhile(unit, host)
        ]

    def _unblocks(self, unit: int, host: int) -> bool:
        """Whether another unit could go to its target if this one went to that host."""
        mark = self.state.mark()
        source = self.state.move(unit, host)
        others = self.waiting.get(("host", source), set())
        for number in self.problem.rules_of[unit]:
            others = others | self.waiting.get(("rule", number), set())
        found = any(
            self.state.has_room(one, self.todo[one])
            and self.state.holds_meanwhile(one, self.todo[one])
            for one in sorted(others)
            if one != unit and one in self.todo
        )
        self.state.undo(mark)
        return found
