"""Where all units stand while a search moves them, and what room that leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from moorage.engine.moves.problem import MoveProblem

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]

NOWHERE = -1


class State:
    """A state of the search, changed in place. Units that stand nowhere are absent."""

    def __init__(self, problem: MoveProblem) -> None:
        self.problem = problem
        self.room: Ints = np.array(problem.free, dtype=np.int64, order="F")
        """[H, K] room beside all that stands there."""
        self.hosts: dict[int, int] = dict(problem.placed)
        """Unit -> host row, as rules read it."""
        self.at: Rows = problem.start.astype(np.int32, copy=True)
        """[U] the same as a column; -1: nowhere."""
        self.there: dict[int, set[int]] = {}
        """Host row -> the units there; no entry: none."""
        for unit, host in self.hosts.items():
            self.there.setdefault(host, set()).add(unit)
        self.touched: list[int] = []
        """Host rows whose room changed, in order."""
        self.versions: dict[int, int] = {}
        """Host row -> how often something changed there."""
        self._journal: list[tuple[int, int]] = []
        """Each unit that was put somewhere or removed, and where it stood before."""

    def remove(self, unit: int) -> int:
        """Let a unit stand nowhere; returns the host where it stood."""
        host = self.hosts.pop(unit)
        self.at[unit] = NOWHERE
        self.there[host].discard(unit)
        self.room[host] += self.problem.amounts[unit]
        self._touch(host)
        self._journal.append((unit, host))
        return host

    def put(self, unit: int, host: int) -> None:
        """Let a unit that stands nowhere stand on a host."""
        self.hosts[unit] = host
        self.at[unit] = host
        self.there.setdefault(host, set()).add(unit)
        self.room[host] -= self.problem.amounts[unit]
        self._touch(host)
        self._journal.append((unit, NOWHERE))

    def _touch(self, host: int) -> None:
        self.touched.append(host)
        self.versions[host] = self.versions.get(host, 0) + 1

    def move(self, unit: int, host: int) -> int:
        """Let a unit stand on another host; returns the one where it stood."""
        source = self.remove(unit)
        self.put(unit, host)
        return source

    def mark(self) -> int:
        """What `undo` takes to come back to the present state."""
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Come back to the state of that mark."""
        while len(self._journal) > mark:
            unit, before = self._journal.pop()
            if before == NOWHERE:
                self.remove(unit)
            else:
                self.put(unit, before)
            self._journal.pop()

    def changed(self, mark: int) -> set[int]:
        """The units that were put somewhere or removed since that mark."""
        return {unit for unit, _ in self._journal[mark:]}

    def has_room(self, unit: int, host: int) -> bool:
        """Whether the unit can enter the host beside all that stands there."""
        amounts = self.problem.amounts[unit]
        if ((self.room[host] < amounts) & (amounts > 0)).any():
            return False
        return self._fits(unit, host)

    def may_enter(self, unit: int, host: int) -> bool:
        """Whether the unit's mask permits the host, and there is room."""
        problem = self.problem
        return bool(problem.entries[problem.mask_of[unit], host]) and self.has_room(unit, host)

    def may_stay(self, unit: int) -> bool:
        """Whether a unit that stands nowhere can stand where it did at the start."""
        start = int(self.problem.start[unit])
        if start == NOWHERE or self.problem.leave[start]:
            return False
        if all(self.problem.start[one] == start for one in self.there.get(start, ())):
            return True
        return self.has_room(unit, start)

    def _fits(self, unit: int, host: int) -> bool:
        fits = self.problem.fits
        return fits is None or fits(unit, host, frozenset(self.there.get(host, ())))

    def enterable(self, unit: int) -> Ints:
        """Rows of the hosts that the unit may enter now, by masks and amounts, ascending."""
        problem = self.problem
        found: Bools = problem.entries[problem.mask_of[unit]].copy()
        amounts = problem.amounts[unit]
        for column in np.flatnonzero(amounts > 0):
            found &= self.room[:, column] >= amounts[column]
        if unit in self.hosts:
            found[self.hosts[unit]] = False
        return np.flatnonzero(found)

    def fitting(self, unit: int, rows: Ints) -> Iterable[int]:
        """Those of these hosts that the unit fits for every further check, in their order."""
        return (host for host in rows.tolist() if self._fits(unit, host))

    def amounts_at(self, unit: int, host: int, rules: Iterable[int]) -> list[int]:
        """By how much each of these rules is violated with the unit on that host instead."""
        before = self.hosts.get(unit)
        self.hosts[unit] = host
        found = [self.problem.rules[number].amount(self.hosts) for number in rules]
        if before is None:
            del self.hosts[unit]
        else:
            self.hosts[unit] = before
        return found

    def excess_at(self, unit: int, host: int) -> int:
        """By how much the unit's rules are violated beyond their limits with it there."""
        rules = self.problem.rules_of[unit]
        amounts = self.amounts_at(unit, host, rules)
        return sum(
            max(amount - self.problem.rules[one].limit, 0)
            for one, amount in zip(rules, amounts, strict=True)
        )

    def excess(self, number: int) -> int:
        """By how much a rule is violated beyond its limit."""
        rule = self.problem.rules[number]
        return max(rule.amount(self.hosts) - rule.limit, 0)

    def holds_meanwhile(self, unit: int, host: int) -> bool:
        """Whether every rule that is judged between moves holds with the unit on that host."""
        limits = self.problem.meanwhile
        judged = [one for one in self.problem.rules_of[unit] if limits[one] is not None]
        for number in judged:
            limit = limits[number]
            if limit is not None and self.amounts_at(unit, host, (number,))[0] > limit:
                return False
        return True
