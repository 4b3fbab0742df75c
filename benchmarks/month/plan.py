"""What is asked of the cloud in a month, made from a seed: the same for every way of running it.

Leases: groups of four to twenty-four servers for six hours to four days, asked for one to twenty
days ahead. The rest are servers asked for when they are wanted, whose lives are heavy-tailed
(log-normal): half of those whose owners say an end live less than a day, four days on average; half
of those that may be ended early less than six hours, a day on average. Every owner can say after
how many hours a server is gone at the latest, and is 1.2 to 3 times too careful.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Final

from moorage.domain.period import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.period import Duration

TICK: Final = 5 * MINUTE
"""What happens in the month happens at multiples of it."""
HOST_VCPU: Final = 64
_SIZES: Final = (16, 16, 16, 32, 32)
"""VCPU of servers, loose and leased, each as likely as the others."""
_LIVES: Final = {False: (24 * HOUR, 96 * HOUR), True: (6 * HOUR, 24 * HOUR)}
"""Median and mean, by whether it is preemptible."""
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
    number: int = 0
    """Which of the month's, in order."""


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
    numbered = (replace(one, number=number) for number, one in enumerate(servers))
    return Month(seed, hosts, days, tuple(leases), tuple(numbered))


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
            vcpu=dice.choice(_SIZES),
            apart=dice.random() < 0.5,  # noqa: PLR2004 - half of them
        )
        wanted -= one.members * one.vcpu * (min(one.end, days * DAY) - one.start)
        yield one


def _servers(dice: Random, level: float, days: int) -> Iterator[ServerAsked]:
    """Servers that use so much VCPU on average, if all get a place; as many from the first hour."""
    mean = sum(_SIZES) / len(_SIZES)
    for preemptible in (False, True):
        share = level * (_PREEMPTIBLE if preemptible else 1 - _PREEMPTIBLE)
        # The first have lived for a while: long lives are met more often, at any point of theirs.
        there = 0.0
        while there < share:
            life = _life(dice, preemptible=preemptible, biased=True) * dice.random()
            one = _server(dice, _ticks(dice.uniform(0, HOUR)), life, preemptible=preemptible)
            there += one.vcpu
            yield one
        between = _LIVES[preemptible][1] * mean / share
        at = float(HOUR)
        while (at := at + dice.expovariate(1 / between)) < days * DAY:
            life = _life(dice, preemptible=preemptible, biased=False)
            yield _server(dice, _ticks(at), life, preemptible=preemptible)


def _server(dice: Random, at: Duration, life: float, *, preemptible: bool) -> ServerAsked:
    lives = max(TICK, _ticks(life))
    return ServerAsked(
        at=at,
        vcpu=dice.choice(_SIZES),
        life=lives,
        hours=math.ceil(lives * dice.uniform(1.2, 3.0) / HOUR),
        preemptible=preemptible,
    )


def _life(dice: Random, *, preemptible: bool, biased: bool) -> float:
    """A life; `biased`: of one that is met at some instant, which is likelier a long one."""
    median, mean = _LIVES[preemptible]
    spread = math.sqrt(2 * math.log(mean / median))
    # A log-normal weighted by its value is log-normal again, its logarithm's mean `spread`^2 more.
    middle = math.log(median) + (spread**2 if biased else 0.0)
    return min(dice.lognormvariate(middle, spread), float(_LONGEST_LIFE))


def _ticks(duration: float) -> Duration:
    """Rounded to whole ticks."""
    return round(duration / TICK) * TICK
