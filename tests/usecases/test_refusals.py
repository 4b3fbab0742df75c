"""A refusal under a client's id is answered again alike; explanations have ids of their own."""

from typing import Any

import pytest

from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.shared.limits import Limits

ID = "aaaaaaaa-0000-4000-8000-00000000000b"
TOO_MUCH = [{"name": "x", "count": 1, "resources": {"VCPU": 600}}]


def full(service: Service) -> str:
    """An ensemble of 9 x 8 VCPUs, beside which nobody has room for a second one."""
    body = {"name": "e", "members": [{"name": "x", "count": 8, "resources": {"VCPU": 8}}]}
    made = service.call("POST", "/ensembles", {"ensemble": body}).json["ensemble"]
    others = {**body, "decide": {"hold": "PT1H"}}
    for _ in range(2):
        service.call("POST", "/ensembles", {"ensemble": others}, caller=OTHER)
    return str(made["id"])


def decide(service: Service, ensemble: str, **query: str) -> Any:
    return service.call(
        "POST", "/decisions", {"decision": {"ensemble_id": ensemble, "id": ID}}, query=query
    )


def test_a_refused_decision_is_refused_alike(service: Service) -> None:
    ensemble = full(service)
    assert decide(service, ensemble, dry_run="true").status_code == 409
    first, second = decide(service, ensemble), decide(service, ensemble)
    assert first.status_code == second.status_code == 409
    (one,), (other,) = first.json["errors"], second.json["errors"]
    assert one["code"] == other["code"] == "ensemble.infeasible"
    assert one["explanation"] == other["explanation"]
    shown = service.call("GET", f"/decisions/{ID}/explanation").json["explanation"]
    assert (shown["ensemble_id"], shown["project_id"]) == (ensemble, "project-a")
    subject = {"ensemble", "ensemble_id", "project_id", "links"}
    assert {key: shown[key] for key in shown.keys() - subject} == {
        key: value for key, value in one["explanation"].items() if key != "links"
    }
    assert shown["id"] != ID
    assert service.call("GET", f"/decisions/{ID}/explanation", caller=OTHER).status_code == 404
    as_operator = service.call(
        "GET", f"/decisions/{ID}/explanation", caller=OPERATOR, query={"instance": "true"}
    )
    assert as_operator.json["explanation"]["instance"]


@pytest.mark.parametrize("more", [{}, {"decide": {}}], ids=["described", "decided"])
def test_a_refused_ensemble_is_refused_alike(service: Service, more: dict[str, Any]) -> None:
    body = {"ensemble": {"id": ID, "name": "n", "members": TOO_MUCH, **more}}
    told = [service.call("POST", "/ensembles", body).json["errors"][0] for _ in range(2)]
    assert told[0]["code"] == "ensemble.infeasible"
    assert told[0]["explanation"] == told[1]["explanation"]
    smaller = [{**TOO_MUCH[0], "resources": {"VCPU": 1}}]
    other = {"ensemble": {**body["ensemble"], "members": smaller}}
    made = service.call("POST", "/ensembles", other)
    assert made.status_code == 201, "a refusal made nothing that has the id"
    again = service.call("POST", "/ensembles", other)
    assert again.json["ensemble"]["id"] == made.json["ensemble"]["id"]


def test_an_id_of_another_project_tells_nothing(service: Service) -> None:
    body = {"ensemble": {"id": ID, "name": "n", "members": TOO_MUCH}}
    mine = service.call("POST", "/ensembles", body).json["errors"][0]
    theirs = service.call("POST", "/ensembles", body, caller=OTHER).json["errors"][0]
    assert mine["code"] == theirs["code"] == "ensemble.infeasible"
    assert mine["explanation"]["id"] != theirs["explanation"]["id"]


def test_a_project_keeps_its_newest_explanations(three_racks: str) -> None:
    service = Service(three_racks, limits=Limits(explanations=2))
    asked = {"explanation": {"members": TOO_MUCH}}
    (theirs,) = _asked(service, asked, 1, OTHER)
    mine = _asked(service, asked, 4)
    kept = [service.call("GET", f"/explanations/{one}").status_code for one in mine]
    assert kept == [404, 404, 200, 200]
    assert service.call("GET", f"/explanations/{theirs}", caller=OTHER).status_code == 200
    service.close()


