"""What operators send: a refusal names its place, and nothing is written."""

import pytest

from moorage.testing.service import NINE, OPERATOR, Service


def test_an_unknown_host_is_refused_with_its_line(service: Service) -> None:
    topology = {
        "levels": {"location": ["rack"]},
        "domains": [{"name": "r1", "level": "rack", "line": 4}],
        "attachments": [{"host": "h77", "domain": "r1", "line": 9}],
    }
    answer = service.call("PUT", "/topology/domains", {"topology": topology}, caller=OPERATOR)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["line"]) == (400, 9)
    assert (error["path"], error["detail"]) == ("attachments.h77", "no such host: h77")


def test_an_unknown_trait_is_refused_with_its_line(service: Service) -> None:
    host = {
        "uuid": "5f1d3fa4-5f4a-4f3e-9a64-0f4f4a0f9d11",
        "name": "h77",
        "inventories": {"VCPU": {"total": 4}},
        "traits": ["HW_NOPE"],
        "line": 31,
    }
    answer = service.call("POST", "/fleet", {"fleet": {"providers": [host]}}, caller=OPERATOR)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["line"]) == (400, 31)
    assert (error["path"], error["detail"]) == ("providers.h77.traits", "no such trait: HW_NOPE")


@pytest.mark.parametrize("now", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_no_clock_is_set_to_a_time_that_no_answer_could_state(service: Service, now: str) -> None:
    answer = service.call("PUT", "/simulation/clock", {"clock": {"now": now}}, caller=OPERATOR)
    assert answer.status_code == 400, answer.text
    assert service.store.now() == NINE


def test_at_the_last_time_that_may_be_set_everything_is_told(service: Service) -> None:
    last = {"clock": {"now": "9000-01-01T00:00:00Z"}}
    assert service.call("PUT", "/simulation/clock", last, caller=OPERATOR).status_code == 200
    member = {"name": "a", "count": 1, "resources": {"VCPU": 1}}
    body = {"ensemble": {"name": "e", "members": [member], "decide": {"hold": "PT4H"}}}
    made = service.call("POST", "/ensembles", body)
    assert made.status_code == 201, made.text
    shown = service.call("GET", f"/decisions/{made.json['decision']['id']}")
    assert shown.json["decision"]["expires_at"] == "9000-01-01T04:00:00Z"


@pytest.mark.parametrize("most", [1001, -1])
def test_no_priority_is_allowed_that_there_is_not(service: Service, most: int) -> None:
    body = {"quota": {"lease_priority": most}}
    answer = service.call("PATCH", "/quotas/project-a", body, caller=OPERATOR)
    assert answer.status_code == 400, answer.text
    assert answer.json["errors"][0]["path"] == "quota.lease_priority"
