"""`/v1/leases` over a real ledger: answers, refusals, retries, filters, who sees what."""

import uuid
from typing import Any

import pytest

from moorage.domain.leases import reservation_class
from moorage.domain.period import DAY, HOUR, parse_instant
from moorage.testing.service import OPERATOR, OTHER, Service

START = "2026-11-23T08:00:00Z"
END = "2026-11-27T18:00:00Z"
ANY = {"If-Match": "*"}


def amount(count: int = 2, **more: Any) -> dict[str, Any]:
    body = {"name": "week", "amount": {"flavor": "m1.2xlarge", "count": count}}
    return {"lease": body | {"start": START, "end": END} | more}


def grant(service: Service, body: dict[str, Any]) -> Any:
    answer = service.call("POST", "/leases", body)
    assert answer.status_code == 201, answer.text
    return answer


def error(answer: Any, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json["errors"][0]


@pytest.fixture
def lease(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = grant(service, amount()).json["lease"]
    return found


def test_a_lease_is_granted_with_its_placement(service: Service) -> None:
    service.call("PATCH", "/quotas/project-a", {"quota": {"lease_priority": 5}}, caller=OPERATOR)
    answer = grant(service, amount(lead="PT30M", expiry="PT2H", on_end=["notify"], priority=5))
    lease, decision = answer.json["lease"], answer.json["decision"]
    assert answer.headers["location"] == f"/v1/leases/{lease['id']}"
    assert answer.headers["etag"] == f'"{lease["generation"]}"'
    assert (lease["status"], lease["guarantee"]) == ("pending", "proved")
    assert (lease["degraded"], lease["missing"]) == (False, 0)
    assert (lease["start"], lease["end"]) == (START, END)
    assert (lease["lead"], lease["cleaning"], lease["expiry"]) == ("PT30M", "PT0S", "PT2H")
    assert lease["expires_at"] == "2026-11-23T10:00:00Z"
    assert lease["priority"] == 5
    assert lease["before_start"] == ["bounded", "preemptible"]
    assert lease["on_end"] == ["notify"]
    assert lease["displaced"] == {"count": 0}
    assert decision["id"] == lease["decision_id"]
    assert decision["lease_id"] == lease["id"]
    assert decision["interval"] == {"start": "2026-11-23T07:30:00Z", "end": END}
    assert len({one["domains"]["host"] for one in decision["assignments"]}) == 2
    (reservation,) = lease["reservations"]
    assert reservation | {"id": ""} == {
        "id": "",
        "role": "server",
        "kind": "server",
        "resource_class": reservation_class(reservation["id"]),
        "flavor": "m1.2xlarge",
        "count": 2,
        "claimed": 0,
        "remaining": 2,
    }


def test_a_described_ensemble_and_one_that_is_there_are_leased(
    service: Service, shop: dict[str, Any]
) -> None:
    ensemble = {name: shop[name] for name in ("name", "members", "policies")}
    body = {"lease": {"name": "w", "ensemble": ensemble, "start": START, "duration": "P4DT10H"}}
    described = grant(service, body).json
    assert described["lease"]["end"] == END
    assert described["ensemble"]["name"] == "shop"
    assert len(described["decision"]["assignments"]) == 9
    assert all(one["satisfied"] for one in described["decision"]["policies"])
    service.call("DELETE", f"/leases/{described['lease']['id']}", headers=ANY)
    mine = service.call("POST", "/ensembles", {"ensemble": ensemble}).json["ensemble"]["id"]
    given = {"lease": {"name": "w", "ensemble_id": mine, "start": START, "end": END}}
    assert grant(service, given).json["lease"]["ensemble_id"] == mine
    assert error(service.call("POST", "/leases", given), 409)["code"] == "ensemble.wrong_state"


def test_it_is_shown_listed_and_found_by_filters(service: Service, lease: dict[str, Any]) -> None:
    shown = service.call("GET", f"/leases/{lease['id']}")
    assert shown.json["lease"] == lease
    assert lease["handle"] == "L1"
    assert shown.headers["etag"] == f'"{lease["generation"]}"'
    grant(
        service, amount(1, name="other", start="2026-12-01T08:00:00Z", end="2026-12-02T00:00:00Z")
    )

    def names(**query: Any) -> list[str]:
        found = service.call("GET", "/leases", query=query).json["leases"]
        return [one["name"] for one in found]

    assert names() == ["week", "other"]
    assert names(name="other") == ["other"]
    assert names(state="pending") == ["week", "other"]
    assert names(state="active") == []
    assert names(project_id="project-a") == ["week", "other"]
    first = service.call("GET", "/leases", query={"limit": 1}).json
    assert [one["name"] for one in first["leases"]] == ["week"]
    assert first["computed_at"] == "2026-11-21T09:00:00Z"
    assert f"marker={lease['id']}" in first["leases_links"][0]["href"]
    assert names(limit=1, marker=lease["id"]) == ["other"]
    listed = first["leases"][0]
    assert set(listed["reservations"][0]) == {"id", "role", "kind", "resource_class"}
    assert "displaced" not in listed


@pytest.mark.parametrize("query", [{"state": "open"}, {"limit": "0"}, {"colour": "blue"}], ids=str)
def test_filters_that_mean_nothing_are_refused(service: Service, query: dict[str, str]) -> None:
    error(service.call("GET", "/leases", query=query), 400)


def test_the_same_request_with_the_same_id_is_the_same_lease(service: Service) -> None:
    body = amount(id=str(uuid.uuid4()))
    first = grant(service, body).json["lease"]
    assert first["id"] != body["lease"]["id"]
    assert grant(service, body).json["lease"] == first
    other = service.call("POST", "/leases", amount(1, id=body["lease"]["id"]))
    assert error(other, 409)["code"] == "ensemble.duplicate_name"
    assert len(service.call("GET", "/leases").json["leases"]) == 1


def test_a_dry_run_writes_nothing(service: Service) -> None:
    before = service.store.snapshot().revision
    answer = service.call("POST", "/leases", amount(), query={"dry_run": "true"})
    assert answer.status_code == 200
    assert answer.json["dry_run"] is True
    assert answer.json["computed_at"] == "2026-11-21T09:00:00Z"
    assert answer.json["revision"] == before
    assert "location" not in answer.headers
    assert service.store.snapshot().revision == before
    assert service.call("GET", "/leases").json["leases"] == []


def test_what_cannot_be_proved_is_refused_with_an_explanation(service: Service) -> None:
    grant(service, amount(4))
    refused = error(service.call("POST", "/leases", amount(4, name="second")), 409)
    assert refused["code"] == "ensemble.infeasible"
    explanation = refused["explanation"]
    assert explanation["verdict"] == "infeasible"
    path = f"/explanations/{explanation['id']}"
    assert service.call("GET", path).json["explanation"]["id"] == explanation["id"]
    assert service.call("GET", path, caller=OTHER).status_code == 404
    after = amount(4, name="third", start=END, end="2026-11-30T00:00:00Z")
    grant(service, after)


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"start": "2026-11-20T08:00:00Z"}, 400, "invalid_description"),
        ({"start": "2026-11-19T08:00:00Z", "end": "2026-11-20T08:00:00Z"}, 400, None),
        ({"end": START}, 400, "invalid_description"),
        ({"end": "2026-11-22T08:00:00Z"}, 400, "invalid_description"),
        ({"end": "2126-11-22T08:00:00Z"}, 403, "quota_exceeded"),
        ({"start": "2031-11-23T08:00:00Z", "end": "2031-11-24T08:00:00Z"}, 403, "quota_exceeded"),
        ({"amount": {"flavor": "m1.nothing", "count": 1}}, 400, "unknown_name"),
        ({"amount": {"flavor": "m1.small", "count": 0}}, 400, "invalid_description"),
        ({"before_start": ["anybody"]}, 400, "invalid_description"),
        ({"on_end": ["explode"]}, 400, "invalid_description"),
        ({"start": 7}, 400, "invalid_description"),
    ],
    ids=[
        "starts in the past",
        "in the past",
        "empty",
        "upside down",
        "a century",
        "too far ahead",
        "unknown flavor",
        "nothing",
        "anybody",
        "action",
        "number",
    ],
)
def test_bad_input_is_typed(
    service: Service, more: dict[str, Any], status: int, code: str | None
) -> None:
    told = error(service.call("POST", "/leases", amount(**more)), status)
    assert told["code"] == f"ensemble.{code or 'invalid_description'}"
    assert service.call("GET", "/leases").json["leases"] == []


