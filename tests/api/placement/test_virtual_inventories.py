"""No provider has an inventory of a class that Moorage answers for itself."""

from typing import Any

import httpx
import pytest
from tests.api.placement.test_tickets import PLACEMENT, Cloud, cloud

from moorage.domain.virtual_classes import HOURS, PREEMPTIBLE
from moorage.testing import in_process

__all__ = ["cloud"]

REFUSED = "is a virtual resource class of Moorage: no provider can have an inventory of it"


def call(cloud: Cloud, method: str, path: str, body: Any = None) -> httpx.Response:
    application = httpx.WSGITransport(cloud.client.app)
    with httpx.Client(transport=application, base_url=in_process.ENDPOINT) as client:
        return client.request(method, f"/placement{path}", json=body, headers=PLACEMENT)


def virtual(cloud: Cloud, which: str) -> str:
    """The name of a virtual class."""
    if which == "ticket":
        return str(cloud.flavors["db"]["resource_class"])
    if which == "reservation":
        role = {"name": "web", "count": 1, "flavor": "m1.small"}
        asked = {"name": "l", "duration": "PT1H", "ensemble": {"name": "e", "members": [role]}}
        made = cloud.native("POST", "/leases", {"lease": asked})
        return str(made["lease"]["reservations"][0]["resource_class"])
    return which


@pytest.mark.parametrize("which", ["ticket", "reservation", HOURS, PREEMPTIBLE])
def test_an_inventory_of_a_virtual_class_is_refused(cloud: Cloud, which: str) -> None:
    name = virtual(cloud, which)
    assert call(cloud, "PUT", f"/resource_classes/{name}").status_code == 201
    seen = cloud.candidates("db")
    host = next(iter(seen))
    path = f"/resource_providers/{host}/inventories"
    before = call(cloud, "GET", path).json()
    stock = {**before["inventories"], name: {"total": 1}}
    put = {**before, "inventories": stock}
    shape = {"inventories": {host: put}, "allocations": {}}
    for answer in (
        call(cloud, "POST", path, {"resource_class": name, "total": 1}),
        call(cloud, "PUT", path, put),
        call(cloud, "POST", "/reshaper", shape),
    ):
        assert answer.status_code == 400, answer.text
        assert f"{name} {REFUSED}" in answer.text
    assert call(cloud, "GET", path).json() == before
    assert cloud.candidates("db") == seen


@pytest.mark.parametrize(
    "name", ["CUSTOM_MOORAGE_BERTH", "CUSTOM_RESERVATION_0B1E9D5C_3F1A_4A6E_8F5B_6F1D2C3B4A59"]
)
def test_any_other_class_has_inventories(cloud: Cloud, name: str) -> None:
    """Blazar, beside an ordinary Placement, makes classes for its reservations."""
    assert call(cloud, "PUT", f"/resource_classes/{name}").status_code == 201
    host = next(iter(cloud.candidates("db")))
    path = f"/resource_providers/{host}/inventories"
    assert call(cloud, "POST", path, {"resource_class": name, "total": 1}).status_code == 201
    found = call(cloud, "GET", f"/allocation_candidates?resources={name}:1,VCPU:1").json()
    assert list(found["provider_summaries"]) == [host]
