"""Route by role, and project by project."""

import re
from typing import Any

import pytest

from moorage.api.native.access import Access
from moorage.api.native.routes import ROUTES, simulation
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, HandClock, Service
from moorage.usecases.ports import Caller

ALL = (*ROUTES, *simulation(HandClock()))
SERVICE = Caller("agent", "service", frozenset({"service"}))
MANAGER = Caller("max", "project-a", frozenset({"manager"}))
STRANGER = Caller("eve", "project-a", frozenset({"unrelated"}))
IN_SYSTEM = Caller("root", "", frozenset({"admin", "member"}), project_scoped=False)

MAY = {
    Access.ANYONE: {IN_SYSTEM, OPERATOR, SERVICE, MANAGER, TENANT, READER, STRANGER},
    Access.READER: {OPERATOR, SERVICE, MANAGER, TENANT, READER},
    Access.MEMBER: {OPERATOR, SERVICE, MANAGER, TENANT},
    Access.OPERATOR: {OPERATOR, SERVICE},
}
ABSENT = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize("route", ALL, ids=lambda route: f"{route.method}{route.path}")
def test_roles_open_exactly_their_routes(service: Service, route: Any) -> None:
    path = re.sub(r"\{\w+(:\w+)?\}", ABSENT, route.path)
    for caller in MAY[Access.ANYONE]:
        # An empty body passes no struct: whoever may come in gets 400 or 404, nobody else does.
        answer = service.call(route.method, path, {}, caller=caller, headers={"If-Match": "*"})
        forbidden = answer.status_code == 403
        assert forbidden == (caller not in MAY[route.access]), (caller.roles, answer.text)
        assert answer.status_code != 500


def test_what_a_route_needs_is_what_the_design_says() -> None:
    operators = {(one.method, one.path) for one in ALL if one.access is Access.OPERATOR}
    assert operators == {
        ("POST", "/flavors"),
        ("POST", "/flavors/load"),
        ("DELETE", "/flavors/{name}"),
        ("GET", "/topology/domains"),
        ("PUT", "/topology/domains"),
        ("GET", "/fleet"),
        ("POST", "/fleet"),
        ("GET", "/bookings"),
        ("PUT", "/simulation/clock"),
    }
    writes = [one for one in ALL if one.method != "GET"]
    assert all(one.access in {Access.MEMBER, Access.OPERATOR} for one in writes)
    assert {one.path for one in ALL if one.access is Access.ANYONE} == {"/", "/openapi.json"}


def others(held: dict[str, Any], claim: str) -> list[tuple[str, str, Any]]:
    ensemble, decision = held["ensemble"]["id"], held["decision"]["id"]
    mine = f"/ensembles/{ensemble}"
    return [
        ("GET", mine, None),
        ("PATCH", mine, {"ensemble": {"name": "stolen"}}),
        ("DELETE", mine, None),
        ("GET", f"{mine}/survivability", None),
        ("GET", f"{mine}/members", None),
        ("GET", f"{mine}/members/db[0]", None),
        ("POST", f"{mine}/members", {"member": {"role": {"name": "db", "count": 1}}}),
        ("DELETE", f"{mine}/members/db[0]", None),
        ("GET", f"{mine}/policies", None),
        ("GET", f"{mine}/policies/db-ha", None),
        (
            "PUT",
            f"{mine}/policies/db-ha",
            {"policy": {"type": "survive", "members": ["db"], "keep": 1}},
        ),
        ("DELETE", f"{mine}/policies/db-ha", None),
        ("POST", "/decisions", {"decision": {"ensemble_id": ensemble}}),
        ("GET", f"/decisions?ensemble_id={ensemble}", None),
        ("GET", f"/decisions/{decision}", None),
        ("PATCH", f"/decisions/{decision}", {"decision": {"hold": "PT1M"}}),
        ("DELETE", f"/decisions/{decision}", None),
        ("POST", f"/decisions/{decision}/confirm", {}),
        ("GET", f"/decisions/{decision}/claims", None),
        (
            "POST",
            f"/decisions/{decision}/claims",
            {"claim": {"member": "db[1]", "server": {"flavorRef": "m1.xlarge"}}},
        ),
        ("GET", f"/claims/{claim}", None),
        ("PATCH", f"/claims/{claim}", {"claim": {"status": "failed"}}),
    ]


def test_another_projects_things_do_not_exist(service: Service, held: dict[str, Any]) -> None:
    claim = service.call(
        "POST",
        f"/decisions/{held['decision']['id']}/claims",
        {"claim": {"member": "db[0]", "server": {"flavorRef": "m1.xlarge"}}},
    ).json["claim"]["id"]
    before = service.store.snapshot().revision
    for method, path, body in others(held, claim):
        bare, _, query = path.partition("?")
        asked = dict([query.split("=")]) if query else {}
        answer = service.call(
            method, bare, body, caller=OTHER, headers={"If-Match": "*"}, query=asked
        )
        assert answer.status_code == 404, (method, path, answer.text)
        assert answer.json["errors"][0]["code"] == "ensemble.not_found"
    assert service.store.snapshot().revision == before
    assert service.call("GET", f"/claims/{claim}", caller=OPERATOR).status_code == 200


def test_listings_are_of_ones_own_project(service: Service, held: dict[str, Any]) -> None:
    for noun in ("ensembles", "decisions"):
        assert len(service.call("GET", f"/{noun}").json[noun]) == 1
        assert service.call("GET", f"/{noun}", caller=OTHER).json[noun] == []
        everything = service.call(
            "GET", f"/{noun}", caller=OPERATOR, query={"all_projects": "true"}
        )
        assert len(everything.json[noun]) == 1
        curious = service.call("GET", f"/{noun}", caller=OTHER, query={"all_projects": "true"})
        assert curious.status_code == 403


def test_an_explanation_is_its_projects_own_and_its_instance_the_operators(
    service: Service, held: dict[str, Any]
) -> None:
    asked = {"explanation": {"members": [{"name": "db", "count": 2, "resources": {"VCPU": 400}}]}}
    why = service.call("POST", "/explanations", asked).json["explanation"]
    assert why["verdict"] == "infeasible"
    assert why["counts"]["considered"] == "1+"
    path = f"/explanations/{why['id']}"
    assert service.call("GET", path).status_code == 200
    assert service.call("GET", path, caller=OTHER).status_code == 404
    assert service.call("GET", path, query={"instance": "true"}).status_code == 403
    full = service.call("GET", path, caller=OPERATOR, query={"instance": "true"}).json[
        "explanation"
    ]
    assert full["counts"]["considered"] == 9
    assert full["instance"]["kind"] == "request"