@pytest.mark.parametrize("count", [201, 10_000])
def test_ten_thousand_reservations_are_refused(service: Service, count: int) -> None:
    members = [{"name": f"r{n}", "count": 1, "flavor": "m1.small"} for n in range(count)]
    body = {"name": "many", "ensemble": {"members": members}, "start": START, "end": END}
    answer = service.call("POST", "/leases", {"lease": body})
    assert error(answer, 403 if count <= 1000 else 400)


def test_changes_name_their_generation(service: Service, lease: dict[str, Any]) -> None:
    path, change = f"/leases/{lease['id']}", {"lease": {"name": "december"}}
    assert error(service.call("PATCH", path, change), 428)
    stale = {"If-Match": '"77"'}
    assert error(service.call("PATCH", path, change, headers=stale), 412)
    body = {"lease": {"name": "december", "generation": 77}}
    assert error(service.call("PATCH", path, body), 409)["code"] == "ensemble.concurrent_update"
    assert error(service.call("DELETE", path), 428)
    match = {"If-Match": f'"{lease["generation"]}"'}
    renamed = service.call("PATCH", path, change, headers=match)
    assert renamed.status_code == 200, renamed.text
    assert renamed.json["lease"]["name"] == "december"
    assert renamed.json["lease"]["generation"] > lease["generation"]
    assert renamed.headers["etag"] == f'"{renamed.json["lease"]["generation"]}"'


