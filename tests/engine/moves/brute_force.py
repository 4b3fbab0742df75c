"""Every order of moves of a small problem, and every overlap of a plan; shares no code with it.

States are tuples of host rows, one for each unit, -1 for newcomers. Everything is counted anew for
each state.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import permutations, product

from moorage.engine.moves.problem import MovePlan, MoveProblem

Hosts = tuple[int, ...]


class BruteForce:
    def __init__(self, problem: MoveProblem) -> None:
        self.problem = problem
        self.start: Hosts = tuple(problem.start.tolist())
        self.hosts = range(len(problem.free))
        self.classes = range(problem.free.shape[1])
        self.free = problem.free.tolist()
        self.amounts = problem.amounts.tolist()
        self.cost = problem.cost.tolist()
        self.movable = problem.movable.tolist()
        self.leave = problem.leave.tolist()
        self.enters = [
            [
                bool(problem.masks[problem.mask_of[unit]][host]) and not self.leave[host]
                for host in self.hosts
            ]
            for unit in range(len(self.start))
        ]
        self.memory: dict[tuple[int, Hosts], int] = {}
        self.ceilings = [
            None if rule.meanwhile is None else max(rule.meanwhile, self.amount(number, self.start))
            for number, rule in enumerate(problem.rules)
        ]

    def amount(self, number: int, hosts: Hosts) -> int:
        key = (number, tuple(hosts[unit] for unit in self.problem.rules[number].units))
        if key not in self.memory:
            placed = {unit: host for unit, host in enumerate(hosts) if host >= 0}
            self.memory[key] = self.problem.rules[number].amount(placed)
        return self.memory[key]

    def room(self, host: int, column: int, takers: list[int]) -> int:
        """Room of the host where these units take something, some of them since the start."""
        present = [unit for unit, at in enumerate(self.start) if at == host]
        capacity = self.free[host][column] + sum(self.amounts[unit][column] for unit in present)
        return int(capacity - sum(self.amounts[unit][column] for unit in takers))

    def can_enter(self, unit: int, host: int, takers: list[int]) -> bool:
        """Whether a unit can take its part of a host beside these."""
        if not self.enters[unit][host]:
            return False
        fits = self.problem.fits
        if fits is not None and not fits(unit, host, frozenset(takers)):
            return False
        return all(
            self.amounts[unit][column] == 0 or self.room(host, column, [*takers, unit]) >= 0
            for column in self.classes
        )

    def holds_meanwhile(self, hosts: Hosts) -> bool:
        return all(
            ceiling is None or self.amount(number, hosts) <= ceiling
            for number, ceiling in enumerate(self.ceilings)
        )

    def moves(self, hosts: Hosts) -> Iterator[tuple[int, Hosts]]:
        """Each unit that can move now, and the state after."""
        for unit, source in enumerate(hosts):
            if source < 0 or not self.movable[unit]:
                continue
            for target in self.hosts:
                takers = [one for one, host in enumerate(hosts) if host == target]
                if target != source and self.can_enter(unit, target, takers):
                    after = (*hosts[:unit], target, *hosts[unit + 1 :])
                    if self.holds_meanwhile(after):
                        yield unit, after

    def ends(self, hosts: Hosts) -> bool:
        """Whether all newcomers can be placed so that everything holds at the end."""
        if any(host >= 0 and self.leave[host] for host in hosts):
            return False
        newcomers = [unit for unit, host in enumerate(self.start) if host < 0]
        return any(
            self.valid_end(hosts, newcomers, places)
            for places in product(self.hosts, repeat=len(newcomers))
        )

    def valid_end(self, hosts: Hosts, newcomers: list[int], places: tuple[int, ...]) -> bool:
        after = list(hosts)
        for unit, place in zip(newcomers, places, strict=True):
            if not self.enters[unit][place]:
                return False
            after[unit] = place
        if any(
            self.amount(one, tuple(after)) > rule.limit
            for one, rule in enumerate(self.problem.rules)
        ):
            return False
        return any(
            self.arrives(hosts, order)
            for order in permutations(list(zip(newcomers, places, strict=True)))
        )

    def arrives(self, hosts: Hosts, order: tuple[tuple[int, int], ...]) -> bool:
        after = list(hosts)
        for unit, place in order:
            if not self.can_enter(unit, place, [u for u, at in enumerate(after) if at == place]):
                return False
            after[unit] = place
        return True

    def optimum(self) -> int | None:
        """Least cost of any order of moves; None: there is none."""
        best = {self.start: 0}
        queue = [(0, self.start)]
        while queue:
            cost, hosts = heapq.heappop(queue)
            if cost > best[hosts]:
                continue
            if self.ends(hosts):
                return cost
            for unit, after in self.moves(hosts):
                there = cost + self.cost[unit]
                if there < best.get(after, there + 1):
                    best[after] = there
                    heapq.heappush(queue, (there, after))
        return None

    def check(self, plan: MovePlan, *, partial: bool = False) -> None:
        """Assert that each order and overlap that the plan permits keeps everything."""
        steps = plan.steps
        for position, step in enumerate(steps):
            assert step.source != step.target
            assert self.movable[step.unit]
            assert all(0 <= other < position for other in step.after)
        assert plan.cost == sum(self.cost[step.unit] for step in steps)
        self.check_from(plan, frozenset(), set())
        last = list(self.start)
        for step in steps:
            last[step.unit] = step.target
        newcomers = [unit for unit, host in enumerate(self.start) if host < 0]
        if partial:
            assert plan.hosts.tolist() == last
            for number, rule in enumerate(self.problem.rules):
                now = self.amount(number, self.start)
                assert self.amount(number, tuple(last)) <= max(rule.limit, now)
            return
        places = tuple(int(plan.hosts[unit]) for unit in newcomers)
        assert not any(host >= 0 and self.leave[host] for host in last)
        assert self.valid_end(tuple(last), newcomers, places)
        assert all(plan.hosts[unit] == host for unit, host in enumerate(last) if host >= 0)

    def check_from(self, plan: MovePlan, done: frozenset[int], seen: set[frozenset[int]]) -> None:
        """Judge the state where these moves are done and all that may run do; go on from there."""
        if done in seen:
            return
        seen.add(done)
        hosts = list(self.start)
        for position in sorted(done):
            step = plan.steps[position]
            assert hosts[step.unit] == step.source
            hosts[step.unit] = step.target
        if done:
            assert self.holds_meanwhile(tuple(hosts))
        ready = [
            position
            for position, step in enumerate(plan.steps)
            if position not in done and done.issuperset(step.after)
        ]
        for size in range(1 << len(ready)):
            self.check_running(
                plan, hosts, [one for bit, one in enumerate(ready) if size >> bit & 1]
            )
        for position in ready:
            self.check_from(plan, done | {position}, seen)

    def check_running(self, plan: MovePlan, hosts: list[int], running: list[int]) -> None:
        """All these moves run: their units take room on both ends, begun in any order."""
        units = [plan.steps[one].unit for one in running]
        assert len(set(units)) == len(units)
        for one in running:
            step = plan.steps[one]
            takers = [unit for unit, host in enumerate(hosts) if host == step.target]
            takers += [
                plan.steps[other].unit
                for other in running
                if other != one and plan.steps[other].target == step.target
            ]
            assert self.can_enter(step.unit, step.target, takers), (one, running)
