"""Compliance judges the policies of the steady phase, whatever held at creation."""

from typing import Any

import pytest

from moorage.testing.service import Service

SAME = {"name": "same", "type": "affinity", "members": ["web"]}
APART = {"name": "apart", "type": "anti-affinity", "members": ["web"]}


@pytest.mark.parametrize(
    ("phases", "broken"), [(["steady"], ["apart"]), (["create"], []), (["create", "steady"], [])]
)
def test_policies_of_the_steady_phase_are_judged(
    service: Service, phases: list[str], broken: list[str]
) -> None:
    second: dict[str, Any] = {**APART, "phase": phases}
    if "create" in phases:
        second = {**APART, "phase": phases, "max_per_domain": 2}
    body = {
        "name": "e",
        "members": [{"name": "web", "count": 2, "resources": {"VCPU": 1}}],
        "policies": [SAME, second],
        "decide": {"hold": "PT10M"},
    }
    made = service.call("POST", "/ensembles", {"ensemble": body})
    assert made.status_code == 201, made.text
    path = f"/ensembles/{made.json['ensemble']['id']}"
    shown = service.call("GET", path, query={"compliance": "true"}).json["ensemble"]
    assert [one["policy"] for one in shown["compliance"]] == broken


def test_what_held_only_at_creation_is_judged_no_more(service: Service) -> None:
    body = {
        "name": "e",
        "members": [{"name": "web", "count": 2, "resources": {"VCPU": 1}}],
        "policies": [SAME],
        "decide": {"hold": "PT10M"},
    }
    made = service.call("POST", "/ensembles", {"ensemble": body}).json["ensemble"]
    path = f"/ensembles/{made['id']}"
    later = {"policy": {**APART, "phase": ["create"]}}
    put = service.call("PUT", f"{path}/policies/apart", later, headers={"If-Match": "*"})
    assert put.status_code in {200, 400}, put.text
    shown = service.call("GET", path, query={"compliance": "true"}).json["ensemble"]
    assert shown["compliance"] == []
