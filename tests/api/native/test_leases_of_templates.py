"""`/v1/leases` of what a template describes."""

import uuid
from typing import Any

import pytest
from tests.api.native.test_leases import amount, error, grant

from moorage.testing.service import OTHER, Service

TIER = {
    "parameters": {"count": {"type": "number", "default": 2, "max": 9}, "flavor": {}},
    "name": "tier-of-{count}",
    "members": [{"name": "web", "count": "{count}", "flavor": "{flavor}"}],
    "policies": [{"name": "apart", "type": "anti-affinity", "members": ["web"]}],
}


def of_template(name: str = "tier", **parameters: Any) -> dict[str, Any]:
    template = {"name": name, "parameters": {"flavor": "m1.small"} | parameters}
    return amount(amount=None, template=template)


def keep_tier(service: Service) -> str:
    kept = service.call("POST", "/templates", {"template": {"name": "tier", "source": TIER}})
    assert kept.status_code == 201, kept.text
    found: str = kept.json["template"]["id"]
    return found


def test_a_template_is_leased_and_its_ensemble_remembers_it(service: Service) -> None:
    template = keep_tier(service)
    second = {**TIER, "name": "second"}
    service.call("POST", "/templates/tier/versions", {"template": {"source": second}})
    made = grant(service, of_template("tier@1", count=3)).json
    assert len(made["decision"]["assignments"]) == 3
    assert (made["lease"]["name"], made["ensemble"]["name"]) == ("week", "tier-of-3")
    assert made["ensemble"]["template"] == {"id": template, "version": 1}
    stored = service.call("GET", f"/ensembles/{made['lease']['ensemble_id']}").json["ensemble"]
    assert stored["template"] == made["ensemble"]["template"]
    newest = grant(service, of_template()).json["ensemble"]
    assert (newest["name"], newest["template"]["version"]) == ("second", 2)


def test_a_retried_lease_of_a_template_is_the_same_lease(service: Service) -> None:
    keep_tier(service)
    body = of_template()
    body["lease"]["id"] = str(uuid.UUID(int=7, version=4))
    first = grant(service, body).json["lease"]["id"]
    assert grant(service, body).json["lease"]["id"] == first
    assert len(service.call("GET", "/leases").json["leases"]) == 1


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (of_template("nobody"), 404, "nobody"),
        (of_template("tier@9"), 404, "tier@9"),
        (of_template("tier@x"), 400, "version"),
        (of_template(count=10), 400, "count"),
        (of_template(size=1), 400, "size"),
        (of_template(flavor="m1.nothing"), 400, "m1.nothing"),
        (amount(template={"name": "tier"}), 400, "not more"),
        (amount(amount=None, template={"parameters": {}}), 400, "name"),
    ],
    ids=range(8),
)
def test_a_template_that_makes_nothing_is_no_lease(
    service: Service, body: dict[str, Any], status: int, says: str
) -> None:
    keep_tier(service)
    refused = error(service.call("POST", "/leases", body), status)
    assert says in refused["detail"]
    assert service.call("GET", "/leases").json["leases"] == []
    assert service.call("GET", "/ensembles").json["ensembles"] == []


def test_a_template_of_another_project_is_not_leased(service: Service) -> None:
    keep_tier(service)
    assert service.call("POST", "/leases", of_template(), caller=OTHER).status_code == 404
