"""`/v1/events` and `/v1/subscriptions` on the wire: pages, waiting, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest
from falcon.testing import TestClient

from moorage.api.native import create_app
from moorage.domain.changes import Changeset, PutEvent, TrimEvents
from moorage.domain.events import EVENT_TYPES, DerivedEvent
from moorage.domain.quotas import QuotaDefaults, QuotaName
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, Service
from moorage.usecases.ports import Caller

URL = "http://127.0.0.1:9/hook"


def happen(service: Service, *subjects: str, project: str = "project-a") -> None:
    told = (PutEvent(DerivedEvent("lease.active", project, one, 0)) for one in subjects)
    service.store.commit(Changeset(tuple(told)))


def events(service: Service, **query: object) -> Any:
    answer = service.call("GET", "/events", query=query)
    assert answer.status_code == 200, answer.text
    return answer.json


def test_an_ensemble_tells_its_story_in_order(service: Service) -> None:
    start = events(service, after="now")
    assert start["events"] == []
    body = {
        "name": "shop",
        "members": [{"name": "web", "count": 2, "flavor": "m1.xlarge"}],
        "decide": {"hold": "PT10M"},
    }
    made = service.call("POST", "/ensembles", {"ensemble": body}).json
    ensemble, decision = made["ensemble"]["id"], made["decision"]["id"]
    service.call(
        "POST",
        f"/decisions/{decision}/claims",
        {"claim": {"member": "web[0]", "server": {"flavor": "m1.xlarge"}}},
    )
    service.call("DELETE", f"/decisions/{decision}", headers={"If-Match": "*"})
    service.call("DELETE", f"/ensembles/{ensemble}", headers={"If-Match": "*"})
    found = events(service, after=start["cursor"])
    said = [(one["type"], one["subject"]) for one in found["events"]]
    assert [one for one in said if one[1] in {ensemble, decision}] == [
        ("ensemble.created", ensemble),
        ("decision.held", decision),
        ("decision.released", decision),
        ("ensemble.deleted", ensemble),
    ]
    assert "claim.building" in {type_ for type_, _ in said}
    known = {one.name: set(one.body) for one in EVENT_TYPES}
    for one in found["events"]:
        assert set(one["body"]) == known[one["type"]]
    assert events(service, after=found["cursor"])["events"] == []
    # A tenant reads its own, an operator everybody's.
    assert service.call("GET", "/events", caller=OTHER).json["events"] == []
    everybody = service.call("GET", "/events", caller=OPERATOR, query={"all_projects": "true"})
    assert len(everybody.json["events"]) == len(found["events"])
    refused = service.call("GET", "/events", query={"all_projects": "true"})
    assert refused.status_code == 403


def test_an_event_names_who_caused_it(service: Service) -> None:
    ann = replace(TENANT, request_id="req-1", global_request_id="req-0")
    body = {"ensemble": {"name": "shop", "members": [{"name": "web", "flavor": "m1.small"}]}}
    made = service.call("POST", "/ensembles", body, caller=ann).json["ensemble"]
    path = f"/ensembles/{made['id']}"
    operator = replace(OPERATOR, request_id="req-2")
    service.call("DELETE", path, caller=operator, headers={"If-Match": "*"})

    def who(caller: Caller, **query: str) -> dict[str, list[object]]:
        query["subject"] = made["id"]
        found = service.call("GET", "/events", caller=caller, query=query)
        names = ("user", "user_project_id", "request_id", "global_request_id", "by")
        return {one["type"]: [one[name] for name in names] for one in found.json["events"]}

    own = ["ann", "project-a", "req-1", "req-0", None]
    assert who(OPERATOR, all_projects="true") == {
        "ensemble.created": own,
        "ensemble.deleted": ["op", "operations", "req-2", None, None],
    }
    assert who(TENANT) == {
        "ensemble.created": own,
        "ensemble.deleted": ["operator", None, None, None, None],
    }


def test_who_waits_is_answered_when_something_happens(service: Service) -> None:
    cursor = events(service, after="now")["cursor"]
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            happen(service, "late")

    service.env = replace(service.env, pause=pause, stopwatch=lambda: float(len(pauses)))
    service._client = TestClient(create_app(service.env, clock=service.clock))
    found = events(service, after=cursor, wait="20")
    assert [one["subject"] for one in found["events"]] == ["late"]
    assert len(pauses) == 3
    assert events(service, after=found["cursor"], wait="PT5S")["events"] == []
    assert len(pauses) == 8


def test_several_subjects_are_read_in_one_order(service: Service) -> None:
    happen(service, "a", "b", "c", "a")
    found = events(service, subject="c,a")["events"]
    assert [one["subject"] for one in found] == ["a", "c", "a"]
    many = service.call("GET", "/events", query={"subject": ",".join(map(str, range(101)))})
    assert (many.status_code, many.json["errors"][0]["code"]) == (
        400,
        "ensemble.invalid_description",
    )


def test_a_reader_that_is_too_late_is_told_where_to_go_on(service: Service) -> None:
    happen(service, "a")
    cursor = events(service)["cursor"]
    happen(service, "b")
    happen(service, "c")
    service.store.commit(Changeset((TrimEvents(before=0, keep=1, most=100),)))
    answer = service.call("GET", "/events", query={"after": cursor})
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"]) == (410, "ensemble.events_lost")
    assert error["before"] == "2026-11-21T09:00:00Z"
    found = events(service, after=error["oldest"])
    assert [one["subject"] for one in found["events"]] == ["c"]


def test_a_reader_from_the_start_is_told_of_what_is_gone(service: Service) -> None:
    cursor = events(service)["cursor"]
    assert "lost_before" in (first := events(service))
    assert first["lost_before"] is None
    happen(service, "a")
    happen(service, "b")
    service.store.commit(Changeset((TrimEvents(before=0, keep=1, most=100),)))
    answer = service.call("GET", "/events", query={"after": cursor})
    assert (answer.status_code, answer.json["errors"][0]["code"]) == (410, "ensemble.events_lost")
    found = events(service)
    assert [one["subject"] for one in found["events"]] == ["b"]
    assert found["lost_before"] == "2026-11-21T09:00:00Z"
    assert events(service, after=found["cursor"])["lost_before"] is None


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"after": "17"}, "after"),
        ({"after": "zz-1"}, "after"),
        ({"after": "-1-2"}, "after"),
        ({"after": "9" * 30 + "-1"}, "after"),
        ({"type": "lease.bogus"}, "type"),
        ({"type": "lease.*,moon"}, "type"),
        ({"wait": "1h"}, "wait"),
        ({"wait": "soon"}, "wait"),
        ({"limit": "0"}, "limit"),
        ({"offset": "0"}, "offset"),
    ],
)
def test_bad_questions_are_refused(service: Service, query: dict[str, str], path: str) -> None:
    answer = service.call("GET", "/events", query=query)
    assert (answer.status_code, answer.json["errors"][0]["path"]) == (400, path)


BAD: list[tuple[dict[str, object], int]] = [
    ({"events": []}, 400),
    ({"events": ["lease.bogus"]}, 400),
    ({"events": ["lease.*"], "url": "file:///etc/passwd"}, 400),
    ({"events": ["lease.*"], "url": "http://user:secret@example.org/"}, 400),
    ({"events": ["lease.*"], "secret": "short"}, 400),
    ({"events": ["lease.*"], "below": 3}, 400),
    ({"events": ["lease.time_left"]}, 400),
    ({"events": ["lease.time_left"], "before": "PT0S"}, 400),
    ({"events": ["lease.time_left"], "before": "soon"}, 400),
    ({"events": ["ensemble.max_additional"], "role": "web"}, 400),
    ({"events": ["ensemble.max_additional"], "below": 3}, 400),
    ({"events": ["ensemble.max_additional"], "role": "web", "below": 0}, 400),
    ({"events": ["lease.*"], "lease_id": "9d2c1f5e-8d3b-4c0a-9f3e-1a2b3c4d5e6f"}, 404),
    ({"events": ["lease.*"], "ensemble_id": "9d2c1f5e-8d3b-4c0a-9f3e-1a2b3c4d5e6f"}, 404),
    ({"events": ["capacity.threshold"], "flavor": "m1.xlarge", "below": 3}, 403),
    ({"events": ["lease.*"], "colour": "red"}, 400),
]


@pytest.mark.parametrize(("body", "status"), BAD)
def test_bad_subscriptions_are_refused_and_leave_nothing(
    service: Service, body: dict[str, object], status: int
) -> None:
    asked = {"subscription": {"url": URL, **body}}
    answer = service.call("POST", "/subscriptions", asked)
    assert answer.status_code == status, answer.text
    assert service.call("GET", "/subscriptions").json["subscriptions"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"flavor": "m1.xlarge"},
        {"flavor": "m1.xlarge", "below": 3, "above_share": 0.5},
        {"flavor": "m1.xlarge", "resource_class": "VCPU", "below": 3},
        {"flavor": "m1.xlarge", "above_share": 0.5},
        {"resource_class": "VCPU", "above_share": 1.5},
    ],
)
def test_bad_capacity_thresholds_are_refused(service: Service, body: dict[str, object]) -> None:
    asked = {"subscription": {"url": URL, "events": ["capacity.threshold"], **body}}
    assert service.call("POST", "/subscriptions", asked, caller=OPERATOR).status_code == 400


def test_limits_targets_and_dry_runs(service: Service) -> None:
    strict = replace(
        service.env.limits,
        quotas=QuotaDefaults({QuotaName.SUBSCRIPTIONS: 1}),
        public_targets=True,
    )
    service.env = replace(service.env, limits=strict)

    service._client = TestClient(create_app(service.env, clock=service.clock))
    asked = {"subscription": {"url": URL, "events": ["lease.*"]}}
    assert service.call("POST", "/subscriptions", asked).status_code == 403
    asked["subscription"]["url"] = "https://hooks.example.org/x"
    tried = service.call("POST", "/subscriptions", asked, query={"dry_run": "true"})
    assert (tried.status_code, tried.json["dry_run"]) == (200, True)
    assert service.call("POST", "/subscriptions", asked, caller=READER).status_code == 403
    made = service.call("POST", "/subscriptions", asked)
    assert made.status_code == 201
    assert made.json["subscription"]["secret"].startswith("whsec_")
    over = service.call("POST", "/subscriptions", asked)
    assert (over.status_code, over.json["errors"][0]["limit"]) == (403, 1)
