"""Places units that stand nowhere, one by one, each where rules are violated least.

Units that a rule pulls together look for a place for all of them.
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
    Bools: TypeAlias = NDArray[np.bool_]

_MOST_JUDGED: Final = 200
"""Kinds of hosts that are judged for one unit."""
_MOST_GROUP_TARGETS: Final = 300
"""Places that are tried for units that a rule pulls together."""
_FEW: Final = 32
"""Kinds of hosts up to which each is looked up by a comparison with all hosts."""
_WIDE: Final = 4
"""Range of labels, for each host, up to which they are counted and not sorted."""


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

    def place_all(self, units: Iterable[int]) -> list[int]:
        """Place units that stand nowhere, as many as possible; returns the others."""
        unplaced: list[int] = []
        waiting = dict.fromkeys(self.hardest_first(units))
        while waiting:
            if deadline.passed():
                return [*unplaced, *waiting]
            unit = next(iter(waiting))
            group = self._group(unit, waiting)
            if group and self._place_group(group):
                for one in group:
                    del waiting[one]
                continue
            del waiting[unit]
            best = self.best(unit)
            if best is None:
                unplaced.append(unit)
            else:
                self.state.put(unit, best.host)
        return unplaced

    def hardest_first(self, units: Iterable[int]) -> list[int]:
        """Units with few possible hosts first, then large ones."""
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

    def _slack(self, unit: int, rows: Ints) -> NDArray[np.float64]:
        """[n] how little these hosts are preferred: the least of all goes first."""
        found = np.full(len(rows), np.inf)
        for column in np.flatnonzero(self.problem.amounts[unit] > 0):
            np.minimum(found, self.state.room[rows, column] / self.scale[column], out=found)
        return found if self.tight else -found

    def preferred(self, unit: int) -> Ints:
        """Hosts that the unit may enter by masks and amounts, the preferred ones first."""
        rows = self.state.enterable(unit)
        return rows[np.argsort(self._slack(unit, rows), kind="stable")]

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
        """One host of each kind that rules tell apart, the preferred ones first.

        Before all others comes the host where the unit stood at the start, if it can stay there.
        """
        state = self.state
        if unit not in state.hosts and state.may_stay(unit):
            start = int(self.problem.start[unit])
            yield Choice(start, state.excess_at(unit, start))
        rows = state.enterable(unit)
        slack = self._slack(unit, rows)
        kinds = [
            (slack[inside].min(), number, rows[inside], slack[inside])
            for number, inside in enumerate(self._kinds(unit, rows))
        ]
        for _, _, hosts, ranks in sorted(kinds, key=lambda one: one[:2])[:_MOST_JUDGED]:
            host = self._first(unit, hosts, ranks)
            if host is not None:
                yield Choice(host, state.excess_at(unit, host))

    def _first(self, unit: int, hosts: Ints, ranks: NDArray[np.float64]) -> int | None:
        """The preferred one of hosts that are equal to the rules."""
        if self.problem.fits is None:
            return int(hosts[ranks.argmin()])
        order = np.argsort(ranks, kind="stable")
        return next(iter(self.state.fitting(unit, hosts[order])), None)

    def kinds(self, unit: int, rows: Ints) -> Iterator[Ints]:
        """The hosts by kind, as the unit's rules tell them apart."""
        return (rows[inside] for inside in self._kinds(unit, rows))

    def _kinds(self, unit: int, rows: Ints) -> list[Ints]:
        """The positions in `rows` of each kind of host."""
        if len(rows) == 0:
            return []
        kinds: Ints | None = None
        for number in self.problem.rules_of[unit]:
            labels = self.problem.rules[number].alike(unit, self.state.hosts)[rows]
            kinds = _dense(labels if kinds is None else kinds * len(rows) + _dense(labels))
        if kinds is None:
            return [np.arange(len(rows))]
        if kinds.max() < _FEW:
            return [np.flatnonzero(kinds == kind) for kind in range(int(kinds.max()) + 1)]
        order = np.argsort(kinds, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1)

    # Units that a rule pulls together

    def _group(self, unit: int, waiting: Iterable[int]) -> list[int]:
        """The waiting units that a rule pulls to where this one goes, itself first; or none."""
        rules = self.problem.rules_of[unit]
        if not rules:
            return []
        left = set(waiting)
        found = [unit]
        for number in rules:
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
        state, first = self.state, group[0]
        needed = self.problem.amounts[list(group)].sum(axis=0)
        rows = self.preferred(first)
        if len(rows) == 0:
            return False
        # Where one host has room for all, it is tried before those that need others beside them.
        alone = (state.room[rows] >= needed).all(axis=1)
        rows = np.concatenate([rows[alone], rows[~alone]])
        tried = np.zeros(len(self.problem.free), dtype=np.bool_)
        attempts = 0
        for host in state.fitting(first, rows):
            if tried[host] or state.excess_at(first, host):
                continue
            attempts += 1
            if attempts > _MOST_GROUP_TARGETS or deadline.passed():
                return False
            mark = state.mark()
            state.put(first, host)
            if self._place_rest(group[1:]):
                return True
            tried |= self._domain(group, host)
            state.undo(mark)
        return False

    def _place_rest(self, units: Sequence[int]) -> bool:
        mark = self.state.mark()
        for unit in units:
            best = self.best(unit)
            if best is None or best.excess > 0:
                self.state.undo(mark)
                return False
            self.state.put(unit, best.host)
        return True

    def _domain(self, group: Sequence[int], host: int) -> Bools:
        """[H] hosts that are equal to this one for the first unit's partner."""
        partner = group[1]
        found = np.ones(len(self.problem.free), dtype=np.bool_)
        for number in self.problem.rules_of[partner]:
            if group[0] in self.problem.rules[number].units:
                labels = self.problem.rules[number].alike(partner, self.state.hosts)
                found &= labels == labels[host]
        return found


def _dense(labels: Ints) -> Ints:
    """[n] the labels as numbers from 0, without gaps."""
    low = int(labels.min())
    size = int(labels.max()) - low + 1
    if size > _WIDE * len(labels):
        found: Ints = np.unique(labels, return_inverse=True)[1]
        return found
    present = np.bincount(labels - low, minlength=size) > 0
    numbers: Ints = np.cumsum(present) - 1
    return numbers[labels - low]
