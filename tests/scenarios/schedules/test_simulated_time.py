"""A simulation's clock: one long jump comes to the same as many short ones, event by event."""

from random import Random
from threading import RLock
from typing import Any

import pytest
from tests.scenarios.schedules.months import Months, Work
from tests.scenarios.schedules.plan import Host
from tests.scenarios.schedules.steps import Boot, Place
from tests.scenarios.schedules.test_jumps import away, offered, outcome

from moorage.domain.period import DAY, HOUR, MINUTE, Duration, format_instant
from moorage.testing.service import OPERATOR
from moorage.usecases.claims.outcome import expire
from moorage.usecases.leases.lease_sweeper import LeaseSweeper
from moorage.usecases.next_deadline import next_edge
from moorage.usecases.waitlist.rounds import WaitlistWorker
from moorage.workers.ledger_work import LedgerWork
from moorage.workers.simulated_time import SimulatedTime

HOSTS = (Host(4, 1.0, 8), Host(6, 1.0, 8))
MONTH = 30 * DAY


def simulated(here: Months) -> SimulatedTime:
    """The cloud's clock as a simulation has it."""
    env = here.env
    work = LedgerWork(
        store=here.store,
        expire=lambda item: expire(env, item),
        effects=Work(env, here._work.outside),
        scans={"leases": LeaseSweeper(env).run_round, "waitlist": WaitlistWorker(env).run_round},
    )
    return SimulatedTime(here.service.clock, lambda: next_edge(env), work, RLock())


def at(here: Months, ahead: Duration) -> str:
    return format_instant((here.now + ahead) // HOUR * HOUR)


def ask(here: Months, path: str, body: dict[str, Any]) -> int:
    answer = here.service.call("POST", path, body)
    assert answer.status_code in {201, 202, 409}, answer.text
    here.store.commits += 1
    return answer.status_code


def series(here: Months, ahead: Duration, length: Duration, vcpu: int, times: int) -> int:
    asked = {
        "name": here.name(),
        "start": at(here, ahead)[:16],
        "duration": f"PT{length // HOUR}H",
        "every": "daily",
        "times": times,
        "as_many_as_fit": True,
        "amount": {"count": 1, "resources": {"VCPU": vcpu}},
    }
    return ask(here, "/series", {"series": asked})


def lease(
    here: Months, ahead: Duration, length: Duration, vcpu: int, *, count: int = 1, **more: Any
) -> int:
    asked = {
        "name": here.name(),
        "start": at(here, ahead),
        "duration": f"PT{length // HOUR}H",
        "amount": {"count": count, "resources": {"VCPU": vcpu}},
    }
    return ask(here, "/leases", {"lease": asked | more})


def waits(here: Months, ahead: Duration, length: Duration, vcpu: int, slack: Duration) -> int:
    """A lease, or an entry of the waitlist, that may begin up to `slack` later."""
    return lease(here, ahead, length, vcpu, wait={"latest_start": at(here, ahead + slack)})


def random_plans(here: Months, dice: Random) -> None:
    """Leases, series, entries, servers, offers and absences over some three weeks."""
    kinds = ("lease", "series", "wait", "wait", "server", "hold", "offer", "window")
    some = [dice.choice(kinds) for _ in range(dice.randint(5, 9))]
    for kind in sorted(some, key=lambda one: one == "window"):
        ahead, length = dice.randint(1, 400) * HOUR, dice.randint(2, 90) * HOUR
        vcpu = dice.randint(2, 6)
        if kind == "lease":
            lease(here, ahead, length, vcpu)
        elif kind == "series":
            series(here, ahead, min(length, 20 * HOUR), vcpu, dice.randint(2, 5))
        elif kind == "wait":
            waits(here, ahead, length, vcpu, dice.choice((0, 24, 100)) * HOUR)
        elif kind == "server":
            hours = dice.choice((3, 10, 200))
            Boot(dice.randint(1, 4), 1, hours, dice.random() < 0.7, dice.randrange(9)).do(here)
        elif kind == "hold":
            Place(1, 1, 1, length, dice.randint(1, 9) * HOUR, preemptible=True).do(here)
        elif kind == "offer":
            offered(here, ahead, length)
        else:
            away(here, dice.randrange(len(HOSTS)), ahead, length)


def events(here: Months) -> list[tuple[str, str, str]]:
    """All events in their order, with their times; estimates come when there is time for them."""
    found: list[tuple[str, str, str]] = []
    query: dict[str, object] = {"limit": 1000}
    while True:
        page = here.service.call("GET", "/events", caller=OPERATOR, query=query).json
        found += [(one["type"], one["subject"], one["at"]) for one in page["events"]]
        if not page["events"]:
            return [one for one in found if one[0] != "waitlist.estimate"]
        query["after"] = page["cursor"]


def result(seed: int, step: Duration, plans: Any = random_plans) -> dict[str, Any]:
    """The state and the events after a month that is passed in jumps of `step`."""
    here = Months(seed, HOSTS)
    try:
        plans(here, Random(seed))
        clock = simulated(here)
        end = here.now + MONTH
        while here.now < end:
            clock.set(min(here.now + step, end))
        entries = {one.id: one.state for one in here.store.waitlist(project_id=None)}
        return outcome(here) | {"entries": entries, "events": events(here)}
    finally:
        here.service.close()


@pytest.mark.parametrize("seed", range(6))
def test_a_month_comes_to_the_same_in_one_jump_and_in_many(seed: int) -> None:
    assert result(seed, MONTH) == result(seed, DAY + seed * (7 * HOUR + MINUTE))


def test_what_is_freed_within_a_jump_goes_to_those_who_wait_for_it() -> None:
    def plans(here: Months, _dice: Random) -> None:
        # Nobody claims the places of the first, which are given back a while after it has begun.
        assert lease(here, DAY, 20 * DAY, 4, count=2, expiry="PT1H") == 201
        assert waits(here, 2 * DAY, 2 * DAY, 4, 0) == 202
        assert series(here, 22 * DAY, 2 * HOUR, 4, 3) == 201

    found = result(1, MONTH, plans)
    assert found == result(1, DAY, plans)
    assert [str(one) for one in found["entries"].values()] == ["granted"]
    assert [str(one[0]) for one in found["leases"].values()] == ["closed"] * 5
