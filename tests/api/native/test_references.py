"""Policies that refer to another ensemble: apart from it, or near it, while it stays."""

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.testing.service import OPERATOR, OTHER, Service

from tests.api.native.conftest import refused  # isort: skip
from tests.api.native.test_groups import FLEET, created  # isort: skip

WEB: dict[str, Any] = {"name": "web", "count": 2, "flavor": "m1.small"}
APART = {"name": "apart", "type": "separation", "between": [["web"], ["ensemble:shop"]],
         "level": "rack"}  # fmt: skip
NEAR = {**APART, "name": "near", "type": "proximity"}


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service(FLEET)
    yield found
    found.close()


@pytest.fixture
def shop(service: Service) -> str:
    """An ensemble with all its members in one rack."""
    near = {"type": "affinity", "members": ["db"], "level": "rack"}
    role = {"name": "db", "count": 2, "flavor": "m1.small"}
    body = {"name": "shop", "members": [role], "policies": [near]}
    return str(created(service, body, hold="PT1H")["ensemble"]["id"])


def site(*policies: Any, name: str = "site") -> dict[str, Any]:
    return {"name": name, "members": [WEB], "policies": list(policies)}


def rack_names(service: Service, ensemble: str) -> set[str]:
    return set(rack_of(service, ensemble).values())


def rack_of(service: Service, ensemble: str) -> dict[str, str]:
    """The racks as operators see them: labels differ between ensembles."""
    path = f"/ensembles/{ensemble}/members"
    members = service.call("GET", path, caller=OPERATOR).json["members"]
    return {one["name"]: one["domains"]["rack"] for one in members}


def compliance(service: Service, ensemble: str) -> list[tuple[str, str]]:
    answer = service.call("GET", f"/ensembles/{ensemble}", query={"compliance": "true"})
    return [(one["policy"], one["text"]) for one in answer.json["ensemble"]["compliance"]]


def test_it_is_apart_from_the_other_which_stays(service: Service, shop: str) -> None:
    before = rack_of(service, shop)
    made = created(service, site(APART))["ensemble"]
    assert made["policies"][0]["between"] == [["web"], [f"ensemble:{shop}"]]
    assert not rack_names(service, made["id"]) & rack_names(service, shop)
    assert rack_of(service, shop) == before
    assert compliance(service, made["id"]) == []


def test_each_member_is_near_some_member_of_the_other(service: Service, shop: str) -> None:
    made = created(service, site(NEAR))["ensemble"]
    assert rack_names(service, made["id"]) == rack_names(service, shop)


def test_a_refusal_names_the_other(service: Service, shop: str) -> None:
    both = {"ensemble": {**site(APART, NEAR), "decide": {}}}
    error = refused(service.call("POST", "/ensembles", both), 409, "infeasible")
    needs = " ".join(one.get("needs", "") for one in error["explanation"]["conflict"])
    assert f"ensemble {shop}" in needs


def test_what_is_not_placed_is_apart_from_everything_and_near_nothing(service: Service) -> None:
    body = {"name": "shop", "members": [{**WEB, "name": "db"}]}
    assert service.call("POST", "/ensembles", {"ensemble": body}).status_code == 201
    created(service, site(APART))
    near = {"ensemble": {**site(NEAR, name="other"), "decide": {}}}
    refused(service.call("POST", "/ensembles", near), 409, "infeasible")


def test_growth_keeps_it_and_a_later_policy_is_judged(service: Service, shop: str) -> None:
    made = created(service, site(), hold="PT1H")["ensemble"]
    path = f"/ensembles/{made['id']}"
    answer = service.call("PUT", f"{path}/policies/near", {"policy": NEAR},
                          headers={"If-Match": "*"})  # fmt: skip
    assert answer.status_code == 200, answer.text
    outside = rack_names(service, made["id"]) - rack_names(service, shop)
    assert bool(compliance(service, made["id"])) == bool(outside)
    grown = service.call("POST", f"{path}/extend", {"extend": {"role": "web", "count": 1}})
    assert grown.status_code in (200, 201), grown.text
    assert {rack_of(service, made["id"])["web[2]"]} == rack_names(service, shop)