def test_a_change_is_answered_with_the_lease_and_its_placement(
    service: Service, lease: dict[str, Any]
) -> None:
    path, start = f"/leases/{lease['id']}", "2026-11-30T08:00:00Z"
    terms = {"start": start, "duration": "P4DT10H", "counts": {"server": 4}}
    change = {"lease": terms}
    dry = service.call("PATCH", path, change, headers=ANY, query={"dry_run": "true"})
    assert dry.json["dry_run"] is True, dry.text
    assert service.call("GET", path).json["lease"] == lease
    changed = service.call("PATCH", path, change, headers=ANY)
    assert changed.status_code == 200, changed.text
    now = service.call("GET", path).json["lease"]
    assert changed.json["lease"] == now
    assert (now["start"], now["end"]) == (start, "2026-12-04T18:00:00Z")
    assert [one["count"] for one in now["reservations"]] == [4]
    assert now["reservations"][0]["id"] == lease["reservations"][0]["id"]
    assert len(changed.json["decision"]["assignments"]) == 4


def test_cancelling_gives_the_places_back(service: Service, lease: dict[str, Any]) -> None:
    path = f"/leases/{lease['id']}"
    dry = service.call("DELETE", path, headers=ANY, query={"dry_run": "true"})
    assert dry.status_code == 204
    assert service.call("GET", path).json["lease"]["status"] == "pending"
    assert service.call("DELETE", path, headers=ANY).status_code == 204
    assert service.call("GET", path).json["lease"]["status"] == "closed"
    assert error(service.call("DELETE", path, headers=ANY), 409)["code"] == "ensemble.wrong_state"
    grant(service, amount(6))


def test_who_makes_room_is_named_to_operators_and_counted_to_tenants(service: Service) -> None:
    body = {
        "name": "batch",
        "members": [{"name": "n", "count": 6, "flavor": "m1.2xlarge"}],
        "decide": {"hold": "PT1H", "preemptible": True},
    }
    made = service.call("POST", "/ensembles", {"ensemble": body}, caller=OTHER)
    assert made.status_code == 201, made.text
    assert made.json["decision"]["preemptible"] is True
    lease = grant(service, amount(2)).json["lease"]
    assert lease["displaced"] == {"count": 2}
    path = f"/leases/{lease['id']}"
    assert service.call("GET", path).json["lease"]["displaced"] == {"count": 2}
    told = service.call("GET", path, caller=OPERATOR).json["lease"]["displaced"]
    assert told["count"] == 2
    assert {one["project_id"] for one in told["consumers"]} == {"project-b"}
    assert {one["declared_end"] for one in told["consumers"]} == {None}
    limit = parse_instant(START)
    assert all(parse_instant(one["end"]) <= limit for one in told["consumers"])


def test_until_and_preemptible_are_said_of_a_decision(service: Service) -> None:
    grant(service, amount(6))
    members = [{"name": "n", "count": 6, "flavor": "m1.2xlarge"}]

    def place(**more: Any) -> Any:
        decide = {"hold": "PT1H", **more}
        body = {"name": "before", "members": members, "decide": decide}
        return service.call("POST", "/ensembles", {"ensemble": body})

    assert error(place(), 409)["code"] == "ensemble.infeasible"
    assert error(place(until="2026-11-23T08:00:01Z"), 409)["code"] == "ensemble.infeasible"
    assert error(place(until="soon"), 400)["path"] == "until"
    assert error(place(until="2026-11-20T08:00:00Z"), 400)
    until = place(until=START)
    assert until.status_code == 201, until.text
    decision = until.json["decision"]
    assert decision["interval"] == {"start": "2026-11-21T09:00:00Z", "end": START}
    assert (decision["preemptible"], decision["lease_id"]) == (False, None)
    service.call("DELETE", f"/ensembles/{until.json['ensemble']['id']}", headers=ANY)
    yields = place(preemptible=True)
    assert yields.status_code == 201, yields.text
    ends = [one.get("until") for one in yields.json["decision"]["assignments"]]
    assert ends == ["2026-11-23T07:55:00Z"] * 6


