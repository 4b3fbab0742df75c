"""Holds: renewed, released, bounded; decided anew; kept from others."""

from typing import Any

import pytest

from moorage.domain.period import HOUR, MINUTE
from moorage.testing.service import OPERATOR, OTHER, Service
from moorage.usecases.shared.limits import Limits

ANY = {"If-Match": "*"}
ONE = {"name": "one", "members": [{"name": "vm", "count": 1, "resources": {"VCPU": 2}}]}


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json["errors"][0]["code"].removeprefix("ensemble.")


def made(service: Service, **fields: object) -> Any:
    named = {**ONE, "name": service.ids.uuid(), **fields}
    return service.call("POST", "/ensembles", {"ensemble": named})


def test_a_renewed_hold_lives_on(service: Service, held: dict[str, Any]) -> None:
    path = f"/decisions/{held['decision']['id']}"
    service.clock.pass_by(9 * MINUTE)
    answer = service.call("PATCH", path, {"decision": {"hold": "PT30M"}}, headers=ANY)
    assert answer.json["decision"]["expires_at"] == "2026-11-21T09:39:00Z"
    assert answer.json["decision"]["renewals"] == 1
    service.clock.pass_by(29 * MINUTE)
    assert len(service.store.bookings(decision=held["decision"]["id"])) == 9
    service.clock.pass_by(MINUTE)
    assert not service.store.bookings(decision=held["decision"]["id"])
    late = service.call("PATCH", path, {"decision": {"hold": "PT1M"}}, headers=ANY)
    assert code(late) == (409, "hold_expired")


def test_holds_are_bounded(three_racks: str) -> None:
    limits = Limits(longest_hold=HOUR, renewals=1, held_members=3)
    service = Service(three_racks, limits=limits)
    assert code(made(service, decide={"hold": "PT61M"})) == (403, "quota_exceeded")
    first = made(service, decide={"hold": "PT60M"}).json["decision"]["id"]
    path, longer = f"/decisions/{first}", {"decision": {"hold": "PT5M"}}
    assert service.call("PATCH", path, longer, headers=ANY).status_code == 200
    assert code(service.call("PATCH", path, longer, headers=ANY)) == (403, "quota_exceeded")
    members = [{"name": "vm", "count": 3, "resources": {"VCPU": 1}}]
    refused = made(service, members=members, decide={})
    error = refused.json["errors"][0]
    assert (error["limit"], error["used"], error["requested"]) == (3, 1, 3)
    other = {"ensemble": {**ONE, "members": members, "decide": {}}}
    assert service.call("POST", "/ensembles", other, caller=OTHER).status_code == 201
    service.close()


def test_generations_guard_changes(service: Service, held: dict[str, Any]) -> None:
    for path in (f"/ensembles/{held['ensemble']['id']}", f"/decisions/{held['decision']['id']}"):
        shown = service.call("GET", path)
        noun = path.split("/")[1].removesuffix("s")
        generation = shown.json[noun]["generation"]
        assert shown.headers["etag"] == f'"{generation}"'
        stale = {"If-Match": f'"{generation + 7}"'}
        change = {"name": "x"} if noun == "ensemble" else {"hold": "PT5M"}
        assert code(service.call("PATCH", path, {noun: change})) == (428, "precondition_required")
        assert code(service.call("PATCH", path, {noun: change}, headers=stale)) == (
            412,
            "precondition_failed",
        )
        body = {noun: {**change, "generation": generation + 7}}
        assert code(service.call("PATCH", path, body)) == (409, "concurrent_update")
        assert code(service.call("DELETE", path)) == (428, "precondition_required")
        assert code(service.call("DELETE", path, headers=stale)) == (412, "precondition_failed")
        right = service.call("PATCH", path, {noun: {**change, "generation": generation}})
        assert right.status_code == 200


def test_a_released_place_is_free_at_once(
    service: Service, held: dict[str, Any], shop: dict[str, Any]
) -> None:
    path = f"/decisions/{held['decision']['id']}"
    assert service.call("DELETE", path, headers=ANY).status_code == 204
    assert service.call("GET", path).json["decision"]["status"] == "released"
    again = service.call("POST", "/ensembles", {"ensemble": {**shop, "decide": {}}}, caller=OTHER)
    assert again.status_code == 201


def test_deciding_again_replaces_the_hold(service: Service, held: dict[str, Any]) -> None:
    asked = {"decision": {"ensemble_id": held["ensemble"]["id"], "seed": 3}}
    dry = service.call("POST", "/decisions", asked, query={"dry_run": "true"})
    assert (dry.status_code, dry.json["decision"]["dry_run"]) == (200, True)
    assert len(service.store.bookings(decision=held["decision"]["id"])) == 9
    fresh = service.call("POST", "/decisions", asked)
    assert fresh.status_code == 201, fresh.text
    assert not service.store.bookings(decision=held["decision"]["id"])
    assert len(service.store.bookings(decision=fresh.json["decision"]["id"])) == 9
    old = service.call("GET", f"/decisions/{held['decision']['id']}").json["decision"]
    assert old["status"] == "superseded"


def test_the_same_seed_gives_the_same_places(service: Service, shop: dict[str, Any]) -> None:
    body = {"ensemble": {**shop, "decide": {"seed": 5}}}
    answers = [
        service.call("POST", "/ensembles", body, caller=OPERATOR, query={"dry_run": "true"})
        for _ in range(2)
    ]
    places = [
        [(one["member"], one["host"]) for one in answer.json["decision"]["assignments"]]
        for answer in answers
    ]
    assert places[0] == places[1]


