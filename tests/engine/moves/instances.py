"""Random small problems of moves."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from tests.engine.moves.rules import DomainRule

from moorage.engine.moves.problem import MoveProblem

KINDS = ("apart", "together", "skew", "domains", "at-most")


def random_problem(seed: int) -> MoveProblem:
    """A problem in which there is something to do, of three quarters with a known end."""
    dice = random.Random(seed)
    draw = _draw if dice.random() < 0.25 else _draw_backwards
    found = draw(dice)
    while not _something_to_do(found):
        found = draw(dice)
    return found


def _something_to_do(problem: MoveProblem) -> bool:
    """Whether units leave, rules are broken, or newcomers have no room as it is."""
    fits = [
        ((row >= amounts) | (amounts == 0)).all()
        for amounts in problem.amounts[problem.start < 0]
        for row in problem.free
    ]
    return bool(
        problem.leaving
        or (fits and not all(fits))
        or any(
            now > rule.limit for rule, now in zip(problem.rules, problem.amounts_now, strict=True)
        )
    )


def _draw(dice: random.Random) -> MoveProblem:
    """2 to 6 hosts, 1 to 3 classes, 2 to 6 units, of which some leave, come, or break rules."""
    hosts, classes, units = dice.randint(2, 6), dice.randint(1, 3), dice.randint(2, 6)
    leaves, comes, rules = dice.choice(
        ((0.3, 0.0, 0), (0.3, 0.0, 1), (0.0, 0.3, 0), (0.0, 0.3, 1), (0.0, 0.0, 2), (0.2, 0.2, 2))
    )
    amounts = np.array(
        [[dice.choice((0, 1, 1, 2, 3)) for _ in range(classes)] for _ in range(units)],
        dtype=np.int64,
    )
    start = np.array(
        [-1 if dice.random() < comes else dice.randrange(hosts) for _ in range(units)],
        dtype=np.int32,
    )
    most = dice.choice((1, 1, 2, 3))
    free = np.array(
        [[dice.randint(0, most) for _ in range(classes)] for _ in range(hosts)], dtype=np.int64
    )
    for row in free:
        if dice.random() < 0.05:
            row[dice.randrange(classes)] = -dice.randint(1, 3)
    masks = np.array([[dice.random() < 0.8 for _ in range(hosts)] for _ in range(3)])
    masks[0] = True
    pinned = dice.choice((0.0, 0.0, 0.1, 0.3))
    return MoveProblem(
        free=free,
        amounts=amounts,
        start=start,
        cost=np.array([dice.choice((1, 1, 1, 2, 5)) for _ in range(units)], dtype=np.int64),
        movable=np.array([dice.random() >= pinned for _ in range(units)]),
        mask_of=np.array([dice.choice((0, 0, 1, 2)) for _ in range(units)], dtype=np.int32),
        masks=masks,
        leave=np.array([dice.random() < leaves for _ in range(hosts)]),
        rules=tuple(_random_rule(dice, number, start, hosts) for number in range(rules)),
        fits=_random_fits(dice, units, hosts),
    )


def _draw_backwards(dice: random.Random) -> MoveProblem:
    """As `_draw`, of which an end is drawn first; there may be no order of moves to it."""
    problem = _draw(dice)
    hosts, units = len(problem.free), len(problem.start)
    used = [host for host in range(hosts) if not problem.leave[host]] or [0]
    stays = dice.choice((0.2, 0.5, 0.7))
    end = [
        int(host) if (dice.random() < stays and host in used) else dice.choice(used)
        for host in problem.start
    ]
    start = [
        host if problem.movable[unit] or host < 0 else end[unit]
        for unit, host in enumerate(problem.start.tolist())
    ]
    room = np.array(
        [[dice.choice((0, 0, 1, 2)) for _ in row] for row in problem.free], dtype=np.int64
    )
    masks = problem.masks.copy()
    for unit in range(units):
        room[end[unit]] += problem.amounts[unit]
        masks[problem.mask_of[unit], end[unit]] = True
    for unit, host in enumerate(start):
        if host >= 0:
            room[host] -= problem.amounts[unit]
    leave = problem.leave.copy()
    leave[end] = False
    placed = dict(enumerate(end))
    return replace(
        problem,
        free=room,
        start=np.array(start, dtype=np.int32),
        masks=masks,
        leave=leave,
        rules=tuple(
            replace(rule, limit=rule.amount(placed))
            for rule in problem.rules
            if isinstance(rule, DomainRule)
        ),
    )


def _random_rule(dice: random.Random, number: int, start: np.ndarray, hosts: int) -> DomainRule:
    domains = tuple(dice.choice((range(hosts), [dice.randrange(3) for _ in range(hosts)])))
    units = range(len(start))
    rule = DomainRule(
        name=f"rule{number}",
        kind=dice.choice(KINDS),
        units=tuple(sorted(dice.sample(units, dice.randint(2, min(len(units), 4))))),
        domain_of=domains,
        bound=dice.randint(1, 2),
    )
    now = rule.amount({unit: host for unit, host in enumerate(start.tolist()) if host >= 0})
    return DomainRule(
        rule.name,
        rule.kind,
        rule.units,
        rule.domain_of,
        rule.bound,
        meanwhile=dice.choice((None, None, 0, now, now + 1)),
        limit=dice.choice((0, 0, now, max(now - 1, 0))),
    )


class SlotsOfOneKind:
    """Each host has so many devices, of which some units take one; rooms do not count them."""

    def __init__(self, takers: frozenset[int], slots: tuple[int, ...]) -> None:
        self.takers = takers
        self.slots = slots

    def __call__(self, unit: int, host: int, there: object) -> bool:
        assert isinstance(there, frozenset)
        assert unit not in there
        return unit not in self.takers or len(self.takers & there) < self.slots[host]


def _random_fits(dice: random.Random, units: int, hosts: int) -> SlotsOfOneKind | None:
    if dice.random() < 0.85:
        return None
    takers = frozenset(unit for unit in range(units) if dice.random() < 0.6)
    return SlotsOfOneKind(takers, tuple(dice.randint(0, 2) for _ in range(hosts)))
