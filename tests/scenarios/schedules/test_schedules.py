"""Months of leases on a small cloud, in seconds; `make schedules` walks a thousand of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.scenarios.schedules import steps_servers
from tests.scenarios.schedules.looking import check
from tests.scenarios.schedules.months import Months
from tests.scenarios.schedules.plan import Host, Plan, plan
from tests.scenarios.schedules.steps import Boot, Cancel, Claim, Disable, Grant, Place, Wait
from tests.scenarios.schedules.walk import shrunk, walk

from moorage.domain.changes import DropBookings
from moorage.domain.leases import Yielding
from moorage.domain.period import DAY, HOUR, MINUTE, SECOND
from moorage.usecases.leases.lease_sweeper import LeaseSweeper

SEEDS = tuple(range(5))
GRANT = Grant(
    ahead=DAY,
    length=DAY,
    rounding=HOUR,
    vcpu=2,
    memory=1,
    members=2,
    apart=False,
    lead=0,
    cleaning=0,
    expiry=None,
    actions={},
    before=frozenset(Yielding),
)
SMALL = Plan(0, (Host(4, 1.0, 4),), None, (GRANT,))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_promise_is_broken_and_no_lease_is_late(seed: int) -> None:
    walked = walk(plan(seed, length=20))
    assert walked.commits


def test_a_seed_says_the_whole_schedule() -> None:
    assert plan(7) == plan(7)
    assert plan(7) != plan(8)
    first, again = walk(plan(3, length=8)), walk(plan(3, length=8))
    assert first == again


def test_a_schedule_becomes_as_small_as_fails_still() -> None:
    long = replace(plan(1, length=30), steps=(*plan(1, length=30).steps, GRANT, Cancel(0)))

    def fails(one: Plan) -> bool:
        return GRANT in one.steps and Cancel(0) in one.steps

    assert shrunk(long, fails).steps == (GRANT, Cancel(0))


def test_who_stays_too_long_has_some_time_to_go_before_a_place_is_missed() -> None:
    boot = Boot(vcpu=4, memory=1, hours=2, preemptible=False, pick=0)
    steps = (replace(GRANT, members=1), steps_servers.Away(4 * HOUR), boot)
    degraded: set[tuple[bool, bool]] = set()

    def look(here: Months) -> None:
        check(here)
        late = here.now - began - 2 * HOUR
        degraded.add((late >= here.env.limits.grace, here.leases()[0].degraded))

    here = Months(0, SMALL.hosts)
    try:
        began = here.now
        for step in steps:
            step.do(here)
            here.rest()
        here.go(3 * HOUR, look)
    finally:
        here.service.close()
    assert degraded == {(False, False), (True, True)}


# --- what is broken on purpose is seen ------------------------------------------------------------


def preemptible(hours: int | None = None) -> Boot:
    return Boot(vcpu=4, memory=1, hours=hours, preemptible=True, pick=0)


def test_more_than_there_is_is_seen() -> None:
    here = Months(0, SMALL.hosts)
    try:
        (host,) = here.names
        here.store.room[host, "VCPU"] = 1
        steps_servers.write(here, here.name(), {host: {"VCPU": 1}})
        with pytest.raises(AssertionError, match="is worse"):
            steps_servers.write(here, here.name(), {host: {"VCPU": 1}})
    finally:
        here.service.close()


def test_who_is_ended_without_a_warning_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (preemptible(), GRANT, Wait(3 * DAY))
    assert walk(replace(SMALL, steps=steps)).told["boot: preemptible"] == 1
    monkeypatch.setattr("moorage.usecases.preemption.displacement.warnings", lambda *_: iter(()))
    with pytest.raises(AssertionError, match="not warned"):
        walk(replace(SMALL, steps=steps))


def test_a_lease_that_nobody_calls_degraded_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (GRANT, steps_servers.Disable(0))
    walk(replace(SMALL, steps=steps))
    monkeypatch.setattr(LeaseSweeper, "run_round", lambda _: False)
    with pytest.raises(AssertionError, match="disabled"):
        walk(replace(SMALL, steps=steps))


def test_a_server_that_stays_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (Boot(vcpu=4, memory=1, hours=5, preemptible=False, pick=0), GRANT, Wait(2 * DAY))
    walk(replace(SMALL, steps=steps))
    monkeypatch.setattr("tests.scenarios.schedules.months.Months.delete", lambda *_: None)
    with pytest.raises(AssertionError, match=r"promised twice|there still|rest"):
        walk(replace(SMALL, steps=steps))


def test_a_lease_that_has_released_its_places_gets_none_again() -> None:
    # One of its hosts is disabled and the others are full: it is degraded when its action releases
    # what was not claimed. The freed room is not for a repair of it.
    actions = {"before_end": ("release:PT30M",)}
    lease = replace(GRANT, ahead=3 * SECOND, length=2 * DAY, members=3, memory=2, actions=actions)
    full = Place(vcpu=4, memory=2, members=2, ends=DAY, rounding=HOUR, preemptible=False)
    boot = Boot(vcpu=3, memory=1, hours=None, preemptible=False, pick=6)
    hosts = (Host(2, 1.5, 15), Host(7, 2.0, 16), Host(3, 2.0, 5))
    walk(Plan(7038, hosts, None, (lease, full, Disable(1), Wait(36 * HOUR), boot)))


def test_a_place_that_a_claim_takes_away_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (replace(GRANT, ahead=0), Claim(0, 5 * MINUTE), Wait(HOUR))
    walk(replace(SMALL, steps=steps))
    monkeypatch.setattr(
        "moorage.usecases.claims.outcome.return_unclaimed_place",
        lambda _, ensemble, *__: DropBookings(frozenset({ensemble.members[0].uuid})),
    )
    with pytest.raises(AssertionError, match=r"no place|failed|rest|swept"):
        walk(replace(SMALL, steps=steps))
