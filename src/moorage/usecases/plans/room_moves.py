"""Finds moves after which the fleet has more room for what is usually requested.

Servers leave one host after another: each time those that gain most for each move. What moves gain
is the room that the source has more, less what the targets have less, weighed as decisions weigh
the room for others (see `engine.joint.room`): 1 is the room of an average host of the fleet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.engine.joint.room import Room
    from moorage.usecases.plans.move_problem import StatedMoves

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]

MOST_MOVES: Final = 50
"""Moves of one plan."""
LEAST_GAIN: Final = 0.05
"""What each move gains at least if nothing is requested."""
_TRIED: Final = 16
"""Targets of a server that are tried, those that lose least first."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Where servers go, and what that gains."""

    targets: Mapping[int, int]
    """Unit -> row of its host in the terrain."""
    total: float


def best_moves(stated: StatedMoves, room: Room, least: float) -> Gain:
    """Choose moves that gain at least `least` each, the best first; none if there are none.

    Where several servers leave a host together, it is what they gain on average.
    """
    search = _Search(stated, room)
    total = 0.0
    while len(search.targets) < MOST_MOVES:
        deadline.check()
        best = max(search.leavings(), key=lambda one: one.total / len(one.targets), default=None)
        if best is None or best.total < least * len(best.targets):
            break
        search.make(best.targets)
        total += best.total
    return Gain(search.targets, total)


class _Search:
    """Where units are after the moves that were chosen so far."""

    def __init__(self, stated: StatedMoves, room: Room) -> None:
        self._problem, self._room = stated.problem, room
        self._role_of = stated.role_of.tolist()
        self._free = stated.problem.free.copy()
        self._hosts = dict(stated.problem.placed)
        self.targets: dict[int, int] = {}

    def leavings(self) -> Iterator[Gain]:
        """For each host what is gained most for each move by servers that leave it.

        Smaller servers leave first.
        """
        worth = self._value(slice(None), self._free)
        lost = _Lost(self._free, worth, self._value)
        sources: dict[int, list[int]] = {}
        for unit, host in self._hosts.items():
            if self._problem.movable[unit] and unit not in self.targets:
                sources.setdefault(host, []).append(unit)
        for source, units in sources.items():
            units.sort(key=lambda unit: tuple(self._problem.amounts[unit].tolist()))
            best = None
            for one in self._leaving(source, units, float(worth[source]), lost):
                if best is None or one.total * len(best.targets) > best.total * len(one.targets):
                    best = one
            if best is not None:
                yield best

    def _leaving(
        self, source: int, units: Sequence[int], worth: float, lost: _Lost
    ) -> Iterator[Gain]:
        """What the first unit gains, the first two together, and so on."""
        hosts = dict(self._hosts)
        taken: dict[int, Ints] = {}
        targets: dict[int, int] = {}
        freed, losses = self._free[source].copy(), 0.0
        for unit in units[: MOST_MOVES - len(self.targets)]:
            amounts = self._problem.amounts[unit]
            may = self._problem.entries[self._problem.mask_of[unit]]
            for host in lost.least(self._role_of[unit], amounts, may)[:_TRIED]:
                free = self._free[host] - taken.get(host, 0)
                if host == source or (free < amounts).any():
                    continue
                if self._permitted(unit, host, hosts):
                    break
            else:
                return
            before, after = self._value([host], np.array([free])), free - amounts
            losses += float(before[0] - self._value([host], np.array([after]))[0])
            taken[host] = taken.get(host, 0) + amounts
            hosts[unit] = targets[unit] = host
            freed += amounts
            gained = float(self._value([source], np.array([freed]))[0])
            yield Gain(dict(targets), gained - worth - losses)

    def make(self, targets: Mapping[int, int]) -> None:
        """Move units to these hosts."""
        for unit, host in targets.items():
            amounts = self._problem.amounts[unit]
            self._free[self._hosts[unit]] += amounts
            self._free[host] -= amounts
            self._hosts[unit] = self.targets[unit] = host

    def _value(self, rows: list[int] | slice, free: Ints) -> Floats:
        at = rows if isinstance(rows, slice) else np.array(rows, dtype=np.int64)
        return self._room.value(free.T, at)

    def _permitted(self, unit: int, host: int, hosts: Mapping[int, int]) -> bool:
        """Whether rules and devices permit a unit on a host."""
        problem = self._problem
        then = {**hosts, unit: host} if problem.rules_of[unit] else {}
        for number in problem.rules_of[unit]:
            amount, most = problem.rules[number].amount(then), problem.meanwhile[number]
            if amount > problem.rules[number].limit or (most is not None and amount > most):
                return False
        if problem.fits is None:
            return True
        return problem.fits(unit, host, [one for one, row in hosts.items() if row == host])


class _Lost:
    """What hosts lose by one more unit, for each distinct size of units."""

    def __init__(self, free: Ints, worth: Floats, value: Callable[[slice, Ints], Floats]) -> None:
        self._free, self._worth, self._value = free, worth, value
        self._order: dict[int, list[int]] = {}

    def least(self, role: int, amounts: Ints, may: Bools) -> list[int]:
        """Hosts that have room for the amounts and may be entered; what loses least first."""
        if role not in self._order:
            holds = (self._free >= amounts).all(axis=1)
            lost = self._worth - self._value(slice(None), self._free - amounts)
            rows = np.flatnonzero(holds)
            self._order[role] = rows[np.argsort(lost[rows], kind="stable")].tolist()
        return [row for row in self._order[role] if may[row]]
