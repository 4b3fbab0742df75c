"""Walk a schedule from its first step to the end of all that it began; and make one smaller."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.scenarios.schedules.looking import check
from tests.scenarios.schedules.months import Months

from moorage.domain.leases import LeaseState
from moorage.domain.period import DAY

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from tests.scenarios.schedules.plan import Plan

THE_END = 500 * DAY
"""Longer than anything lasts that a schedule begins."""


@dataclass(frozen=True)
class Walked:
    """What a schedule came to."""

    told: Counter[str]
    """Steps by what came of them."""
    commits: int
    judged: int
    """Sums that were compared before and after commits."""
    days: float


def walk(plan: Plan) -> Walked:
    """Do the steps, and look after each; in the end nothing is left but who never ends.

    Raises:
        AssertionError: something is not as it must be.
    """
    here = Months(plan.seed, plan.hosts, plan.lifetime)
    try:
        began = here.now
        here.latest = began
        for step in plan.steps:
            here.told[f"{type(step).__name__.lower()}: {step.do(here)}"] += 1
            here.rest()
            check(here)
        days = (here.now - began) / DAY
        here.away_until = here.now
        here.go(THE_END, check)
        _check_end(here)
        return Walked(here.told, here.store.commits, here.store.judged, days)
    finally:
        here.service.close()


def _check_end(here: Months) -> None:
    """Every lease is over, and what is left are servers without an end."""
    assert not here.leases()
    for lease in here.leases(LeaseState.CLOSED):
        assert (lease.degraded, lease.missing) == (False, 0)
    for server in sorted(here.servers):
        for _, booking in here.store.bookings(consumer=server):
            assert booking.period.open_ended, "nobody has ended it"
        here.delete(server)
    left = [one for _, one in here.store.bookings()]
    assert not left, "something is held for ever"


def shrunk(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """The same schedule with as few steps as fail still."""
    size = max(len(plan.steps) // 2, 1)
    while True:
        start, smaller = 0, False
        while start < len(plan.steps):
            fewer = replace(plan, steps=plan.steps[:start] + plan.steps[start + size :])
            if fails(fewer):
                plan, smaller = fewer, True
            else:
                start += size
        if size == 1 and not smaller:
            return plan
        size = max(size // 2, 1)
