"""Carries plans out in many ways and judges every state; shares nothing with the engine.

Each time all moves that need not wait are begun at once, and end in random order: no number of
moves at a time has states that this cannot reach.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.engine.moves.problem import MovePlan, MoveProblem


class Wrong(Exception):
    """A plan breaks something."""


def check(problem: MoveProblem, plan: MovePlan, *, runs: int = 5, seed: int = 0) -> None:
    """Carry the plan out so many times.

    Raises:
        Wrong: a state breaks something, or the end is not what is wanted.
    """
    dice = random.Random(seed)
    for number in range(runs):
        _Run(problem, plan).carry_out(dice, at_once=number > 0)


class _Run:
    def __init__(self, problem: MoveProblem, plan: MovePlan) -> None:
        self.problem, self.plan = problem, plan
        self.at = {unit: int(host) for unit, host in enumerate(problem.start) if host >= 0}
        self.free = [[int(one) for one in row] for row in problem.free]
        self.ceilings: dict[int, int] = {}
        self.rules_of: dict[int, list[int]] = {}
        for number, rule in enumerate(problem.rules):
            for unit in rule.units:
                self.rules_of.setdefault(unit, []).append(number)
            if rule.meanwhile is not None:
                self.ceilings[number] = max(rule.meanwhile, rule.amount(self.at))
        self.first = [rule.amount(self.at) for rule in problem.rules]

    def carry_out(self, dice: random.Random, *, at_once: bool) -> None:
        """Begin moves as early as permitted, or one after the other."""
        steps = self.plan.steps
        left = [set(step.after) for step in steps]
        followers: dict[int, list[int]] = {}
        for number, step in enumerate(steps):
            for other in step.after:
                followers.setdefault(other, []).append(number)
        if not at_once:
            for number in range(len(steps)):
                self.begin(number)
                self.end(number)
        else:
            ready = [number for number, some in enumerate(left) if not some]
            for number in ready:
                self.begin(number)
            while ready:
                number = ready.pop(dice.randrange(len(ready)))
                self.end(number)
                for other in followers.get(number, ()):
                    left[other].discard(number)
                    if not left[other]:
                        self.begin(other)
                        ready.append(other)
        self.judge_end()

    def begin(self, number: int) -> None:
        """Take room on the target."""
        problem, step = self.problem, self.plan.steps[number]
        if self.at.get(step.unit) != step.source or not problem.movable[step.unit]:
            raise Wrong(f"{number}: the unit is not at its source")
        if problem.leave[step.target] or not problem.masks[problem.mask_of[step.unit], step.target]:
            raise Wrong(f"{number}: the target is not permitted")
        self.take(step.unit, step.target, number)

    def take(self, unit: int, host: int, number: int) -> None:
        """Take room of a host."""
        for column, amount in enumerate(self.problem.amounts[unit].tolist()):
            self.free[host][column] -= amount
            if amount and self.free[host][column] < 0:
                raise Wrong(f"{number}: host {host} is over-full")

    def end(self, number: int) -> None:
        """Free the source, and judge the rules."""
        step = self.plan.steps[number]
        for column, amount in enumerate(self.problem.amounts[step.unit].tolist()):
            self.free[step.source][column] += amount
        self.at[step.unit] = step.target
        for one in self.rules_of.get(step.unit, ()):
            ceiling = self.ceilings.get(one)
            if ceiling is not None and self.problem.rules[one].amount(self.at) > ceiling:
                raise Wrong(f"{number}: rule {self.problem.rules[one].name} is broken")

    def judge_end(self) -> None:
        """Place the newcomers, and judge all."""
        problem, plan = self.problem, self.plan
        for unit, host in enumerate(problem.start.tolist()):
            if host >= 0:
                continue
            place = int(plan.hosts[unit])
            if place < 0 or problem.leave[place] or not problem.masks[problem.mask_of[unit], place]:
                raise Wrong(f"newcomer {unit} has no permitted place")
            self.take(unit, place, -1)
            self.at[unit] = place
        if any(problem.leave[host] for host in self.at.values()):
            raise Wrong("a host that is to be left is not empty")
        if any(self.at[unit] != int(host) for unit, host in enumerate(plan.hosts)):
            raise Wrong("the moves do not lead to the hosts at the end")
        for rule in problem.rules:
            if rule.amount(self.at) > rule.limit:
                raise Wrong(f"at the end rule {rule.name} is broken")
        if plan.cost != sum(int(problem.cost[step.unit]) for step in plan.steps):
            raise Wrong("the cost is another one")


def widest(plan: MovePlan) -> int:
    """The largest number of moves that may run at the same time, if all take equally long."""
    level: list[int] = []
    for step in plan.steps:
        level.append(1 + max((level[one] for one in step.after), default=0))
    return max(_counts(level), default=0)


def _counts(level: Iterable[int]) -> Iterable[int]:
    return Counter(level).values()
