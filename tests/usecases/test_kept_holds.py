"""A decision that follows another without saying for how long: the hold is not cut."""

from typing import Any

import pytest

from moorage.domain.period import MINUTE, format_instant
from moorage.testing.service import Service

FLEET = """
fleet: room
hosts:
  - {name: "h{n}", count: 4, inventories: {VCPU: 16}}
flavors:
  - {name: small, resources: {VCPU: 1}}
"""
ANY = {"if-match": "*"}
UNTIL = "2026-11-22T09:00:00Z"


def placed(service: Service, **decide: Any) -> Any:
    body = {
        "name": "web",
        "members": [{"name": "web", "count": 2, "flavor": "small"}],
        "policies": [{"name": "apart", "type": "anti-affinity", "members": ["web"]}],
        "decide": {"hold": "PT1H", **decide},
    }
    answer = service.call("POST", "/ensembles", {"ensemble": body})
    assert answer.status_code == 201, answer.text
    return answer.json


def added(service: Service, id_: str, decide: Any) -> Any:
    member = {"role": {"name": "web", "count": 1}, "decide": decide}
    return service.call("POST", f"/ensembles/{id_}/members", {"member": member})


def another_role(service: Service, id_: str, decide: Any) -> Any:
    member = {"role": {"name": "db", "count": 1, "flavor": "small"}, "decide": decide}
    return service.call("POST", f"/ensembles/{id_}/members", {"member": member})


def counted(service: Service, id_: str, decide: Any) -> Any:
    change = {"members": [{"name": "web", "count": 3}], "decide": decide}
    return service.call("PATCH", f"/ensembles/{id_}", {"ensemble": change}, headers=ANY)


def fewer(service: Service, id_: str, decide: Any) -> Any:
    change = {"members": [{"name": "web", "count": 1}], "decide": decide}
    return service.call("PATCH", f"/ensembles/{id_}", {"ensemble": change}, headers=ANY)


def ruled(service: Service, id_: str, decide: Any) -> Any:
    change = {"remove_policies": ["apart"], "decide": decide}
    return service.call("PATCH", f"/ensembles/{id_}", {"ensemble": change}, headers=ANY)


def redecided(service: Service, id_: str, decide: Any) -> Any:
    body = {"decision": {"ensemble_id": id_, **decide}}
    return service.call("POST", "/decisions", body)


CHANGES = [added, another_role, counted, fewer, ruled]


@pytest.mark.parametrize("verb", [*CHANGES, redecided], ids=lambda one: one.__name__)
@pytest.mark.parametrize("decide", [{}, {"objective": "pack", "seed": 3}], ids=["plain", "said"])
def test_the_present_end_is_kept(service: Service, verb: Any, decide: Any) -> None:
    before = placed(service)
    service.clock.pass_by(5 * MINUTE)
    answer = verb(service, before["ensemble"]["id"], decide)
    assert answer.status_code < 300, answer.text
    assert answer.json["decision"]["expires_at"] == before["decision"]["expires_at"]
    bookings = service.store.bookings(decision=answer.json["decision"]["id"])
    ends = {format_instant(one.lapses_at) for _, one in bookings}
    assert ends == {before["decision"]["expires_at"]}


@pytest.mark.parametrize("verb", [*CHANGES, redecided], ids=lambda one: one.__name__)
def test_a_hold_that_is_said_counts_from_now(service: Service, verb: Any) -> None:
    before = placed(service)
    answer = verb(service, before["ensemble"]["id"], {"hold": "PT20M"})
    assert answer.json["decision"]["expires_at"] == format_instant(
        service.clock.now() + 20 * MINUTE
    )


def test_deciding_anew_holds_for_the_default_where_that_is_longer(service: Service) -> None:
    before = placed(service)
    service.clock.pass_by(58 * MINUTE)
    answer = redecided(service, before["ensemble"]["id"], {})
    default = service.env.limits.default_hold
    assert answer.json["decision"]["expires_at"] == format_instant(service.clock.now() + default)


@pytest.mark.parametrize("verb", [added, counted, another_role], ids=lambda one: one.__name__)
def test_who_joins_stays_as_long_as_the_others(service: Service, verb: Any) -> None:
    before = placed(service, until=UNTIL, preemptible=True)
    answer = verb(service, before["ensemble"]["id"], {"objective": "pack"})
    assert answer.status_code < 300, answer.text
    bookings = [one for _, one in service.store.bookings(decision=answer.json["decision"]["id"])]
    assert len(bookings) == 3
    assert {format_instant(one.period.end) for one in bookings} == {UNTIL}
    assert {one.preemptible for one in bookings} == {True}