def test_who_makes_way_for_a_lease_is_told_once_when_it_is_placed(
    service: Service,
) -> None:
    """In the answer, in a dry run as well; and with the warning that everybody gets."""
    lease = grant(service, amount(6)).json["lease"]
    body = {
        "name": "batch",
        "members": [{"name": "n", "count": 1, "flavor": "m1.2xlarge"}],
        "decide": {"hold": "PT1H", "preemptible": True},
    }
    dry = service.call("POST", "/ensembles", {"ensemble": body}, query={"dry_run": "true"})
    made = service.call("POST", "/ensembles", {"ensemble": body})
    for answer in (dry, made):
        assert answer.status_code in {200, 201}, answer.text
        (place,) = answer.json["decision"]["assignments"]
        assert place["until"] == "2026-11-23T07:55:00Z"
    ensemble, decision = made.json["ensemble"]["id"], made.json["decision"]["id"]
    store = service.store
    (member,) = store.ensemble(ensemble).members

    def told(subject: str) -> list[tuple[str, object, object, object]]:
        return [
            (one.kind.value, one.details["member"], one.details["ends"], one.details["lease"])
            for one in store.effects(subject)
        ]

    warned = ("warn", "n[0]", "2026-11-23T07:55:00Z", lease["id"])
    evicted = ("evict", *warned[1:])
    assert told(member.uuid) == [warned, evicted]

    claim = service.call(
        "POST",
        f"/decisions/{decision}/claims",
        {"claim": {"member": "n[0]", "server": {"flavor": "m1.2xlarge"}}},
    )
    assert claim.status_code == 201, claim.text
    server = "5eb00000-0000-4000-8000-000000000001"
    path = f"/claims/{claim.json['claim']['id']}"
    active = service.call("PATCH", path, {"claim": {"status": "active", "server_id": server}})
    assert active.status_code == 200, active.text
    assert told(server) == [evicted]
    assert told(member.uuid) == [warned]
    (again,) = service.call("GET", f"/decisions/{decision}").json["decision"]["assignments"]
    assert again["until"] == "2026-11-23T07:55:00Z"


def test_events_are_what_lies_ahead_in_order(service: Service) -> None:
    lease = grant(service, amount(lead="PT1H", expiry="PT2H", before_end=["notify:PT24H"])).json[
        "lease"
    ]
    path = f"/leases/{lease['id']}/events"
    events = service.call("GET", path).json["events"]
    due = {one["kind"]: one["due"] for one in events}
    start, end = parse_instant(START), parse_instant(END)
    assert {kind: parse_instant(at) for kind, at in due.items()} == {
        "prepare": start - HOUR,
        "activate": start,
        "release": start + 2 * HOUR,
        "act": end - DAY,
        "end": end,
        "close": end,
    }
    assert {one["status"] for one in events} == {"pending"}
    assert [one["action"] for one in events if one["kind"] == "act"] == ["notify:P1D"]
    assert "details" not in events[0]
    assert "details" in service.call("GET", path, caller=OPERATOR).json["events"][0]
    first = service.call("GET", path, query={"limit": 2}).json
    assert len(first["events"]) == 2
    rest = service.call("GET", path, query={"marker": first["events"][-1]["id"]}).json["events"]
    assert [*first["events"], *rest] == events


def test_a_lead_that_would_begin_in_the_past_names_the_longest(service: Service) -> None:
    near: dict[str, Any] = {"start": "2026-11-21T09:20:00Z", "end": "2026-11-21T12:00:00Z"}
    refused = error(service.call("POST", "/leases", amount(**near, lead="PT30M")), 400)
    assert (refused["code"], refused["path"]) == ("ensemble.lead_too_long", "lease.lead")
    assert refused["longest"] == "PT20M"
    assert grant(service, amount(**near, lead="PT20M")).status_code == 201
