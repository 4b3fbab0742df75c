"""What is asked of the cloud in a month, made from a seed: the same for every way of running it.

Leases: groups of four to twenty-four servers for six hours to four days, asked for one to twenty
days ahead. The rest are servers asked for when they are wanted, whose lives are heavy-tailed
(log-normal: half end within a day, the mean is four). Each has an owner who can say
after how many hours it is gone at the latest, and who is 1.2 to 3 times too careful.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from moorage.domain.period import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.period import Duration

TICK: Final = 5 * MINUTE
"""What happens in the month happens at multiples of it."""
HOST_VCPU: Final = 64
_SIZES: Final = (8, 8, 16, 16, 32)
"""VCPU of servers; half of what is leased are servers of 16."""
_MEDIAN_LIFE: Final = 24 * HOUR
_MEAN_LIFE: Final = 96 * HOUR
_LONGEST_LIFE: Final = 20 * DAY
_PREEMPTIBLE: Final = 0.5
"""The share of loose servers that may be ended for a lease."""


@dataclass(frozen=True, slots=True)
class LeaseAsked:
    """A group is wanted later. Times count from the month's first instant."""

    at: Duration
    start: Duration
    end: Duration
    members: int
    vcpu: int
    apart: bool
    """Whether no two may be on one host."""


@dataclass(frozen=True, slots=True)
class ServerAsked:
    """A server is wanted now."""

    at: Duration
    vcpu: int
    life: Duration
    """After which its owner deletes it."""
    hours: int
    """After so many its owner says that it is gone at the latest."""
    preemptible: bool


@dataclass(frozen=True, slots=True)
class Month:
    """A fleet of equal hosts and all that is asked of it, in order."""

    seed: int
    hosts: int
    days: int
    leases: tuple[LeaseAsked, ...]
    servers: tuple[ServerAsked, ...]


def month(
    seed: int, *, hosts: int = 1000, days: int = 30, leased: float = 0.3, loose: float = 1.1
) -> Month:
    """The month of a seed.

    Args:
        seed: which.
        hosts: of `HOST_VCPU` each.
        days: how many.
        leased: how much of the capacity leases ask for, over the whole time.
        loose: how much of it loose servers ask for. With the leases that is more than there is.
    """
    dice = Random(seed)
    capacity = hosts * HOST_VCPU
    leases = sorted(_leases(dice, capacity * days * DAY * leased, days), key=lambda one: one.at)
    servers = sorted(_servers(dice, capacity * loose, days), key=lambda one: one.at)
    return Month(seed, hosts, days, tuple(leases), tuple(servers))


def _leases(dice: Random, wanted: float, days: int) -> Iterator[LeaseAsked]:
    """Leases of so much VCPU time in all."""
    while wanted > 0:
        start = dice.randrange(2, days * 24) * HOUR
        length = dice.randint(6, 96) * HOUR
        ahead = _ticks(dice.uniform(DAY, 20 * DAY))
        one = LeaseAsked(
            at=max(0, start - ahead),
            start=start,
            end=start + length,
            members=dice.randint(4, 24),
            vcpu=dice.choice((8, 16, 16, 32)),
            apart=dice.random() < 0.5,  # noqa: PLR2004 - half of them
        )
        wanted -= one.members * one.vcpu * (min(one.end, days * DAY) - one.start)
        yield one


def _servers(dice: Random, level: float, days: int) -> Iterator[ServerAsked]:
    """Servers that use so much VCPU on average, if all get a place; as many from the first hour."""
    mean = sum(_SIZES) / len(_SIZES)
    # The first ones have lived for a while: long lives are met more often, at any point of theirs.
    there = 0.0
    while there < level:
        life = _life(dice, biased=True) * dice.random()
        one = _server(dice, _ticks(dice.uniform(0, HOUR)), life)
        there += one.vcpu
        yield one
    between = _MEAN_LIFE * mean / level
    at = float(HOUR)
    while (at := at + dice.expovariate(1 / between)) < days * DAY:
        yield _server(dice, _ticks(at), _life(dice, biased=False))


def _server(dice: Random, at: Duration, life: float) -> ServerAsked:
    lives = max(TICK, _ticks(life))
    return ServerAsked(
        at=at,
        vcpu=dice.choice(_SIZES),
        life=lives,
        hours=math.ceil(lives * dice.uniform(1.2, 3.0) / HOUR),
        preemptible=dice.random() < _PREEMPTIBLE,
    )


def _life(dice: Random, *, biased: bool) -> float:
    """A life; `biased`: of one that is met at some instant, which is likelier a long one."""
    spread = math.sqrt(2 * math.log(_MEAN_LIFE / _MEDIAN_LIFE))
    # A log-normal weighted by its value is log-normal again, its logarithm's mean `spread`^2 more.
    middle = math.log(_MEDIAN_LIFE) + (spread**2 if biased else 0.0)
    return min(dice.lognormvariate(middle, spread), float(_LONGEST_LIFE))


def _ticks(duration: float) -> Duration:
    """Rounded to whole ticks."""
    return round(duration / TICK) * TICK
