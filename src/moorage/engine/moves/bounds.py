"""What is proved without a search: the least cost of any plan, and that there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline
from moorage.engine.moves.problem import Stuck, StuckCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray

    from moorage.engine.moves.problem import MoveProblem, Rule

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]

_MOST_JUDGED: Final = 20_000
"""Hosts of units that are judged for the bound, of all broken rules together."""
_MOST_ARRIVALS: Final = 200
"""Units to be placed up to which departures that make room for them are counted."""


def lower_bound(problem: MoveProblem) -> int:
    """No plan costs less.

    Every unit on a host to be left moves; for the others that are to be placed units leave the
    hosts where they go, or are in broken rules: the larger of the two counts.
    """
    leaving = sum(int(problem.cost[unit]) for unit in problem.leaving)
    return leaving + max(_departures(problem), _broken(problem))


# Broken rules


def _broken(problem: MoveProblem) -> int:
    """Least cost of mending rules that have no unit in common, nor one that moves in any case."""
    given = {*problem.leaving, *problem.newcomers}
    broken = [
        number
        for number, (rule, now) in enumerate(zip(problem.rules, problem.amounts_now, strict=True))
        if now > rule.limit and given.isdisjoint(rule.units)
    ]
    trials = _Trials(problem, _MOST_JUDGED // max(len(broken), 1))
    worth = sorted((-trials.mending(number), number) for number in broken)
    found = 0
    counted: set[int] = set()
    for cost, number in worth:
        units = {unit for unit in problem.rules[number].units if problem.movable[unit]}
        if counted.isdisjoint(units):
            counted |= units
            found -= cost
    return found


class _Trials:
    """Tries every move of one unit in broken rules; of each rule so many hosts at most."""

    def __init__(self, problem: MoveProblem, most: int) -> None:
        self.problem = problem
        self.most = most
        self.hosts = dict(problem.placed)

    def mending(self, number: int) -> int:
        """Least cost of mending a rule: of one move that does it, or else of any two units."""
        problem, rule = self.problem, self.problem.rules[number]
        costs = sorted(
            (int(problem.cost[unit]), unit) for unit in rule.units if problem.movable[unit]
        )
        left = self.most
        for cost, unit in costs:
            if len(costs) > 1 and cost >= costs[0][0] + costs[1][0]:
                break
            hosts = self._kinds(rule, unit)
            left -= len(hosts)
            if left < 0 or deadline.passed():
                return costs[0][0]
            if self._mends(rule, unit, hosts):
                return cost
        return sum(cost for cost, _ in costs[:2])

    def _kinds(self, rule: Rule, unit: int) -> list[int]:
        """One host of each kind that the unit may enter, room or not."""
        rows = np.flatnonzero(self.problem.entries[self.problem.mask_of[unit]])
        _, first = np.unique(rule.alike(unit, self.hosts)[rows], return_index=True)
        found: list[int] = rows[first].tolist()
        return found

    def _mends(self, rule: Rule, unit: int, hosts: Collection[int]) -> bool:
        """Whether the rule holds with this unit alone moved, to any of these hosts."""
        before = self.hosts[unit]
        found = False
        for host in hosts:
            self.hosts[unit] = host
            found = rule.amount(self.hosts) <= rule.limit
            if found:
                break
        self.hosts[unit] = before
        return found


# Room for what is to be placed


def _departures(problem: MoveProblem) -> int:
    """Least cost of the departures without which what is to be placed has no room."""
    arrivals = [*problem.leaving, *problem.newcomers]
    if not arrivals or len(arrivals) > _MOST_ARRIVALS:
        return 0
    hosts = _MovableByHost(problem)
    return max(hosts.cost_of(*some) for some in _selections(problem.amounts[arrivals]))


def _selections(amounts: Ints) -> Iterator[tuple[int, Ints]]:
    """How many units take at least so much of each class: for several choices of units."""
    seen: set[tuple[int, ...]] = set()
    for column in range(amounts.shape[1]):
        for value in np.unique(amounts[:, column]):
            some = amounts[amounts[:, column] >= value]
            key = (len(some), *some.min(axis=0).tolist())
            if key not in seen:
                seen.add(key)
                yield len(some), some.min(axis=0)


class _MovableByHost:
    """What departures free on each host at most."""

    def __init__(self, problem: MoveProblem) -> None:
        self.rows = np.flatnonzero(~problem.leave)
        self.room = problem.free[self.rows]
        index = np.full(len(problem.free), -1, dtype=np.int64)
        index[self.rows] = np.arange(len(self.rows))
        units = np.flatnonzero(problem.movable & (problem.start >= 0))
        hosts = index[problem.start[units]]
        units, hosts = units[hosts >= 0], hosts[hosts >= 0]
        most = int(np.bincount(hosts).max(initial=0)) if len(hosts) else 0
        classes = problem.free.shape[1]
        self.freed = np.zeros((len(self.rows), most + 1, classes), dtype=np.int64)
        """[n, d, K] the most that d departures free of each class."""
        for column in range(classes):
            order = np.lexsort((-problem.amounts[units, column], hosts))
            place = _numbers(hosts[order])
            self.freed[hosts[order], place + 1, column] = problem.amounts[units[order], column]
        self.freed.cumsum(axis=1, out=self.freed)
        self.price = np.full(len(self.rows), np.inf)
        """[n] the least cost of a departure."""
        np.minimum.at(self.price, hosts, problem.cost[units])

    def cost_of(self, count: int, amounts: Ints) -> int:
        """Least cost of departures after which so many such units have room."""
        slopes: list[Floats] = []
        before: list[Floats] = []
        for number in range(1, count + 1):
            cost = self._cost_each(number, amounts)
            if not np.isfinite(cost).any():
                break
            before.append(cost)
            if not cost.any() and len(cost) >= count and number == 1:
                return 0
        if not before:
            return 0
        slopes = _hull_slopes(np.array(before))
        every = np.sort(np.concatenate(slopes))
        if len(every) < count:
            return 0
        return int(np.ceil(every[:count].sum() - 1e-6))

    def _cost_each(self, number: int, amounts: Ints) -> Floats:
        """[n] least cost of the departures after which a host has room for so many units."""
        lack = np.where(amounts > 0, number * amounts - self.room, 0)
        needed = (self.freed < lack[:, None, :]).sum(axis=1).max(axis=1, initial=0)
        found = needed * np.where(needed > 0, self.price, 0.0)
        found[needed >= self.freed.shape[1]] = np.inf
        return np.asarray(found, dtype=np.float64)


def _numbers(sorted_hosts: Ints) -> Ints:
    """[n] the position of each entry among the entries of its host."""
    first = np.searchsorted(sorted_hosts, sorted_hosts)
    found: Ints = np.arange(len(sorted_hosts)) - first
    return found


def _hull_slopes(costs: Floats) -> list[Floats]:
    """Of costs [j, n] of j + 1 units on host n: the rises of the greatest convex function below."""
    found: list[Floats] = []
    for column in {tuple(row) for row in costs.T.tolist()}:
        count = int((np.array(column) == costs.T).all(axis=1).sum())
        slopes = _convex(column)
        found.append(np.tile(np.array(slopes), count))
    return found


def _convex(costs: Collection[float]) -> list[float]:
    """The rises of the greatest convex function through 0 that exceeds no cost."""
    points = [0.0, *costs]
    slopes: list[float] = []
    at = 0
    while at + 1 < len(points):
        rises = [
            ((points[to] - points[at]) / (to - at), -to)
            for to in range(at + 1, len(points))
            if points[to] < np.inf
        ]
        if not rises:
            break
        rise, to = min(rises)
        slopes += [rise] * (-to - at)
        at = -to
    return slopes


# Proofs that there is no plan


def impossible(problem: MoveProblem) -> tuple[Stuck, ...]:
    """Units for which it is proved that no plan moves or places them; none: nothing is proved."""
    found = [Stuck(unit, StuckCode.PINNED) for unit in problem.leaving if not problem.movable[unit]]
    most = most_room(problem)
    known: dict[tuple[int, ...], bool] = {}
    for unit in (*problem.leaving, *problem.newcomers):
        amounts = problem.amounts[unit]
        kind = (int(problem.mask_of[unit]), *amounts.tolist())
        if kind not in known:
            enough = ((most >= amounts) | (amounts == 0)).all(axis=1)
            known[kind] = bool((problem.entries[problem.mask_of[unit]] & enough).any())
        if not known[kind]:
            found.append(Stuck(unit, StuckCode.NO_ROOM))
    for rule, now in zip(problem.rules, problem.amounts_now, strict=True):
        free = [one for one in rule.units if problem.movable[one] or problem.start[one] < 0]
        if now > rule.limit and not free:
            found += [Stuck(unit, StuckCode.POLICY, (rule.name,)) for unit in rule.units]
    return tuple(found)


def overfull(problem: MoveProblem) -> bool:
    """Whether it is proved by counting that not all units have room together."""
    rows = np.flatnonzero(~problem.leave)
    arrivals = [*problem.leaving, *problem.newcomers]
    if not arrivals:
        return False
    most = most_room(problem)[rows]
    for count, amounts in _selections(problem.amounts[arrivals]):
        used = amounts > 0
        if used.any():
            each = np.maximum(most[:, used], 0) // amounts[used]
            if each.min(axis=1).sum() < count:
                return True
    # What was there at the start may stay, even where it exceeds the room.
    movers = np.flatnonzero(problem.movable & (problem.start >= 0))
    stay = np.zeros_like(problem.free)
    np.add.at(stay, problem.start[movers], problem.amounts[movers])
    wanted = stay[rows].sum(axis=0) + problem.amounts[arrivals].sum(axis=0)
    return bool((np.maximum(most, stay[rows]).sum(axis=0) < wanted).any())


def most_room(problem: MoveProblem) -> Ints:
    """[H, K] room of each host if all units that can move were elsewhere."""
    found = problem.free.astype(np.int64, copy=True)
    movers = np.flatnonzero(problem.movable & (problem.start >= 0))
    np.add.at(found, problem.start[movers], problem.amounts[movers])
    return found
