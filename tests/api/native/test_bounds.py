"""What one project may store, and how large one ensemble may be."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from falcon.testing import TestClient

from moorage.api.native import create_app
from moorage.domain.period import MINUTE
from moorage.domain.quotas import QuotaDefaults, QuotaName
from moorage.testing.service import OPERATOR, OTHER, Service
from moorage.usecases.shared.limits import Limits

ROLE = {"name": "web", "count": 1, "resources": {"VCPU": 1}}


def described(name: str, **more: object) -> dict[str, Any]:
    return {"ensemble": {"name": name, **more}}


@pytest.fixture
def serving() -> Iterator[Callable[[Limits], Service]]:
    """Makes services with other limits, and closes them."""
    made: list[Service] = []

    def make(limits: Limits) -> Service:
        made.append(Service(limits=limits))
        return made[-1]

    yield make
    for one in made:
        one.close()


def refused(answer: Any) -> dict[str, Any]:
    error: dict[str, Any] = answer.json["errors"][0]
    assert answer.status_code == error["status"], answer.json
    return error


def test_the_name_of_an_ensemble_is_its_projects_only_one(service: Service) -> None:
    first = service.call("POST", "/ensembles", described("shop")).json["ensemble"]
    error = refused(service.call("POST", "/ensembles", described("shop")))
    assert (error["status"], error["code"]) == (409, "ensemble.name_taken")
    assert error["existing"] == first["id"]
    assert first["id"] in error["detail"]
    held = service.call("POST", "/ensembles", described("shop"), query={"dry_run": "true"})
    assert refused(held)["existing"] == first["id"]
    assert service.call("POST", "/ensembles", described("shop"), caller=OTHER).status_code == 201


def test_the_same_request_gets_the_same_ensemble_and_another_is_refused(service: Service) -> None:
    mine = described("shop", id="11111111-2222-4333-8444-555555555555")
    first = service.call("POST", "/ensembles", mine)
    assert first.status_code == 201
    assert service.call("POST", "/ensembles", mine).json["ensemble"] == first.json["ensemble"]
    other = described("shop", id="11111111-2222-4333-8444-555555555556")
    assert refused(service.call("POST", "/ensembles", other))["code"] == "ensemble.name_taken"


def test_an_ensemble_is_not_renamed_to_the_name_of_another(service: Service) -> None:
    service.call("POST", "/ensembles", described("shop"))
    two = service.call("POST", "/ensembles", described("two")).json["ensemble"]
    where, anything = f"/ensembles/{two['id']}", {"If-Match": "*"}
    error = refused(service.call("PATCH", where, described("shop"), headers=anything))
    assert error["code"] == "ensemble.name_taken"
    assert service.call("PATCH", where, described("two"), headers=anything).status_code == 200
    assert service.call("PATCH", where, described("three"), headers=anything).status_code == 200


def test_ensembles_and_templates_have_quotas_that_operators_set(
    serving: Callable[[Limits], Service],
) -> None:
    quotas = QuotaDefaults({QuotaName.ENSEMBLES: 1, QuotaName.TEMPLATES: 1})
    service = serving(Limits(quotas=quotas))
    template = {"template": {"name": "t", "format": "moorage", "source": {"members": [ROLE]}}}
    assert service.call("POST", "/ensembles", described("a")).status_code == 201
    assert service.call("POST", "/templates", template).status_code == 201
    told = refused(service.call("POST", "/ensembles", described("b")))
    assert (told["status"], told["code"], told["quota"]) == (
        403,
        "ensemble.quota_exceeded",
        "ensembles",
    )
    assert (told["limit"], told["used"], told["requested"]) == (1, 1, 1)
    revised = {"template": {"format": "moorage", "source": {"members": [ROLE]}}}
    again = refused(service.call("POST", "/templates/t/versions", revised))
    assert again["quota"] == "templates"
    shown = service.call("GET", "/quotas/project-a").json["quota"]
    assert (shown["ensembles"]["used"], shown["templates"]["left"]) == (1, 0)
    body = {"quota": {"ensembles": 2, "templates": "unlimited"}}
    set_ = service.call("PATCH", "/quotas/project-a", body, caller=OPERATOR)
    assert set_.status_code == 200, set_.json
    assert service.call("POST", "/ensembles", described("b")).status_code == 201
    assert service.call("POST", "/templates/t/versions", revised).status_code == 201
    assert refused(service.call("POST", "/ensembles", described("c")))["limit"] == 2


@pytest.mark.parametrize(
    ("limits", "more", "setting"),
    [
        (Limits(members=2), {"members": [{**ROLE, "count": 3}]}, "ensemble_members"),
        (Limits(roles=1), {"members": [ROLE, {**ROLE, "name": "db"}]}, "ensemble_roles"),
        (Limits(metadata=20), {"metadata": {"key": "v" * 20}}, "metadata_bytes"),
        (Limits(description=300), {"members": [{**ROLE, "tags": ["x" * 255]}]}, "ensemble_bytes"),
    ],
)
def test_an_ensemble_too_large_is_refused_by_its_measure(
    limits: Limits, more: dict[str, Any], setting: str, serving: Callable[[Limits], Service]
) -> None:
    service = serving(limits)
    error = refused(service.call("POST", "/ensembles", described("a", **more)))
    assert (error["status"], error["code"]) == (403, "ensemble.quota_exceeded")
    assert f"({setting})" in error["detail"], error


def test_what_is_too_large_already_may_shrink(service: Service) -> None:
    fat = described("a", metadata={f"k{n}": "v" * 100 for n in range(8)})
    made = service.call("POST", "/ensembles", fat).json["ensemble"]
    service.env = replace(service.env, limits=Limits(metadata=100))
    service._client = TestClient(create_app(service.env, clock=service.clock))
    where, anything = f"/ensembles/{made['id']}", {"If-Match": "*"}
    larger = {"ensemble": {"metadata": {f"k{n}": "v" * 100 for n in range(9)}}}
    smaller = {"ensemble": {"metadata": {f"k{n}": "v" * 100 for n in range(7)}}}
    assert refused(service.call("PATCH", where, larger, headers=anything))["limit"] == 100
    assert service.call("PATCH", where, smaller, headers=anything).status_code == 200


def test_who_has_given_its_places_back_or_lost_them_leaves_its_name(service: Service) -> None:
    asked = described("shop", members=[ROLE], decide={"hold": "PT10M"})
    first = service.call("POST", "/ensembles", asked).json
    assert first["decision"]["status"] == "held"
    assert refused(service.call("POST", "/ensembles", asked))["code"] == "ensemble.name_taken"
    service.clock.pass_by(11 * MINUTE)
    second = service.call("POST", "/ensembles", asked).json["ensemble"]
    error = refused(service.call("POST", "/ensembles", asked))
    assert error["existing"] == second["id"]


@pytest.mark.parametrize("how", ["decide", "change", "lease"])
def test_who_left_its_name_is_not_placed_again_under_it_while_another_has_it(
    service: Service, how: str
) -> None:
    asked = described("shop", members=[ROLE], decide={"hold": "PT10M"})
    first = service.call("POST", "/ensembles", asked).json["ensemble"]
    service.clock.pass_by(11 * MINUTE)
    second = service.call("POST", "/ensembles", asked).json["ensemble"]
    where, anything = f"/ensembles/{first['id']}", {"If-Match": "*"}

    def again() -> Any:
        if how == "decide":
            return service.call("POST", "/decisions", {"decision": {"ensemble_id": first["id"]}})
        if how == "change":
            more = {
                "ensemble": {"members": [{"name": "web", "count": 2}], "decide": {"hold": "PT10M"}}
            }
            return service.call("PATCH", where, more, headers=anything)
        lease = {"name": "l", "ensemble_id": first["id"], "duration": "PT1H"}
        return service.call("POST", "/leases", {"lease": lease})

    error = refused(again())
    assert (error["code"], error["existing"]) == ("ensemble.name_taken", second["id"])
    renamed = service.call("PATCH", where, described("stall"), headers=anything)
    assert renamed.status_code == 200, renamed.text
    assert again().status_code in {200, 201}
