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
    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]

_MOST_JUDGED: Final = 200
"""Kinds of hosts that are judged for one unit."""
_ENOUGH: Final = 30
"""Kinds of hosts after which one that makes no rule worse is taken."""
_MOST_GROUP_TARGETS: Final = 300
"""Places that are tried for units that a rule pulls together."""
_MOST_SLACKS: Final = 256
"""Kinds of units of which the hosts' room is remembered."""
_ENDLESS: Final = 1e18
"""Room for a unit that takes nothing."""
_MOST_BESIDE: Final = 40
"""Kinds of hosts that are judged for one of such units beside the domain of the first."""
_WIDE: Final = 4
"""Range of labels, for each host, up to which they are counted and not sorted."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A host for a unit, and by how much its rules are then violated beyond their limits."""

    host: int
    excess: int


class _Slack:
    """Room of each host for each kind of unit, brought up to date when it is read."""

    def __init__(self, state: State, scale: Floats) -> None:
        self.state = state
        self.scale = scale
        self._known: dict[tuple[int, ...], tuple[Floats, int]] = {}
        """Mask and amounts -> the column, and how many changes of the state it has."""

    def of(self, unit: int) -> Floats:
        """[H] room in the scarcest class that the unit takes; -1: it cannot enter."""
        problem, state = self.state.problem, self.state
        kind = (int(problem.mask_of[unit]), *problem.amounts[unit].tolist())
        column, seen = self._known.get(kind, (None, 0))
        if column is None or len(state.touched) - seen > len(state.room) // 8:
            column = self._rows(unit, np.arange(len(state.room)))
        elif seen < len(state.touched):
            rows = np.array(sorted(set(state.touched[seen:])), dtype=np.int64)
            column[rows] = self._rows(unit, rows)
        if len(self._known) > _MOST_SLACKS:
            self._known.clear()
        self._known[kind] = (column, len(state.touched))
        return column

    def _rows(self, unit: int, rows: Ints) -> Floats:
        problem = self.state.problem
        amounts = problem.amounts[unit]
        open_ = problem.entries[problem.mask_of[unit], rows]
        found = np.full(len(rows), _ENDLESS)
        for column in np.flatnonzero(amounts > 0):
            room = self.state.room[rows, column]
            open_ = open_ & (room >= amounts[column])
            np.minimum(found, room / self.scale[column], out=found)
        found[~open_] = -1
        return found


class Placing:
    """Places units into a state; `tight` prefers the fullest hosts, else the emptiest."""

    def __init__(self, state: State, *, tight: bool = False) -> None:
        self.state = state
        self.problem: MoveProblem = state.problem
        self.tight = tight
        mean = self.problem.amounts.mean(axis=0) if len(self.problem.amounts) else 1
        self.scale = np.maximum(mean, 1)
        """[K] what is one unit's worth of room."""
        self.slack = _Slack(state, self.scale)

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
                hosts[kind] = int((self.slack.of(unit) >= 0).sum())
            keys[unit] = (hosts[kind], -float(size[unit]), unit)
        return sorted(keys, key=keys.__getitem__)

    def _ranks(self, unit: int) -> Floats:
        """[H] how little each host is preferred for the unit; inf: it cannot be entered."""
        slack = self.slack.of(unit)
        found = np.where(slack < 0, np.inf, slack if self.tight else -slack)
        if unit in self.state.hosts:
            found[self.state.hosts[unit]] = np.inf
        return found

    def preferred(self, unit: int) -> Ints:
        """Hosts that the unit may enter by masks and amounts, the preferred ones first."""
        ranks = self._ranks(unit)
        rows = np.flatnonzero(ranks < np.inf)
        return rows[np.argsort(ranks[rows], kind="stable")]

    def best(
        self, unit: int, within: Bools | None = None, most: int = _MOST_JUDGED
    ) -> Choice | None:
        """The host where rules are violated least, of those the preferred one; None: no host.

        After some kinds of hosts one is good enough where rules are violated as without the unit.
        `within`, `most`: see `choices`.
        """
        best: Choice | None = None
        without: int | None = None
        for judged, choice in enumerate(self.choices(unit, within, most)):
            if best is None or choice.excess < best.excess:
                best = choice
            if best.excess == 0:
                break
            if judged >= _ENOUGH:
                if without is None:
                    without = sum(map(self.state.excess, self.problem.rules_of[unit]))
                if best.excess <= without:
                    break
        return best

    def choices(
        self, unit: int, within: Bools | None = None, most: int = _MOST_JUDGED
    ) -> Iterator[Choice]:
        """One host of each kind that rules tell apart, the preferred ones first.

        Before all others comes the host where the unit stood at the start, if it can stay there.
        `within`: [H] only these beside it; `most`: so many at most.
        """
        state = self.state
        if unit not in state.hosts and state.may_stay(unit):
            start = int(self.problem.start[unit])
            yield Choice(start, state.excess_at(unit, start))
        ranks = self._ranks(unit)
        if within is not None:
            ranks[~within] = np.inf
        kinds: Ints | None = None
        for _ in range(most):
            host = self._first(unit, ranks)
            if host is None:
                return
            yield Choice(host, state.excess_at(unit, host))
            if not self.problem.rules_of[unit]:
                return
            if kinds is None:
                kinds = self.kinds(unit)
            ranks[kinds == kinds[host]] = np.inf

    def _first(self, unit: int, ranks: Floats) -> int | None:
        """The preferred host that fits for every further check, too; the others lose their rank."""
        while True:
            host = int(ranks.argmin())
            if ranks[host] == np.inf:
                return None
            if self.problem.fits is None or self.state.has_room(unit, host):
                return host
            ranks[host] = np.inf

    def kinds(self, unit: int) -> Ints:
        """[H] numbers of the kinds of hosts that the unit's rules tell apart."""
        found = np.zeros(len(self.problem.free), dtype=np.int64)
        for number in self.problem.rules_of[unit]:
            labels = _dense(self.problem.rules[number].alike(unit, self.state.hosts))
            found = _dense(found * (int(labels.max()) + 1) + labels)
        return found

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
            before = self.kinds(group[1])
            state.put(first, host)
            domain = self._domain(group[1], host, before)
            if self._place_rest(group[1:], domain):
                return True
            tried |= domain
            tried[host] = True
            state.undo(mark)
        return False

    def _place_rest(self, units: Sequence[int], domain: Bools) -> bool:
        """Place them in the first one's domain, or elsewhere if no rule is violated there."""
        mark = self.state.mark()
        for unit in units:
            best = self.best(unit, domain)
            if best is None or best.excess > 0:
                best = self.best(unit, most=_MOST_BESIDE)
            if best is None or best.excess > 0:
                self.state.undo(mark)
                return False
            self.state.put(unit, best.host)
        return True

    def _domain(self, partner: int, host: int, before: Ints) -> Bools:
        """[H] hosts where the partner violates nothing beside the first unit on that host.

        Of those only that were equal to this host for the partner's rules before it came.
        """
        found: Bools = before == before[host]
        kinds = self.kinds(partner)
        rows = np.flatnonzero(found)
        for kind, at in zip(*np.unique(kinds[rows], return_index=True), strict=True):
            if self.state.excess_at(partner, int(rows[at])) > 0:
                found &= kinds != kind
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
