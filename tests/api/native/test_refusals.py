"""Refusals: told as events, listed, and kept to be read again."""

import logging
from typing import Any

import pytest

from moorage.domain.period import MINUTE
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service

LARGE = [{"name": "db", "count": 4, "flavor": "m1.xlarge"}]
APART = [{"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "rack"}]


def refuse(service: Service, name: str = "shop", caller: Any = TENANT, **more: Any) -> Any:
    body = {"name": name, "members": LARGE, "policies": APART, "decide": {}, **more}
    answer = service.call("POST", "/ensembles", {"ensemble": body}, caller=caller)
    assert answer.status_code == 409, answer.json
    return answer.json["errors"][0]["explanation"]


def told(service: Service, **asked: Any) -> list[dict[str, Any]]:
    query = {"type": "request.refused", **{k: v for k, v in asked.items() if k != "caller"}}
    answer = service.call("GET", "/events", query=query, caller=asked.get("caller", TENANT))
    found: list[dict[str, Any]] = answer.json["events"]
    return found


def listed(service: Service, *, caller: Any = TENANT, **query: Any) -> list[dict[str, Any]]:
    answer = service.call("GET", "/explanations", query=query, caller=caller)
    assert answer.status_code == 200, answer.json
    found: list[dict[str, Any]] = answer.json["explanations"]
    return found


def test_a_refusal_is_told_to_its_project_and_to_operators(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "moorage.usecases.refusals.explanation"):
        why = refuse(service)
    (event,) = told(service)
    assert event["subject"] == event["body"]["explanation"] == why["id"]
    assert (event["body"]["name"], event["body"]["user"]) == ("shop", "ann")
    assert (event["body"]["stage"], event["body"]["untold"]) == ("static", 0)
    assert event["body"]["why"].startswith("static: ")
    assert told(service, caller=OTHER) == []
    assert [one["id"] for one in told(service, caller=OPERATOR, all_projects="true")] == [
        event["id"]
    ]
    (line,) = [one.getMessage() for one in caplog.records]
    assert why["id"] in line
    assert "project-a" in line


def test_a_loop_of_one_refusal_is_told_once_in_a_while_and_counted(service: Service) -> None:
    for _ in range(4):
        refuse(service)
    assert len(told(service)) == 1
    refuse(service, "another")
    service.clock.pass_by(2 * MINUTE)
    refuse(service)
    assert [(one["body"]["name"], one["body"]["untold"]) for one in told(service)] == [
        ("shop", 0),
        ("another", 3),
        ("shop", 0),
    ]


def test_no_project_floods_its_feed_with_refusals_of_many_names(service: Service) -> None:
    for number in range(14):
        refuse(service, f"e{number}")
    refuse(service, caller=OTHER)
    assert len(told(service)) == 10
    assert len(told(service, caller=OTHER)) == 1
    assert len(listed(service)) == 14


def test_who_only_asks_why_is_told_nothing_and_may_read_it_again(service: Service) -> None:
    asked = {"explanation": {"members": LARGE, "policies": APART}}
    answer = service.call("POST", "/explanations", asked)
    assert answer.status_code == 200, answer.json
    assert told(service) == []
    assert [one["id"] for one in listed(service)] == [answer.json["explanation"]["id"]]


def test_refusals_are_listed_newest_first_and_by_what_one_looks_for(service: Service) -> None:
    first = refuse(service)
    service.clock.pass_by(MINUTE)
    huge = [{"name": "db", "count": 1, "resources": {"VCPU": 10_000}}]
    second = refuse(service, "huge", members=huge, policies=[])
    theirs = refuse(service, caller=OTHER)
    shown = listed(service)
    assert [one["id"] for one in shown] == [second["id"], first["id"]]
    assert (shown[1]["ensemble"], shown[1]["stage"], shown[1]["user_id"]) == (
        "shop",
        "static",
        "ann",
    )
    assert [one["id"] for one in listed(service, ensemble="huge")] == [second["id"]]
    assert [one["id"] for one in listed(service, ensemble=shown[1]["ensemble_id"])] == [first["id"]]
    assert [one["id"] for one in listed(service, since=second["computed_at"])] == [second["id"]]
    assert listed(service, stage="contention") == []
    assert len(listed(service, stage="static")) == 2
    every = listed(service, caller=OPERATOR, all_projects="true")
    assert [one["id"] for one in every] == [theirs["id"], second["id"], first["id"]]
    ours = listed(service, caller=OPERATOR, project_id="project-b")
    assert [one["id"] for one in ours] == [theirs["id"]]


def test_refusals_are_paged_and_other_projects_are_closed(service: Service) -> None:
    ids = [refuse(service, f"e{number}")["id"] for number in range(3)]
    page = service.call("GET", "/explanations", query={"limit": 2}).json
    assert [one["id"] for one in page["explanations"]] == [ids[2], ids[1]]
    assert page["explanations_links"]
    assert [one["id"] for one in listed(service, marker=ids[1])] == [ids[0]]
    denied = service.call("GET", "/explanations", query={"all_projects": "true"})
    assert denied.status_code == 403
    unknown = service.call("GET", "/explanations", query={"marker": ids[1]}, caller=OTHER)
    assert unknown.status_code == 404
    assert service.call("GET", "/explanations", query={"stage": "odd"}).status_code == 400


def test_an_explanation_says_whose_it_is_and_links_to_what_is_stored(service: Service) -> None:
    def shown(id_: str, caller: Any = TENANT) -> Any:
        return service.call("GET", f"/explanations/{id_}", caller=caller).json["explanation"]

    def links(explanation: Any) -> dict[str, str]:
        return {one["rel"]: one["href"] for one in explanation["links"]}

    why = refuse(service)
    assert "project_id" not in why, "who was refused knows it"
    found = shown(why["id"])
    (listed_one,) = listed(service)
    for name in ("project_id", "ensemble_id", "ensemble"):
        assert found[name] == listed_one[name]
    assert (found["project_id"], found["ensemble"]) == ("project-a", "shop")
    assert "ensemble" not in links(found), "what was refused at once is not stored"

    body: dict[str, Any] = {"name": "first", "members": LARGE, "decide": {}}
    while service.call("POST", "/ensembles", {"ensemble": body}).status_code == 201:
        body["name"] += "-more"
    body = {"name": "kept", "members": LARGE}
    made = service.call("POST", "/ensembles", {"ensemble": body}).json["ensemble"]
    decided = service.call("POST", "/decisions", {"decision": {"ensemble_id": made["id"]}})
    assert decided.status_code == 409
    id_ = decided.json["errors"][0]["explanation"]["id"]
    for caller in (TENANT, OPERATOR):
        found = shown(id_, caller)
        assert (found["ensemble_id"], found["ensemble"]) == (made["id"], "kept")
        assert links(found)["ensemble"].endswith(f"/v1/ensembles/{made['id']}")
    path, match = f"/ensembles/{made['id']}", {"If-Match": f'"{made["generation"]}"'}
    gone = service.call("DELETE", path, headers=match)
    assert gone.status_code == 204, gone.text
    assert "ensemble" not in links(shown(id_))


def test_minimal_conflicts_are_shown_before_the_bookings_in_the_way(service: Service) -> None:
    amount = {"count": 6, "flavor": "m1.2xlarge"}
    body = {"name": "l", "start": "2026-12-01T00:00:00Z", "duration": "PT1H", "amount": amount}
    assert service.call("POST", "/leases", {"lease": body}).status_code == 201
    answer = service.call("POST", "/leases", {"lease": body})
    assert answer.status_code == 409, answer.text
    why = answer.json["errors"][0]["explanation"]
    assert (why["stage"], why["minimal"]) == ("time", True)
    assert "resources" in why["conflict"][0]
    (other,) = why["more_conflicts"]
    assert not other["minimal"]
    assert other["conflict"][0]["booked"].startswith("lease L1 from")


def test_racks_that_a_fence_names_are_named_to_operators(service: Service) -> None:
    fence = {"name": "inside", "type": "fence", "members": ["db"], "domains": ["r1"]}
    two = [{"name": "db", "count": 2, "flavor": "m1.xlarge"}]
    why = refuse(service, members=two, policies=[*APART, fence], caller=OPERATOR)
    kept = service.call("GET", f"/explanations/{why['id']}", caller=OPERATOR).json["explanation"]
    for told_of in (why, kept):
        needs = {one["policy"]: one["needs"] for one in told_of["conflict"] if "policy" in one}
        assert needs["inside"] == "hosts in r1 for 2 x db"
        assert needs["apart"] == "2 racks for 2 x db (max 1 per rack)"
