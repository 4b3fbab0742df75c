"""A clock that jumps over many edges: what it comes to is the same as edge by edge."""

from random import Random
from typing import Any

import pytest
from tests.scenarios.schedules.months import Months
from tests.scenarios.schedules.plan import Host
from tests.scenarios.schedules.steps import Boot, Grant, Place

from moorage.domain.capacity_windows import WindowKind
from moorage.domain.effects import EffectKind
from moorage.domain.errors import WouldBreakLease
from moorage.domain.leases import Yielding
from moorage.domain.period import DAY, HOUR, MINUTE, Duration, format_instant
from moorage.testing.service import OPERATOR
from moorage.usecases.capacity.planned import PlanRequest, plan_window

HOSTS = (Host(4, 1.0, 8), Host(6, 1.0, 8))


def grant(ahead: Duration, length: Duration, members: int = 1, **more: Any) -> Grant:
    """A lease of hosts' processors, which preemptible servers use until it begins."""
    terms: dict[str, Any] = {
        "rounding": MINUTE,
        "vcpu": 4,
        "memory": 1,
        "apart": False,
        "lead": 0,
        "cleaning": 0,
        "expiry": None,
        "actions": {},
        "before": frozenset(Yielding),
    }
    return Grant(ahead=ahead, length=length, members=members, **(terms | more))


def random_start(here: Months, dice: Random) -> None:
    """Leases, servers, holds, offers and absences that begin and end over some days."""
    kinds = ("lease", "lease", "server", "server", "hold", "offer", "window")
    some = [dice.choice(kinds) for _ in range(dice.randint(4, 9))]
    # Windows last: who boots servers here does not know of them.
    for kind in sorted(some, key=lambda one: one == "window"):
        ahead, length = dice.randint(1, 40) * HOUR, dice.randint(1, 30) * HOUR
        if kind == "lease":
            more = {
                "vcpu": dice.randint(1, 4),
                "lead": dice.choice((0, HOUR)),
                "cleaning": dice.choice((0, HOUR)),
                "expiry": dice.choice((None, HOUR)),
            }
            grant(ahead, length, dice.randint(1, 2), **more).do(here)
        elif kind == "server":
            hours = dice.choice((None, 3, 10))
            Boot(dice.randint(1, 4), 1, hours, dice.random() < 0.7, dice.randrange(9)).do(here)
        elif kind == "hold":
            Place(1, 1, 1, dice.choice((None, length)), HOUR, preemptible=True).do(here)
        elif kind == "offer":
            offered(here, ahead, length)
        else:
            away(here, dice.randrange(len(HOSTS)), ahead, length)
        here.rest()


def offered(here: Months, ahead: Duration, length: Duration) -> None:
    start = format_instant((here.now + ahead) // MINUTE * MINUTE)
    role = {"name": "web", "resources": {"VCPU": 2}}
    asked = {
        "ensemble": {"name": here.name(), "members": [role]},
        "duration": f"PT{length // HOUR}H",
        "earliest": start,
        "latest_start": start,
        "max_offers": 1,
    }
    assert here.service.call("POST", "/offers", {"offer_request": asked}).status_code in {201, 409}
    here.store.commits += 1


def away(here: Months, host: int, ahead: Duration, length: Duration) -> None:
    start = here.now + ahead
    asked = PlanRequest(WindowKind.MAINTENANCE, (here.names[host],), (), start, start + length)
    try:
        plan_window(here.env, OPERATOR, asked, here.naming())
    except WouldBreakLease:
        return


def outcome(here: Months) -> dict[str, Any]:
    """What has become of leases, offers and decisions, and whether a lease was ever degraded."""
    store = here.service.store
    leases = store.leases(project_id=None)
    told = [
        one
        for lease in leases
        for one in store.effects(lease.id)
        if one.kind is EffectKind.NOTIFY and one.details.get("degraded")
    ]
    now = here.now
    return {
        "leases": {
            one.id: (one.state, one.degraded, one.missing, one.outcome, one.terms.period)
            for one in leases
        },
        "decisions": {one.id: store.decision(one.decision_id).state_at(now) for one in leases},
        "offers": {
            one.id: (one.state, one.offer and one.offer.state)
            for one in store.offers(project_id=None)
        },
        "late servers": [
            booking.consumer for _, booking in store.bookings() if booking.period.end <= now
        ],
        "told as degraded": len(told),
    }


def walked(seed: int, span: Duration, *, jump: bool) -> dict[str, Any]:
    """The outcome a while after a random start, edge by edge or in one jump."""
    here = Months(seed, HOSTS)
    try:
        random_start(here, Random(seed))
        if jump:
            here.service.clock.set(here.now + span)
            here.rest()
        else:
            here.go(span, lambda _: None)
        return outcome(here)
    finally:
        here.service.close()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("span", [12 * HOUR, 3 * DAY], ids=["half a day", "three days"])
def test_a_jump_comes_to_the_same_as_small_steps(seed: int, span: Duration) -> None:
    assert walked(seed, span, jump=True) == walked(seed, span, jump=False)


@pytest.mark.parametrize("seed", range(6))
def test_an_early_end_and_the_start_that_it_makes_room_for_are_passed_at_once(seed: int) -> None:
    here = Months(seed, (Host(4, 1.0, 8),))
    try:
        assert Boot(4, 1, None, preemptible=True, pick=0).do(here) == "preemptible"
        assert grant(DAY, DAY).do(here) == "granted"
        here.rest()
        here.service.clock.set(here.now + DAY + 2 * HOUR)
        here.rest()
        (lease,) = here.leases()
        assert (lease.state.value, lease.degraded) == ("active", False)
        assert outcome(here)["told as degraded"] == 0
    finally:
        here.service.close()
