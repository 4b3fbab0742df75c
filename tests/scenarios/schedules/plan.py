"""A schedule: a fleet and the steps that befall it, made from a seed.

A step names what it is about by a number that is taken modulo what is there, so any step may be
left out and the rest is a schedule still.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from tests.scenarios.schedules import steps

from moorage.domain.leases import Yielding
from moorage.domain.period import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.period import Duration

SCALES: Final = (SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY)


@dataclass(frozen=True)
class Host:
    """What a host has."""

    vcpu: int
    ratio: float
    memory: int


@dataclass(frozen=True)
class Plan:
    """Repeatable: the same in every run."""

    seed: int
    hosts: tuple[Host, ...]
    lifetime: Duration | None
    """Of servers that declare no end."""
    steps: tuple[steps.Step, ...]


def plan(seed: int, *, calm: bool | None = None, length: int | None = None) -> Plan:
    """The schedule of a seed.

    Args:
        seed: which.
        calm: no capacity is lost, the clock never steps back, and who ends servers is always
            there; None: two of three seeds are.
        length: in steps; None: as the dice fall.
    """
    dice = Random(seed)
    calm = seed % 3 > 0 if calm is None else calm
    hosts = tuple(
        Host(dice.randint(2, 8), dice.choice((1.0, 1.0, 1.5, 2.0)), dice.randint(4, 16))
        for _ in range(dice.randint(1, 4))
    )
    lifetime = dice.choice((None, None, None, 10 * DAY, HOUR))
    kinds, weights = zip(*(CALM if calm else {**CALM, **ROUGH}).items(), strict=True)
    length = dice.randint(15, 60) if length is None else length
    made = dice.choices(kinds, weights, k=length)
    return Plan(seed, hosts, lifetime, tuple(_MADE[kind](dice) for kind in made))


CALM: Final = {
    steps.Grant: 18,
    steps.Wait: 26,
    steps.Change: 10,
    steps.Cancel: 4,
    steps.Place: 10,
    steps.Claim: 12,
    steps.Finish: 9,
    steps.Boot: 16,
    steps.Draw: 14,
    steps.Delete: 7,
    steps.Move: 6,
    steps.Release: 3,
    steps.Forget: 3,
}
ROUGH: Final = {
    steps.Resize: 6,
    steps.Disable: 3,
    steps.Away: 4,
    steps.StepBack: 3,
}


def _span(dice: Random) -> Duration:
    """Some time, from seconds to weeks."""
    return dice.choice(SCALES) * dice.randint(1, 9)


def _rounding(dice: Random) -> Duration:
    """To what instants are rounded, so that many touch."""
    return dice.choice((1, HOUR, HOUR, DAY))


def _grant(dice: Random) -> steps.Grant:
    length = _span(dice)
    return steps.Grant(
        ahead=0 if dice.random() < 0.2 else _span(dice),
        length=length,
        rounding=_rounding(dice),
        vcpu=dice.randint(1, 4),
        memory=dice.randint(1, 3),
        members=dice.choice((1, 1, 2, 2, 3, 4)),
        apart=dice.random() < 0.4,
        lead=dice.choice((0, 0, 0, 10 * MINUTE, HOUR)),
        cleaning=dice.choice((0, 0, 0, 10 * MINUTE, HOUR)),
        expiry=dice.choice((None, None, None, length // 2 or None)),
        actions=dice.choice(steps.ACTIONS),
        before=dice.choice((frozenset(Yielding), frozenset(Yielding), frozenset())),
    )


def _ends(dice: Random) -> Duration | None:
    return None if dice.random() < 0.4 else _span(dice)


_MADE: Final[dict[type[steps.Step], Callable[[Random], steps.Step]]] = {
    steps.Grant: _grant,
    steps.Wait: lambda dice: steps.Wait(_span(dice) + dice.choice((0, 0, dice.randint(0, HOUR)))),
    steps.Change: lambda dice: steps.Change(
        dice.randrange(100), dice.choice(steps.CHANGES), _span(dice), _rounding(dice)
    ),
    steps.Cancel: lambda dice: steps.Cancel(dice.randrange(100)),
    steps.Place: lambda dice: steps.Place(
        vcpu=dice.randint(1, 4),
        memory=dice.randint(1, 3),
        members=dice.randint(1, 3),
        ends=_ends(dice),
        rounding=_rounding(dice),
        preemptible=dice.random() < 0.5,
    ),
    steps.Claim: lambda dice: steps.Claim(
        dice.randrange(100), dice.choice((5 * MINUTE, HOUR, DAY))
    ),
    steps.Finish: lambda dice: steps.Finish(dice.randrange(100), good=dice.random() < 0.8),
    steps.Boot: lambda dice: steps.Boot(
        vcpu=dice.randint(1, 4),
        memory=dice.randint(1, 3),
        hours=dice.choice((None, 1, 2, 5, 24, 100)),
        preemptible=dice.random() < 0.35,
        pick=dice.randrange(100),
    ),
    steps.Draw: lambda dice: steps.Draw(dice.randrange(100), dice.randrange(100)),
    steps.Delete: lambda dice: steps.Delete(dice.randrange(100)),
    steps.Move: lambda dice: steps.Move(
        dice.randrange(100), dice.randrange(100), back=dice.random() < 0.3
    ),
    steps.Release: lambda dice: steps.Release(dice.randrange(100)),
    steps.Forget: lambda dice: steps.Forget(dice.randrange(100)),
    steps.Resize: lambda dice: steps.Resize(dice.randrange(100), dice.randint(0, 8)),
    steps.Disable: lambda dice: steps.Disable(dice.randrange(100)),
    steps.Away: lambda dice: steps.Away(dice.choice((MINUTE, 10 * MINUTE, HOUR, 4 * HOUR))),
    steps.StepBack: lambda dice: steps.StepBack(
        dice.choice((1, SECOND, MINUTE, 20 * MINUTE, HOUR))
    ),
}
