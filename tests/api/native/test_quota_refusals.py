"""What a quota refuses: numbers as `GET /quotas` has them, remedies, an explanation, an event."""

from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.testing.service import OPERATOR, OTHER, TENANT, Service

QUOTA = f"/quotas/{TENANT.project_id}"


def limit(service: Service, **limits: Any) -> None:
    headers = {"If-Match": "*"}
    answer = service.call("PATCH", QUOTA, {"quota": limits}, caller=OPERATOR, headers=headers)
    assert answer.status_code == 200, answer.json


def used(service: Service, name: str) -> int:
    number: int = service.call("GET", QUOTA).json["quota"][name]["used"]
    return number


def ensemble(service: Service, count: int, name: str = "shop", **more: Any) -> Any:
    body = {
        "name": name,
        "members": [{"name": "web", "count": count, "resources": {"VCPU": 1}}],
        "decide": {},
    }
    return service.call("POST", "/ensembles", {"ensemble": body}, **more)


def lease(service: Service, count: int, start: str, end: str, name: str = "batch") -> Any:
    amount = {"count": count, "resources": {"VCPU": 1}}
    body = {"name": name, "amount": amount, "start": start, "end": end}
    return service.call("POST", "/leases", {"lease": body})


def offer(service: Service, count: int) -> Any:
    amount = {"count": count, "resources": {"VCPU": 1}}
    body = {"amount": amount, "earliest": "2026-12-07T08:00:00Z", "duration": "PT1H"}
    return service.call("POST", "/offers", {"offer_request": {**body, "max_offers": 1}})


def numbers(error: dict[str, Any]) -> tuple[int, int, int]:
    return error["used"], error["requested"], error["limit"]


def test_a_refusal_has_an_explanation_remedies_and_an_event(service: Service) -> None:
    limit(service, held_units=5)
    assert ensemble(service, 3).status_code == 201
    error = refused(ensemble(service, 4, "more"), 403, "quota_exceeded")
    assert error["remedies"] == [
        "ask for at most 2 held places",
        "confirm or delete ensembles whose places are held and not needed",
        "have an operator raise it: moorage quota set project-a --held-units 7",
    ]
    link = next(one["href"] for one in error["links"] if one["rel"] == "explanation")
    why = service.call("GET", link.removeprefix("/v1")).json["explanation"]
    assert (why["project_id"], why["ensemble"]) == ("project-a", "more")
    assert {name: why[name] for name in error["explanation"]} == error["explanation"]
    assert (why["verdict"], why["stage"]) == ("refused", "quota")
    assert why["conflict"] == [
        {"quota": "held-units", "needs": "4 more"},
        {"topology": "limit 5, used 3"},
    ]
    assert "ask for at most 2 held places" in why["note"]
    (event,) = service.call("GET", "/events", query={"type": "request.refused"}).json["events"]
    assert event["body"]["explanation"] == why["id"]
    assert (event["body"]["name"], event["body"]["stage"]) == ("more", "quota")
    assert event["body"]["why"] == "quota: held-units"
    (listed,) = service.call("GET", "/explanations", query={"stage": "quota"}).json["explanations"]
    assert (listed["id"], listed["ensemble"]) == (why["id"], "more")
    assert service.call("GET", f"/explanations/{why['id']}", caller=OTHER).status_code == 404
    with_problem = {"instance": "true"}
    path = f"/explanations/{why['id']}"
    refused(service.call("GET", path, query=with_problem, caller=OPERATOR), 409, "wrong_state")


def test_a_dry_run_is_explained_and_kept_by_nobody(service: Service) -> None:
    limit(service, held_units=2)
    error = refused(ensemble(service, 4, query={"dry_run": "true"}), 403, "quota_exceeded")
    assert error["explanation"]["stage"] == "quota"
    assert "links" not in error
    assert service.call("GET", "/explanations").json["explanations"] == []
    assert service.call("GET", "/events", query={"type": "request.refused"}).json["events"] == []


@pytest.mark.parametrize("dry_run", ["true", "false"])
def test_growth_counts_what_is_held_as_used(service: Service, dry_run: str) -> None:
    limit(service, held_units=5)
    made = ensemble(service, 3).json["ensemble"]
    asked = {"extend": {"role": "web", "count": 3}}
    path, query = f"/ensembles/{made['id']}/extend", {"dry_run": dry_run}
    headers = {"If-Match": "*"}
    answer = service.call("POST", path, asked, query=query, headers=headers)
    error = refused(answer, 403, "quota_exceeded")
    assert numbers(error) == (used(service, "held_units"), 3, 5) == (3, 3, 5)


