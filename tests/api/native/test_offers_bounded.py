"""Offers and what bounds them: a range of which a part is past, quotas, and how many at once."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from moorage.domain.quotas import QuotaDefaults, QuotaName
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.shared.limits import Limits

FLEET = """
fleet: small
hosts:
  - {name: "n{n}", count: 4, inventories: {VCPU: 32}}
"""
LIMITS = Limits(quotas=QuotaDefaults({QuotaName.OFFERS: 3}))
WEEK = {"start": "2026-12-07T08:00:00Z", "end": "2026-12-11T18:00:00Z"}


def ask(service: Service, **more: Any) -> Any:
    amount = {"count": more.pop("count", 2), "resources": {"VCPU": 4}}
    body = {"amount": amount, "duration": "P2D", "hold": "PT1H", **more}
    return service.call("POST", "/offers", {"offer_request": body})


def limited(service: Service, **limits: Any) -> None:
    path = f"/quotas/{TENANT.project_id}"
    answer = service.call("PATCH", path, {"quota": limits}, caller=OPERATOR)
    assert answer.status_code == 200, answer.text


def leased(service: Service, count: int) -> None:
    body = {**WEEK, "name": "busy", "amount": {"count": count, "resources": {"VCPU": 4}}}
    assert service.call("POST", "/leases", {"lease": body}).status_code == 201


def test_what_of_a_range_is_past_is_left_out(service: Service) -> None:
    answer = ask(service, earliest="2026-11-21T00:00:00Z")
    assert answer.json["offers"][0]["start"] == "2026-11-21T09:00:00Z"
    over = ask(service, earliest="2026-11-01T00:00:00Z", latest_start="2026-11-20T00:00:00Z")
    assert over.json["errors"][0]["path"] == "offer.latest_start"
    assert over.status_code == 400


def test_the_search_goes_on_to_the_window_that_quota_allows(service: Service) -> None:
    limited(service, lease_units=4)
    leased(service, 3)
    found = ask(service, earliest="2026-12-06T08:00:00Z", max_offers=2).json
    assert [one["start"] for one in found["offers"]] == [WEEK["end"], "2026-12-13T18:00:00Z"]
    assert found["offers"][0]["proved"]
    (barred,) = found["barred"]
    assert (barred["start"], barred["end"]) == ("2026-12-06T08:00:00Z", "2026-12-08T08:00:00Z")
    assert (barred["quota"], barred["passes_at"]) == ("lease-units", WEEK["end"])
    assert "limit 4 used 3 requested 2" in barred["detail"]
    assert ask(service, earliest="2026-12-06T08:00:00Z", count=1).json["barred"] == []


@pytest.mark.parametrize(
    ("limits", "more", "told"),
    [
        ({"lease_units": 4}, {"latest_start": "2026-12-11T00:00:00Z"}, "passes at 2026-12-11T18"),
        ({"lease_units": 1}, {}, "never passes"),
        ({"lease_max_length": "P1D"}, {}, "never passes"),
        ({"lease_horizon": "P10D"}, {}, "passes when asked for at 2026-12-01T08"),
    ],
    ids=["it passes after the range", "never", "too long", "too far ahead: later is farther"],
)
def test_a_range_in_which_quota_allows_nothing_is_refused_by_it(
    service: Service, limits: dict[str, Any], more: dict[str, Any], told: str
) -> None:
    leased(service, 3)
    limited(service, **limits)
    answer = ask(service, earliest="2026-12-09T08:00:00Z", **more)
    assert answer.status_code == 403, answer.text
    error = answer.json["errors"][0]
    assert error["code"] == "ensemble.quota_exceeded"
    assert told in error["detail"]
    assert service.call("GET", "/offers").json["offers"] == []


def test_a_window_that_the_horizon_forbids_as_well_says_when_to_ask_for_it(
    service: Service,
) -> None:
    leased(service, 3)
    limited(service, lease_units=4, lease_horizon="P18D")
    found = ask(service, earliest="2026-12-06T08:00:00Z", max_offers=1)
    error = found.json["errors"][0]
    assert (error["passes_at"], error["passes"]) == (WEEK["end"], "start")
    assert error["asked_from"] == "2026-11-25T18:00:00Z"
    told = f"passes at {WEEK['end']}, asked for at 2026-11-25T18:00:00Z or later"
    assert error["detail"].endswith(told)


def test_those_who_ask_at_once_get_no_more_than_a_project_may_have(service: Service) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: ask(service, count=1).status_code, range(8)))
    assert sorted(set(answers)) == [201, 403]
    assert answers.count(201) == 3
    assert len(service.call("GET", "/offers").json["offers"]) == 3


@pytest.mark.parametrize("method", ["accept", "withdraw"])
def test_who_is_slower_hears_what_became_of_the_offer(service: Service, method: str) -> None:
    """And of no ensemble that went with it while he looked."""
    for _ in range(4):
        ours = [one["id"] for one in ask(service, max_offers=2).json["offers"]]

        def take(number: int, ids: list[str] = ours) -> tuple[int, str]:
            path = f"/offers/{ids[number % 2]}"
            if method == "withdraw" and number > 3:
                answer = service.call("DELETE", path)
            else:
                answer = service.call("POST", f"{path}/accept", {"lease": {}})
            told = answer.json["errors"][0]["code"] if answer.status_code >= 300 else "done"
            return answer.status_code, told

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(take, range(8)))
        assert set(answers) <= {
            (201, "done"),
            (204, "done"),
            (409, "ensemble.wrong_state"),
            (410, "ensemble.offer_over"),
        }, answers
        assert 1 <= sum(told == "done" for _, told in answers) <= 2