def test_a_deleted_other_is_reported(service: Service, shop: str) -> None:
    made = created(service, site(APART), hold="PT1H")["ensemble"]
    assert service.call("DELETE", f"/ensembles/{shop}", headers={"If-Match": "*"}).status_code < 300
    said = f"ensemble {shop}, to which the policy refers, is deleted"
    assert compliance(service, made["id"]) == [("apart", said)]
    path = f"/ensembles/{made['id']}"
    grown = service.call("POST", f"{path}/extend", {"extend": {"role": "web", "count": 1}})
    assert grown.status_code in (200, 201), grown.text
    renamed = service.call("PATCH", path, {"ensemble": {"metadata": {"a": "b"}}},
                           headers={"If-Match": "*"})  # fmt: skip
    assert renamed.status_code == 200, renamed.text
    again = service.call("PUT", f"{path}/policies/apart", {"policy": {**APART, "level": "host"}},
                         headers={"If-Match": "*"})  # fmt: skip
    refused(again, 400, "unknown_name")


@pytest.mark.parametrize(
    ("policy", "code", "text"),
    [
        ({**APART, "between": [["web"], ["ensemble:sohp"]]}, "unknown_name", "no such ensemble"),
        ({**APART, "between": [["web"], ["ensemble:"]]}, "unknown_name", "no such ensemble"),
        ({**APART, "between": [["ensemble:shop"], ["ensemble:shop"]]}, "invalid_description",
         "at least one selector"),
        ({**APART, "between": [["web"], ["ensemble:shop"], ["ensemble:shop"]]},
         "invalid_description", " is on two sides"),
        ({**NEAR, "between": [["ensemble:shop"], ["web"]]}, "invalid_description",
         "first side names roles"),
        ({**NEAR, "between": [["web"], ["db", "ensemble:shop"]]}, "invalid_description",
         "roles, groups and copies, or else other ensembles"),
        ({**NEAR, "members": ["web"], "between": "roles"}, "invalid_description", "one of members"),
        ({"type": "affinity", "members": ["ensemble:shop"]}, "invalid_description",
         "selects nothing here"),
        ({"type": "affinity", "between": [["web"], ["ensemble:shop"]]}, "invalid_description",
         "no parameter 'between'"),
    ],
)  # fmt: skip
def test_bad_references_are_refused(
    service: Service, shop: str, policy: Any, code: str, text: str
) -> None:
    assert shop
    error = refused(service.call("POST", "/ensembles", {"ensemble": site(policy)}), 400, code)
    assert text in error["detail"]


def test_others_ensembles_are_unknown_and_ones_own_is_no_side(service: Service, shop: str) -> None:
    answer = service.call("POST", "/ensembles", {"ensemble": site(APART)}, caller=OTHER)
    refused(answer, 400, "unknown_name")
    by_id = {**APART, "between": [["web"], [f"ensemble:{shop}"]]}
    answer = service.call("POST", "/ensembles", {"ensemble": site(by_id)}, caller=OTHER)
    refused(answer, 400, "unknown_name")
    made = created(service, site())["ensemble"]
    own = {**APART, "between": [["web"], ["ensemble:site"]]}
    path = f"/ensembles/{made['id']}/policies/apart"
    answer = service.call("PUT", path, {"policy": own}, headers={"If-Match": "*"})
    assert "a side of its own" in refused(answer, 400, "invalid_description")["detail"]


def test_references_are_bounded(service: Service) -> None:
    sides = [["web"], *([f"ensemble:e{i}"] for i in range(21))]
    many = {**APART, "between": sides}
    answer = service.call("POST", "/ensembles", {"ensemble": site(many)})
    assert "ensembles to which policies refer" in answer.text
    assert answer.status_code in (400, 403)


def test_a_role_is_not_named_as_a_reference(service: Service) -> None:
    body = {"name": "e", "members": [{**WEB, "name": "ensemble:x"}]}
    answer = service.call("POST", "/ensembles", {"ensemble": body})
    assert "another ensemble" in refused(answer, 400, "invalid_description")["detail"]


def test_a_lease_depends_on_no_other_ensemble(service: Service, shop: str) -> None:
    assert shop
    lease = {"name": "l", "start": "2027-01-01T00:00:00Z", "end": "2027-01-02T00:00:00Z",
             "ensemble": {"members": [WEB], "policies": [APART]}}  # fmt: skip
    answer = service.call("POST", "/leases", {"lease": lease})
    assert "may move before" in refused(answer, 400, "invalid_description")["detail"]