def test_places_of_open_offers_are_requested_not_used(service: Service) -> None:
    limit(service, held_units=6)
    assert ensemble(service, 2).status_code == 201
    assert offer(service, 3).status_code == 201
    error = refused(offer(service, 2), 403, "quota_exceeded")
    assert numbers(error) == (used(service, "held_units"), 5, 6) == (2, 5, 6)
    assert "requested 5 (3 of them for open offers)" in error["detail"]


def test_more_offers_at_once_than_allowed_names_those_that_are_open(service: Service) -> None:
    limit(service, offers=1)
    assert offer(service, 1).status_code == 201
    error = refused(offer(service, 1), 403, "quota_exceeded")
    assert numbers(error) == (used(service, "offers"), 1, 1)


def test_a_changed_lease_counts_as_used_what_it_has(service: Service) -> None:
    limit(service, lease_units=5)
    made = lease(service, 3, "2026-12-07T08:00:00Z", "2026-12-08T08:00:00Z").json["lease"]
    role = next(iter(made["reservations"]))["role"] if "reservations" in made else "server"
    body = {"lease": {"counts": {role: 6}}}
    path, headers = f"/leases/{made['id']}", {"If-Match": "*"}
    error = refused(service.call("PATCH", path, body, headers=headers), 403, "quota_exceeded")
    assert numbers(error) == (used(service, "lease_units"), 3, 5) == (3, 3, 5)


def test_use_that_is_not_the_highest_is_told_with_its_time(service: Service) -> None:
    limit(service, lease_units=5)
    for count, day in ((4, 7), (2, 9)):
        start, end = (f"2026-12-{one:02}T08:00:00Z" for one in (day, day + 1))
        assert lease(service, count, start, end, f"l{day}").status_code == 201
    answer = lease(service, 4, "2026-12-09T08:00:00Z", "2026-12-10T08:00:00Z", "third")
    error = refused(answer, 403, "quota_exceeded")
    assert used(service, "lease_units") == 4
    assert numbers(error) == (2, 4, 5)
    assert "used 2 (at 2026-12-09T08:00:00Z) requested 4" in error["detail"]


def test_a_duration_says_the_longest_that_passes(service: Service) -> None:
    limit(service, lease_max_length="P1D")
    error = refused(
        lease(service, 1, "2026-12-07T08:00:00Z", "2026-12-09T08:00:00Z"), 403, "quota_exceeded"
    )
    assert error["remedies"] == [
        "ask for 1d at most",
        "have an operator raise it: moorage quota set project-a --lease-max-length 2d",
    ]


def test_a_refused_change_names_its_ensemble_or_lease(service: Service) -> None:
    limit(service, held_units=3, lease_units=3)
    made = ensemble(service, 3).json["ensemble"]
    change = {"ensemble": {"members": [{"name": "web", "count": 4}]}}
    headers = {"If-Match": "*"}
    answer = service.call("PATCH", f"/ensembles/{made['id']}", change, headers=headers)
    refused(answer, 403, "quota_exceeded")
    leased = lease(service, 2, "2026-12-07T08:00:00Z", "2026-12-07T09:00:00Z").json["lease"]
    more = {"lease": {"counts": {"server": 4}}}
    answer = service.call("PATCH", f"/leases/{leased['id']}", more, headers=headers)
    refused(answer, 403, "quota_exceeded")
    listed = service.call("GET", "/explanations", query={"stage": "quota"}).json["explanations"]
    assert [(one["ensemble"], one["ensemble_id"]) for one in listed] == [
        ("batch", leased["ensemble_id"]),
        (made["name"], made["id"]),
    ]


def test_what_holds_no_more_than_before_passes_a_lowered_quota(service: Service) -> None:
    made = ensemble(service, 4).json["ensemble"]
    limit(service, held_units=2)
    again = {"decision": {"ensemble_id": made["id"], "hold": "PT10M"}}
    for query in ({"dry_run": "true"}, None):
        answer = service.call("POST", "/decisions", again, query=query)
        assert answer.status_code in {200, 201}, answer.text
    fewer = {"ensemble": {"members": [{"name": "web", "count": 3}]}}
    headers = {"If-Match": "*"}
    answer = service.call("PATCH", f"/ensembles/{made['id']}", fewer, headers=headers)
    assert answer.status_code == 200, answer.text
    more = {"ensemble": {"members": [{"name": "web", "count": 4}]}}
    answer = service.call("PATCH", f"/ensembles/{made['id']}", more, headers=headers)
    refused(answer, 403, "quota_exceeded")
