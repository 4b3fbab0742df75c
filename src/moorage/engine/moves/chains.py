"""Makes room for a unit: others leave a host for it, and find places in the same way.

Units that were moved already leave at no further cost; of the others as few as possible leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from moorage.engine.moves.place_search import Placing

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

_MOST_OPTIONS: Final = 24
"""Sets of leaving units that are tried for one unit, of each size."""
_MOST_EXCHANGES: Final = 300
"""Sets of leaving units that are tried for one unit, those for them included."""
_MOST_HOSTS: Final = 200
"""Hosts of which sets of several units are formed."""


class Chains:
    """Places units for which others leave; `depth` of `place` bounds the length of a chain."""

    def __init__(self, placing: Placing, dice: random.Random) -> None:
        self.placing = placing
        self.state = placing.state
        self.problem = placing.problem
        self.dice = dice
        self.size = (self.problem.amounts / placing.scale).sum(axis=1)
        """[U] how large each unit is."""
        self.mobile: Bools = self.problem.movable | (self.problem.start < 0)
        """[U] units that may leave a host."""
        self.sets: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = {}
        """Host, classes and what is lacking -> the host's version, and who leaves."""
        self.left = 0
        """Exchanges that may still be tried for the present unit."""

    def place(self, unit: int, depth: int) -> bool:
        """Place a unit that stands nowhere; False: nothing changes."""
        self.left = _MOST_EXCHANGES
        return self._place(unit, depth, frozenset())

    def _place(self, unit: int, depth: int, barred: frozenset[int]) -> bool:
        """Place a unit on none of the barred hosts."""
        for leavers, host in self._options(unit, barred):
            if self.left <= 0 or deadline.passed():
                return False
            self.left -= 1
            mark = self.state.mark()
            if self._exchange(unit, host, leavers, depth, barred):
                return True
            self.state.undo(mark)
        return False

    def _exchange(
        self, unit: int, host: int, leavers: Sequence[int], depth: int, barred: frozenset[int]
    ) -> bool:
        """Let these leave the host for the unit, and place them elsewhere."""
        state = self.state
        before = {one: state.excess_at(one, host) for one in leavers}
        for one in leavers:
            state.remove(one)
        if not state.has_room(unit, host):
            return False
        state.put(unit, host)
        for one in self.placing.hardest_first(leavers):
            best = self.placing.best(one)
            if best is not None and best.excess <= before[one]:
                state.put(one, best.host)
            elif depth <= 0 or not self._place(one, depth - 1, barred | {host}):
                return False
        return True

    def _options(self, unit: int, barred: frozenset[int]) -> Iterator[tuple[Sequence[int], int]]:
        """Units that leave a host, and the host, the cheapest sets first."""
        rows = self._hosts(unit, barred)
        if len(rows) == 0:
            return
        amounts = self.problem.amounts[unit]
        used = np.flatnonzero(amounts > 0)
        lack = np.maximum(amounts[used] - self.state.room[rows][:, used], 0)
        yield from self._single(rows, lack, used)
        yield from self._several(rows, lack, used)

    def _hosts(self, unit: int, barred: frozenset[int]) -> Ints:
        """Hosts that the unit may enter where its rules are violated least, full or not."""
        open_ = self.problem.entries[self.problem.mask_of[unit]].copy()
        open_[list(barred)] = False
        rows = np.flatnonzero(open_)
        if len(rows) == 0 or not self.problem.rules_of[unit]:
            return rows
        kinds = self.placing.kinds(unit)[rows]
        _, first, inverse = np.unique(kinds, return_index=True, return_inverse=True)
        excess = np.array([self.state.excess_at(unit, host) for host in rows[first].tolist()])
        found: Ints = rows[excess[inverse] == excess.min()]
        return found

    def _prices(self, units: Ints) -> Ints:
        """[n] what it costs if these units leave: nothing if they have moved already."""
        moved = self.state.at[units] != self.problem.start[units]
        return np.where(moved, 0, self.problem.cost[units])

    def _single(self, rows: Ints, lack: Ints, used: Ints) -> Iterator[tuple[Sequence[int], int]]:
        """Each unit that makes enough room alone, the cheapest and smallest first."""
        index = np.full(len(self.problem.free), -1, dtype=np.int64)
        index[rows] = np.arange(len(rows))
        units = np.flatnonzero(self.mobile & (self.state.at >= 0))
        position = index[self.state.at[units]]
        units, position = units[position >= 0], position[position >= 0]
        enough = (self.problem.amounts[units][:, used] >= lack[position]).all(axis=1)
        units = units[enough]
        noise = np.array([self.dice.random() for _ in range(len(units))])
        order = np.lexsort((noise, self.size[units], self._prices(units)))
        for unit in units[order][:_MOST_OPTIONS].tolist():
            yield (unit,), int(self.state.at[unit])

    def _several(self, rows: Ints, lack: Ints, used: Ints) -> Iterator[tuple[Sequence[int], int]]:
        """Sets of two and more units of one host, the cheapest first."""
        order = np.argsort((lack / self.placing.scale[used]).sum(axis=1), kind="stable")
        found: list[tuple[int, float, int, tuple[int, ...]]] = []
        for position in order[:_MOST_HOSTS].tolist():
            host = int(rows[position])
            chosen = self._known_set(host, lack[position], used)
            if chosen:
                price = int(self._prices(np.array(chosen)).sum())
                found.append((price, self.dice.random(), host, chosen))
        for _, _, host, chosen in sorted(found)[:_MOST_OPTIONS]:
            yield chosen, host

    def _known_set(self, host: int, lack: Ints, used: Ints) -> tuple[int, ...]:
        """See `_enough`; remembered until something changes on the host."""
        key = (host, *used.tolist(), *lack.tolist())
        version = self.state.versions.get(host, 0)
        known = self.sets.get(key)
        if known is not None and known[0] == version:
            return known[1]
        units = [one for one in sorted(self.state.there.get(host, ())) if self.mobile[one]]
        chosen = self._enough(np.array(units, dtype=np.int64), lack, used)
        self.sets[key] = (version, chosen)
        return chosen

    def _enough(self, units: Ints, lack: Ints, used: Ints) -> tuple[int, ...]:
        """A cheap set of more than one of these units that makes so much room; or none."""
        amounts = self.problem.amounts[units][:, used]
        if len(units) < 2 or (amounts.sum(axis=0) < lack).any():  # noqa: PLR2004 - more than one
            return ()
        prices = self._prices(units)
        pairs = (amounts[:, None] + amounts[None, :] >= lack).all(axis=2)
        first, second = np.nonzero(np.triu(pairs, 1))
        if len(first):
            total = self.size[units]
            best = np.lexsort((total[first] + total[second], prices[first] + prices[second]))[0]
            return int(units[first[best]]), int(units[second[best]])
        chosen: list[int] = []
        left = lack.copy()
        while (left > 0).any():
            gain = (np.minimum(amounts, left) / self.placing.scale[used]).sum(axis=1)
            gain = gain / (prices + 0.5)
            gain[chosen] = -1
            best = int(np.argmax(gain))
            chosen.append(best)
            left = np.maximum(left - amounts[best], 0)
        for one in list(chosen):
            rest = [other for other in chosen if other != one]
            if (amounts[rest].sum(axis=0) >= lack).all():
                chosen = rest
        return tuple(int(units[one]) for one in chosen)
