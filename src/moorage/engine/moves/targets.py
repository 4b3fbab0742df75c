"""Where units are to stand at the end: places for those that leave, and for newcomers.

All of them are taken away first, then placed one by one, hardest first, each where rules are
violated least. Units that a rule pulls together look for a place for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from moorage.engine.moves.problem import MoveProblem
    from moorage.engine.moves.state import State

    Ints: TypeAlias = NDArray[np.int64]

_MOST_JUDGED: Final = 200
"""Kinds of hosts that are judged for one unit."""
_MOST_GROUP_TARGETS: Final = 300
"""Places that are tried for units that a rule pulls together."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A host for a unit, and by how much its rules are then violated beyond their limits."""

    host: int
    excess: int


class Placing:
    """Places units into a state; `tight` prefers the fullest hosts, else the emptiest."""

    def __init__(self, state: State, *, tight: bool = False) -> None:
        self.state = state
        self.problem: MoveProblem = state.problem
        self.tight = tight
        mean = self.problem.amounts.mean(axis=0) if len(self.problem.amounts) else 1
        self.scale = np.maximum(mean, 1)
        """[K] what is one unit's worth of room."""
        self.unplaced: list[int] = []

    def place_all(self, units: Iterable[int]) -> None:
        """Place units that stand nowhere, as many as possible; the others are `unplaced`."""
        waiting = dict.fromkeys(self._hardest_first(units))
        while waiting:
            if deadline.passed():
                self.unplaced.extend(waiting)
                return
            unit = next(iter(waiting))
            group = self._group(unit, waiting)
            if group and self._place_group(group):
                for one in group:
                    del waiting[one]
                continue
            del waiting[unit]
            best = self.best(unit)
            if best is None:
                self.unplaced.append(unit)
            else:
                self.state.put(unit, best.host)

    def _hardest_first(self, units: Iterable[int]) -> list[int]:
        """Units with few possible hosts first, then large ones; a rule's units in a row."""
        problem = self.problem
        size = (problem.amounts / self.scale).max(axis=1, initial=0)
        hosts: dict[tuple[int, ...], int] = {}
        keys: dict[int, tuple[int, float, int]] = {}
        for unit in units:
            kind = (int(problem.mask_of[unit]), *problem.amounts[unit].tolist())
            if kind not in hosts:
                hosts[kind] = len(self.state.enterable(unit))
            keys[unit] = (hosts[kind], -float(size[unit]), unit)
        return sorted(keys, key=keys.__getitem__)

    def rows(self, unit: int) -> Ints:
        """Hosts that the unit may enter by masks and amounts, the preferred ones first."""
        rows = self.state.enterable(unit)
        used = np.flatnonzero(self.problem.amounts[unit] > 0)
        if len(used) == 0:
            return rows
        slack = (self.state.room[rows][:, used] / self.scale[used]).min(axis=1)
        return rows[np.argsort(slack if self.tight else -slack, kind="stable")]

    def best(self, unit: int) -> Choice | None:
        """The host where rules are violated least, of those the preferred one; None: no host."""
        best: Choice | None = None
        for choice in self.choices(unit):
            if best is None or choice.excess < best.excess:
                best = choice
            if best.excess == 0:
                break
        return best

    def choices(self, unit: int) -> Iterator[Choice]:
        """One host of each kind that rules tell apart, the preferred ones first."""
        rows = self.rows(unit)
        rules = self.problem.rules_of[unit]
        for judged, first in enumerate(self._firsts(unit, rows, rules)):
            if judged >= _MOST_JUDGED:
                return
            host = next(iter(self.state.fitting(unit, first)), None)
            if host is not None:
                yield Choice(host, self.excess_at(unit, host))

    def excess_at(self, unit: int, host: int) -> int:
        """By how much the unit's rules are violated beyond their limits with it there."""
        rules = self.problem.rules_of[unit]
        amounts = self.state.amounts_at(unit, host, rules)
        return sum(
            max(amount - self.problem.rules[one].limit, 0)
            for one, amount in zip(rules, amounts, strict=True)
        )

    def _firsts(self, unit: int, rows: Ints, rules: Sequence[int]) -> Iterator[Ints]:
        """The hosts by kind, each kind in order of preference, in the order of their first."""
        if len(rows) == 0:
            return
        if not rules:
            yield rows
            return
        kinds = np.zeros(len(rows), dtype=np.int64)
        for number in rules:
            labels = self.problem.rules[number].alike(unit, self.state.hosts)[rows]
            _, labels = np.unique(labels, return_inverse=True)
            _, kinds = np.unique(kinds * (len(rows) + 1) + labels, return_inverse=True)
        _, first = np.unique(kinds, return_index=True)
        for position in np.sort(first).tolist():
            kind = kinds[position]
            yield rows[position:][kinds[position:] == kind]

    # Units that a rule pulls together

    def _group(self, unit: int, waiting: Iterable[int]) -> list[int]:
        """The waiting units that a rule pulls to where this one goes, itself first; or none."""
        left = set(waiting)
        found = [unit]
        for number in self.problem.rules_of[unit]:
            others = [one for one in self.problem.rules[number].units if one in left]
            partner = next((one for one in others if one not in found), None)
            if partner is not None and self._pulls(number, unit, partner):
                found += [one for one in others if one not in found]
        return found if len(found) > 1 else []

    def _pulls(self, number: int, unit: int, partner: int) -> bool:
        """Whether the rule wants the second unit where the first is, rather than elsewhere."""
        rows = self.state.enterable(unit)
        if len(rows) < 2:  # noqa: PLR2004 - there is no elsewhere
            return False
        rule, state = self.problem.rules[number], self.state
        here = int(rows[0])
        state.hosts[unit] = here
        labels = rule.alike(partner, state.hosts)
        elsewhere = np.flatnonzero(labels != labels[here])
        found = False
        if len(elsewhere):
            near = state.amounts_at(partner, here, (number,))[0]
            far = state.amounts_at(partner, int(elsewhere[-1]), (number,))[0]
            found = near < far
        del state.hosts[unit]
        return found

    def _place_group(self, group: Sequence[int]) -> bool:
        """Place all of them where no rule is violated; False: nothing is placed."""
        first = group[0]
        needed = self.problem.amounts[list(group)].sum(axis=0)
        rows = self.rows(first)
        if len(rows) == 0:
            return False
        # Where one host has room for all, it is tried before those that need others beside them.
        alone = (self.state.room[rows] >= needed).all(axis=1)
        rows = np.concatenate([rows[alone], rows[~alone]])
        tried = np.zeros(len(self.problem.free), dtype=np.bool_)
        attempts = 0
        for host in self.state.fitting(first, rows):
            if tried[host] or self.excess_at(first, host):
                continue
            attempts += 1
            if attempts > _MOST_GROUP_TARGETS or deadline.passed():
                return False
            self.state.put(first, host)
            if self._place_rest(group[1:]):
                return True
            tried |= self._domain(group, host)
            self.state.remove(first)
        return False

    def _place_rest(self, units: Sequence[int]) -> bool:
        placed: list[int] = []
        for unit in units:
            best = self.best(unit)
            if best is None or best.excess > 0:
                for one in placed:
                    self.state.remove(one)
                return False
            self.state.put(unit, best.host)
            placed.append(unit)
        return True

    def _domain(self, group: Sequence[int], host: int) -> NDArray[np.bool_]:
        """[H] hosts that are equal to this one for the first unit's partner."""
        partner = group[1]
        found = np.ones(len(self.problem.free), dtype=np.bool_)
        for number in self.problem.rules_of[partner]:
            if group[0] in self.problem.rules[number].units:
                labels = self.problem.rules[number].alike(partner, self.state.hosts)
                found &= labels == labels[host]
        return found