def test_growth_keeps_everybody_where_they_are(service: Service, held: dict[str, Any]) -> None:
    path = f"/ensembles/{held['ensemble']['id']}"
    answer = service.call(
        "PATCH",
        path,
        {"ensemble": {"members": [{"name": "web", "count": 5}]}},
        headers=ANY,
    )
    assert answer.status_code == 200, answer.text
    before = {one["member"]: one["domains"] for one in held["decision"]["assignments"]}
    after = {one["member"]: one["domains"] for one in answer.json["decision"]["assignments"]}
    assert set(after) - set(before) == {"web[3]", "web[4]"}
    assert {name: after[name] for name in before} == before
    smaller = service.call(
        "PATCH", path, {"ensemble": {"members": [{"name": "web", "count": 2}]}}, headers=ANY
    )
    assert len(smaller.json["decision"]["assignments"]) == 8
    assert len(service.store.bookings(decision=smaller.json["decision"]["id"])) == 8


@pytest.mark.parametrize(("against", "closed"), [("other_projects", 409), ("tag:noisy", 201)])
def test_an_exclusive_host_stays_closed_to_strangers(
    service: Service, against: str, closed: int
) -> None:
    owner = {
        "name": "exclusive",
        "members": [{"name": "vm", "count": 6, "resources": {"VCPU": 1}}],
        "policies": [
            {"name": "alone", "type": "exclusive", "members": ["vm"], "against": against},
            {"name": "apart", "type": "anti-affinity", "members": ["vm"]},
        ],
        "decide": {},
    }
    kept = service.call("POST", "/ensembles", {"ensemble": owner})
    assert kept.status_code == 201, kept.text
    stranger = {
        "name": "stranger",
        "members": [{"name": "vm", "count": 1, "resources": {"VCPU": 10}}],
        "decide": {},
    }
    answer = service.call("POST", "/ensembles", {"ensemble": stranger}, caller=OTHER)
    assert answer.status_code == closed, answer.text
    mine = service.call("POST", "/ensembles", {"ensemble": stranger})
    assert mine.status_code == 201, "the project itself may come in"


def test_only_members_with_the_tag_are_kept_out(service: Service) -> None:
    owner = {
        "name": "exclusive",
        "members": [{"name": "vm", "count": 9, "resources": {"VCPU": 1}}],
        "policies": [
            {"name": "quiet", "type": "exclusive", "members": ["vm"], "against": "tag:noisy"},
            {"name": "apart", "type": "anti-affinity", "members": ["vm"]},
        ],
        "decide": {},
    }
    kept = service.call("POST", "/ensembles", {"ensemble": owner})
    assert kept.status_code == 201, kept.text

    def asked(*roles: str) -> int:
        members = [
            {
                "name": role,
                "count": 1,
                "resources": {"VCPU": 1},
                "tags": ["noisy"] if role == "builder" else [],
            }
            for role in roles
        ]
        body = {"ensemble": {"name": "-".join(roles), "members": members, "decide": {}}}
        return service.call("POST", "/ensembles", body).status_code

    assert asked("web") == 201
    assert asked("builder") == 409, "every host is kept from it"
    assert asked("builder", "web") == 409

    path = f"/ensembles/{kept.json['ensemble']['id']}"
    smaller = {"ensemble": {"members": [{"name": "vm", "count": 8}]}}
    answer = service.call("PATCH", path, smaller, headers=ANY)
    assert answer.status_code == 200, answer.text
    body = {
        "ensemble": {
            "name": "both",
            "members": [
                {"name": "builder", "count": 1, "resources": {"VCPU": 1}, "tags": ["noisy"]},
                {"name": "web", "count": 1, "resources": {"VCPU": 1}},
            ],
            "policies": [{"name": "apart", "type": "anti-affinity", "members": ["*"]}],
            "decide": {},
        }
    }
    both = service.call("POST", "/ensembles", body)
    assert both.status_code == 201, both.text


def test_deleting_an_ensemble_frees_its_holds(service: Service, held: dict[str, Any]) -> None:
    path = f"/ensembles/{held['ensemble']['id']}"
    assert service.call("DELETE", path, headers=ANY).status_code == 204
    assert service.call("GET", path).status_code == 404
    assert not service.store.bookings(decision=held["decision"]["id"])
    left = service.call("GET", f"/decisions/{held['decision']['id']}")
    assert left.status_code in {200, 404}


def test_what_no_empty_fleet_could_hold_is_refused_at_creation(service: Service) -> None:
    four_racks = {
        "name": "wide",
        "members": [{"name": "vm", "count": 4, "resources": {"VCPU": 1}}],
        "policies": [
            {"name": "racks", "type": "anti-affinity", "members": ["vm"], "level": "rack"}
        ],
    }
    refused = service.call("POST", "/ensembles", {"ensemble": four_racks})
    assert code(refused) == (409, "infeasible")
    why = refused.json["errors"][0]["explanation"]
    assert why["stage"] == "static"
    assert next(one.get("policy") for one in why["conflict"]) == "racks"
    three = {**four_racks, "members": [{"name": "vm", "count": 3, "resources": {"VCPU": 1}}]}
    assert service.call("POST", "/ensembles", {"ensemble": three}).status_code == 201