def _asked(service: Service, asked: Any, times: int, *caller: Any) -> list[str]:
    by: dict[str, Any] = {"caller": caller[0]} if caller else {}
    return [
        service.call("POST", "/explanations", asked, **by).json["explanation"]["id"]
        for _ in range(times)
    ]


@pytest.mark.parametrize("type_", ["fence", "ban"])
def test_a_name_that_means_nothing_is_told_to_everybody(service: Service, type_: str) -> None:
    """A misspelt rack would otherwise make all infeasible; a host's name tells a tenant nothing."""
    policy = {"name": "on", "type": type_, "members": ["a"], "domains": ["rr1"]}
    body = {
        "name": "e",
        "members": [{"name": "a", "count": 1, "resources": {"VCPU": 1}}],
        "policies": [policy],
    }
    for caller, kind in ((TENANT, "zone or aggregate"), (OPERATOR, "host, domain or aggregate")):
        told = service.call("POST", "/ensembles", {"ensemble": body}, caller=caller)
        assert told.status_code == 400, told.text
        (error,) = told.json["errors"]
        assert f"no such {kind}: rr1" in error["detail"]
        assert "policies[0].domains" in told.text
    known = {**body, "policies": [{**policy, "domains": ["h1"]}]}
    assert service.call("POST", "/ensembles", {"ensemble": known}).status_code == 400
    made = service.call("POST", "/ensembles", {"ensemble": known}, caller=OPERATOR)
    assert made.status_code == 201, made.text


@pytest.mark.parametrize(
    ("type_", "real"), [("fence", "HW_CPU_X86_AVX2"), ("ban", "HW_CPU_X86_SGX")]
)
def test_a_trait_that_nobody_knows_is_told(service: Service, type_: str, real: str) -> None:
    """Misspelt, a ban would keep nobody out, and a fence would let nobody in."""
    policy = {"name": "on", "type": type_, "members": ["a"], "traits": ["HW_CPU_X86_AVX3"]}
    member = {"name": "a", "count": 1, "resources": {"VCPU": 1}}
    body = {"name": "e", "members": [member], "policies": [policy]}
    told = service.call("POST", "/ensembles", {"ensemble": body})
    assert told.status_code == 400, told.text
    assert "no such trait: HW_CPU_X86_AVX3" in told.text
    assert "policies[0].traits" in told.text
    known = {**body, "policies": [{**policy, "traits": [real]}]}
    assert service.call("POST", "/ensembles", {"ensemble": known}).status_code == 201


def test_what_would_help_the_empty_fleet_is_told_whatever_it_changes() -> None:
    """A list of traits, or of the places of a policy, is no number."""
    fleet = """\
fleet: full
hosts:
  - {name: h0, inventories: {VCPU: 4}}
  - {name: h1, inventories: {VCPU: 4}, traits: [CUSTOM_B]}
  - {name: h2, inventories: {CUSTOM_GOLD: 1}, traits: [CUSTOM_A]}
"""
    service = Service(fleet)
    try:
        load = {"name": "load", "members": [{"name": "x", "count": 2, "resources": {"VCPU": 4}}]}
        held = {**load, "decide": {"hold": "PT1H"}}
        made = service.call("POST", "/ensembles", {"ensemble": held}, caller=OPERATOR)
        assert made.status_code == 201, made.text
        role = {"name": "a", "count": 1, "resources": {"VCPU": 1}}
        fence = {"type": "fence", "members": ["a"], "domains": ["h0"], "traits": ["CUSTOM_B"]}
        bodies: tuple[dict[str, Any], ...] = (
            {"members": [{**role, "required": ["CUSTOM_A"]}]},
            {"members": [role], "policies": [{"name": "p", **fence}]},
        )
        for number, body in enumerate(bodies):
            asked = {"name": f"n{number}", **body, "decide": {}}
            answer = service.call("POST", "/ensembles", {"ensemble": asked}, caller=OPERATOR)
            assert answer.status_code == 409, answer.text
            why = answer.json["errors"][0]["explanation"]
            assert why["stage"] == "static"
            assert {one["result"] for one in why["relaxations"]} == {"fits the fleet when empty"}
    finally:
        service.close()
