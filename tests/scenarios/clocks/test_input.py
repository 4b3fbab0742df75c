"""Leases over leap days and daylight saving, said as people say them: instants are what counts."""

from collections.abc import Iterator
from typing import Any

import pytest
from falcon.testing import Result

from moorage.domain.leases import LeaseState
from moorage.domain.period import DAY, HOUR, parse_instant
from moorage.testing.service import OPERATOR, Service

FLEET = """
fleet: one
hosts:
  - {name: h1, inventories: {VCPU: {total: 1}}}
"""


@pytest.fixture
def service(fleet: str) -> Iterator[Service]:
    made = Service(fleet)
    yield made
    made.close()


@pytest.fixture
def fleet() -> str:
    return FLEET


def ask(service: Service, start: str, end: str, count: int = 1) -> Result:
    amount = {"count": count, "resources": {"VCPU": 1}}
    lease = {"name": f"from {start}", "start": start, "end": end, "amount": amount}
    return service.call("POST", "/leases", {"lease": lease})


def granted(service: Service, start: str, end: str) -> Any:
    answer = ask(service, start, end)
    assert answer.status_code == 201, answer.text
    return answer.json["lease"]


def test_the_hour_that_comes_twice_is_two_hours(service: Service) -> None:
    service.clock.set(parse_instant("2026-10-24T12:00:00Z"))
    first = granted(service, "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00")
    stored = service.store.lease(first["id"]).terms.period
    assert stored.end - stored.start == HOUR
    assert (first["start"], first["end"]) == ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z")
    # The host has room for one: what touches it is granted, what overlaps by a second is not.
    late = ask(service, "2026-10-25T02:29:59+01:00", "2026-10-25T04:00:00+01:00")
    assert late.status_code == 409, late.text
    granted(service, "2026-10-25T02:30:00+01:00", "2026-10-25T04:00:00+01:00")
    granted(service, "2026-10-25T02:00:00+02:00", "2026-10-25T00:30:00Z")


def test_the_same_wall_time_backwards_is_no_period(service: Service) -> None:
    service.clock.set(parse_instant("2026-10-24T12:00:00Z"))
    answer = ask(service, "2026-10-25T02:30:00+01:00", "2026-10-25T02:30:00+02:00")
    assert answer.status_code == 400, answer.text


def test_a_day_of_twenty_three_hours(service: Service) -> None:
    service.clock.set(parse_instant("2027-03-01T00:00:00Z"))
    made = granted(service, "2027-03-28T00:00:00+01:00", "2027-03-29T00:00:00+02:00")
    period = service.store.lease(made["id"]).terms.period
    assert period.end - period.start == 23 * HOUR


def test_a_leap_day_is_a_day(service: Service) -> None:
    service.clock.set(parse_instant("2028-02-01T00:00:00Z"))
    made = granted(service, "2028-02-28T12:00:00Z", "2028-03-01T12:00:00Z")
    period = service.store.lease(made["id"]).terms.period
    assert period.end - period.start == 2 * DAY
    taken = ask(service, "2028-02-29T00:00:00+14:00", "2028-02-29T23:59:59-12:00")
    assert taken.status_code == 409, taken.text


@pytest.mark.parametrize("when", ["2027-02-29T12:00:00Z", "2028-02-30T12:00:00Z"])
def test_a_leap_day_in_another_year_is_refused(service: Service, when: str) -> None:
    service.clock.set(parse_instant("2027-02-01T00:00:00Z"))
    answer = ask(service, when, "2028-06-01T00:00:00Z")
    assert answer.status_code == 400, answer.text


def test_a_time_without_an_offset_is_refused(service: Service) -> None:
    service.clock.set(parse_instant("2026-10-24T12:00:00Z"))
    answer = ask(service, "2026-10-25T02:30:00", "2026-10-25T04:00:00Z")
    assert answer.status_code == 400, answer.text


def test_a_second_before_an_edge_is_before_it_in_every_zone(service: Service) -> None:
    service.clock.set(parse_instant("2026-10-24T12:00:00Z"))
    made = granted(service, "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00")
    service.clock.set(parse_instant("2026-10-25T02:29:59+01:00"))
    assert not service.store.due_effects(10)
    assert service.store.lease(made["id"]).state is LeaseState.PENDING
    service.clock.set(parse_instant("2026-10-25T02:30:00+01:00"))
    (first, *_) = service.store.due_effects(10)
    assert (first.subject, first.due) == (made["id"], service.clock.now())


def test_operators_see_the_same_instants(service: Service) -> None:
    service.clock.set(parse_instant("2026-10-24T12:00:00Z"))
    granted(service, "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00")
    shown = service.call("GET", "/bookings", caller=OPERATOR).json["bookings"]
    assert {one["start"] for one in shown} == {"2026-10-25T00:30:00Z"}
