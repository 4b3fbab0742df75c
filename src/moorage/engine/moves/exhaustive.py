"""Search through all states of a small problem: the plan of least cost, or a proof of none.

A* over the hosts of the units that can move; what is left to do costs at least the moves of the
units that still stand on hosts to be left.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline
from moorage.engine.moves.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.engine.moves.problem import MoveProblem

    Hosts: TypeAlias = tuple[int, ...]

MOST_STATES: Final = 100_000
"""States that are expanded at most."""
_LARGEST: Final = 2_000_000
"""Number of conceivable states up to which the search is worth beginning."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result: moves of least cost, or none."""

    moves: tuple[tuple[int, int, int], ...] | None
    newcomers: tuple[tuple[int, int], ...] = ()
    """Each newcomer and its host."""
    cost: int = 0
    complete: bool = True
    """Whether the result is proved."""
    bound: int = 0
    """No plan costs less."""


UNDECIDED: Final = Found(None, complete=False)
"""The result of no search."""


def is_small(problem: MoveProblem) -> bool:
    """Whether the number of states is small enough to search them all."""
    hosts = len(problem.free)
    movers = int((problem.movable & (problem.start >= 0)).sum())
    return bool(hosts ** (movers + len(problem.newcomers)) <= _LARGEST)


def search(problem: MoveProblem, *, at_most: int | None = None, most: int = MOST_STATES) -> Found:
    """The plan of least cost; `at_most`: a cost of which a plan is known already.

    After `most` states the search ends without a result.
    """
    return _Search(problem).run(at_most, most)


class _Search:
    def __init__(self, problem: MoveProblem) -> None:
        self.problem = problem
        self.movers = [
            unit for unit in np.flatnonzero(problem.movable).tolist() if problem.start[unit] >= 0
        ]
        self.state = State(problem)
        self.costs = [int(problem.cost[unit]) for unit in self.movers]
        self.leave = problem.leave.tolist()
        self.amounts: dict[tuple[int, Hosts], int] = {}
        """(rule, the hosts of its units) -> its amount."""

    def run(self, at_most: int | None, most: int) -> Found:
        """See `search`."""
        if any(not self.problem.movable[unit] for unit in self.problem.leaving):
            return Found(None)
        start = tuple(int(self.problem.start[unit]) for unit in self.movers)
        best: dict[Hosts, int] = {start: 0}
        came: dict[Hosts, tuple[Hosts, int]] = {}
        number = count()
        queue = [(self._left(start), next(number), 0, start)]
        expanded = bound = 0
        while queue:
            bound, _, cost, hosts = heapq.heappop(queue)
            if cost > best[hosts]:
                continue
            if at_most is not None and bound >= at_most:
                return Found(None, complete=False, bound=at_most)
            if expanded >= most or deadline.passed():
                return Found(None, complete=False, bound=bound)
            expanded += 1
            self._go_to(hosts)
            newcomers = self._end()
            if newcomers is not None:
                return Found(self._path(came, hosts), newcomers, cost, bound=cost)
            for index, host in self._nexts(hosts):
                after = (*hosts[:index], host, *hosts[index + 1 :])
                there = cost + self.costs[index]
                if there < best.get(after, there + 1):
                    best[after] = there
                    came[after] = (hosts, index)
                    heapq.heappush(queue, (there + self._left(after), next(number), there, after))
        return Found(None, bound=bound)

    def _left(self, hosts: Hosts) -> int:
        """Least cost of what is left to do."""
        return sum(cost for cost, host in zip(self.costs, hosts, strict=True) if self.leave[host])

    def _go_to(self, hosts: Hosts) -> None:
        for unit, host in zip(self.movers, hosts, strict=True):
            if self.state.hosts[unit] != host:
                self.state.move(unit, host)

    def _nexts(self, hosts: Hosts) -> Iterator[tuple[int, int]]:
        """Each possible move: the position of the unit, and the host."""
        for index, unit in enumerate(self.movers):
            rows = self.state.enterable(unit)
            for host in self.state.fitting(unit, rows):
                if self._holds_meanwhile(unit, hosts[index], host):
                    yield index, host

    def _holds_meanwhile(self, unit: int, source: int, host: int) -> bool:
        self.state.hosts[unit] = host
        found = all(
            (limit := self.problem.meanwhile[number]) is None or self._amount(number) <= limit
            for number in self.problem.rules_of[unit]
        )
        self.state.hosts[unit] = source
        return found

    def _amount(self, number: int) -> int:
        rule = self.problem.rules[number]
        key = (number, tuple(self.state.hosts.get(unit, -1) for unit in rule.units))
        if key not in self.amounts:
            self.amounts[key] = rule.amount(self.state.hosts)
        return self.amounts[key]

    def _end(self) -> tuple[tuple[int, int], ...] | None:
        """The newcomers' hosts if this can be the end; None: it cannot."""
        if any(self.leave[self.state.hosts[unit]] for unit in self.movers):
            return None
        return self._place(self.problem.newcomers)

    def _place(self, newcomers: tuple[int, ...]) -> tuple[tuple[int, int], ...] | None:
        if not newcomers:
            every = range(len(self.problem.rules))
            holds = all(self._amount(one) <= self.problem.rules[one].limit for one in every)
            return () if holds else None
        # Without a further check it does not matter who enters first.
        for unit in newcomers if self.problem.fits is not None else newcomers[:1]:
            others = tuple(one for one in newcomers if one != unit)
            for host in self.state.fitting(unit, self.state.enterable(unit)):
                self.state.put(unit, host)
                rest = self._place(others)
                self.state.remove(unit)
                if rest is not None:
                    return ((unit, host), *rest)
        return None

    def _path(
        self, came: dict[Hosts, tuple[Hosts, int]], hosts: Hosts
    ) -> tuple[tuple[int, int, int], ...]:
        """The moves that led to these hosts."""
        found = []
        while hosts in came:
            before, index = came[hosts]
            found.append((self.movers[index], before[index], hosts[index]))
            hosts = before
        return tuple(reversed(found))
