"""What each move of an order waits for, so that the others may overlap.

Capacity: an arrival counts all arrivals at its host before it in the order as done, and waits for
so many departures that it fits beside them; whatever else has left only adds room. Rules that are
judged meanwhile: their moves are cut into batches, within which every combination of done and not
done holds, and a batch waits for the one before.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.moves.problem import Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.engine.moves.problem import MoveProblem

    Ints: TypeAlias = NDArray[np.int64]
    Moves: TypeAlias = Sequence[tuple[int, int, int]]

_LARGEST_BATCH: Final = 5
"""Moves of one rule of which every combination is judged."""


def with_waits(problem: MoveProblem, moves: Moves) -> tuple[Step, ...]:
    """The steps of an order in which each move is possible after those before it."""
    needed: list[set[int]] = [set() for _ in moves]
    _chain_units(moves, needed)
    _chain_rules(problem, moves, needed)
    _chain_fits(problem, moves, needed)
    closed = _Closure(needed)
    by_host: dict[int, _Host] = {}
    for position, (unit, source, target) in enumerate(moves):
        if target not in by_host:
            by_host[target] = _Host(problem, target)
        by_host[target].arrive(position, unit, closed)
        closed.close(position)
        if source not in by_host:
            by_host[source] = _Host(problem, source)
        by_host[source].departures.append((position, unit))
    return tuple(
        Step(unit, source, target, closed.direct(position))
        for position, (unit, source, target) in enumerate(moves)
    )


def _chain_units(moves: Moves, needed: list[set[int]]) -> None:
    """A unit's next move waits for the one before."""
    last: dict[int, int] = {}
    for position, (unit, _, _) in enumerate(moves):
        if unit in last:
            needed[position].add(last[unit])
        last[unit] = position


class _Closure:
    """What each move waits for, directly and through others, as bits."""

    def __init__(self, needed: list[set[int]]) -> None:
        self.needed = needed
        self.bits: list[int] = []

    def close(self, position: int) -> None:
        """Nothing is added to what this move waits for."""
        self.bits.append(self.through(position))

    def through(self, position: int) -> int:
        """The moves that this one waits for, as bits."""
        found = 0
        for other in self.needed[position]:
            found |= self.bits[other] | 1 << other
        return found

    def direct(self, position: int) -> tuple[int, ...]:
        """What the move waits for, without what that implies."""
        kept: list[int] = []
        seen = 0
        for other in sorted(self.needed[position], reverse=True):
            if not seen >> other & 1:
                kept.append(other)
            seen |= self.bits[other] | 1 << other
        return tuple(reversed(kept))


class _Host:
    """What arrives at one host and leaves it, in order."""

    def __init__(self, problem: MoveProblem, host: int) -> None:
        self.problem = problem
        self.lack: Ints = -problem.free[host].astype(np.int64)
        """[K] what departures must still free: all arrivals so far, less the room at the start,
        less what the last arrival waits for."""
        self.entered = np.zeros(problem.free.shape[1], dtype=np.bool_)
        self.awaited: list[int] = []
        """Departures for which the last arrival waits; each later one needs them, too."""
        self.departures: list[tuple[int, int]] = []
        """Position and unit of the others."""

    def arrive(self, position: int, unit: int, closed: _Closure) -> None:
        """Let the arrival wait for departures that suffice."""
        amounts = self.problem.amounts[unit]
        self.lack += amounts
        self.entered |= amounts > 0
        closed.needed[position].update(self.awaited)
        if self._enough():
            return
        implied = closed.through(position)
        for one in [one for one in self.departures if implied >> one[0] & 1]:
            self._await(one)
        while not self._enough():
            self._await(max(self.departures, key=self._use))
        closed.needed[position].update(self.awaited)

    def _enough(self) -> bool:
        return not ((self.lack > 0) & self.entered).any()

    def _use(self, departure: tuple[int, int]) -> tuple[int, int]:
        """How much of what is lacking a departure frees; of equal ones the earlier."""
        lack = np.where(self.entered, np.maximum(self.lack, 0), 0)
        return int(np.minimum(self.problem.amounts[departure[1]], lack).sum()), -departure[0]

    def _await(self, departure: tuple[int, int]) -> None:
        self.departures.remove(departure)
        self.awaited.append(departure[0])
        self.lack -= self.problem.amounts[departure[1]]


def _chain_fits(problem: MoveProblem, moves: Moves, needed: list[set[int]]) -> None:
    """Arrivals at a host wait for all before them there, unless each fits beside everything."""
    if problem.fits is None:
        return
    arrivals: dict[int, list[int]] = {}
    for unit, _, target in moves:
        arrivals.setdefault(target, []).append(unit)
    chained = set()
    for host, units in arrivals.items():
        there = {int(one) for one in np.flatnonzero(problem.start == host)} | set(units)
        if not all(problem.fits(unit, host, frozenset(there - {unit})) for unit in units):
            chained.add(host)
    before: dict[int, list[int]] = {}
    for position, (_, source, target) in enumerate(moves):
        if target in chained:
            needed[position].update(before.get(target, ()))
            before.setdefault(target, []).append(position)
        if source in chained:
            before.setdefault(source, []).append(position)


def _chain_rules(problem: MoveProblem, moves: Moves, needed: list[set[int]]) -> None:
    """Batches of each rule's moves wait for each other."""
    of_rule: dict[int, list[int]] = {}
    for position, (unit, _, _) in enumerate(moves):
        for number in problem.rules_of[unit]:
            if problem.meanwhile[number] is not None:
                of_rule.setdefault(number, []).append(position)
    for number, positions in of_rule.items():
        before: list[int] = []
        for batch in _batches(problem, number, [(one, moves[one]) for one in positions]):
            for position in batch:
                needed[position].update(before)
            before = batch


def _batches(
    problem: MoveProblem, number: int, moves: Sequence[tuple[int, tuple[int, int, int]]]
) -> list[list[int]]:
    """The positions of one rule's moves, in batches of which every combination holds."""
    hosts = dict(problem.placed)
    found: list[list[int]] = []
    batch: list[tuple[int, tuple[int, int, int]]] = []
    for one in moves:
        if batch and not (
            len(batch) < _LARGEST_BATCH and _independent(problem, number, hosts, [*batch, one])
        ):
            found.append([position for position, _ in batch])
            hosts.update({unit: target for _, (unit, _, target) in batch})
            batch = []
        batch.append(one)
    found.append([position for position, _ in batch])
    return found


def _independent(
    problem: MoveProblem,
    number: int,
    hosts: dict[int, int],
    batch: Sequence[tuple[int, tuple[int, int, int]]],
) -> bool:
    """Whether the rule holds for every combination of these moves, made or not."""
    limit = problem.meanwhile[number]
    units = [unit for _, (unit, _, _) in batch]
    if limit is None or len(set(units)) < len(units):
        return limit is None
    # Combinations without the last move were judged when it was not in the batch yet.
    *earlier, last = batch
    mixed = dict(hosts)
    mixed[last[1][0]] = last[1][2]
    for ends in product(*(((source, target)) for _, (_, source, target) in earlier)):
        mixed.update(zip(units, ends, strict=False))
        if problem.rules[number].amount(mixed) > limit:
            return False
    return True
