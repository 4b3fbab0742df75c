"""What a reshape does with the place of a held decision whose server it moves."""

from typing import Any
from uuid import uuid4

import pytest
from tests.api.placement.test_ended_claims import elsewhere, plain, server_with
from tests.api.placement.test_tickets import PLACEMENT, Cloud, cloud

__all__ = ["cloud"]

PROVIDERS = "/placement/resource_providers"
NESTED = {"OpenStack-API-Version": "placement 1.30"}


def inventories(cloud: Cloud, provider: str) -> Any:
    return cloud.client.simulate_get(f"{PROVIDERS}/{provider}/inventories", headers=PLACEMENT).json


def reshape(cloud: Cloud, server: str, allocations: Any, stock: Any) -> None:
    path = f"/placement/allocations/{server}"
    found = cloud.client.simulate_get(path, headers=PLACEMENT).json
    body = {
        "inventories": stock,
        "allocations": {
            server: {
                "allocations": allocations,
                "project_id": "shop",
                "user_id": "ann",
                "consumer_generation": found["consumer_generation"],
                "consumer_type": "INSTANCE",
            }
        },
    }
    answer = cloud.client.simulate_post("/placement/reshaper", json=body, headers=PLACEMENT)
    assert answer.status_code == 204, answer.text


def used(cloud: Cloud, provider: str) -> dict[str, int]:
    """What is booked of a provider; held places count."""
    path = f"{PROVIDERS}/{provider}/usages"
    return dict(cloud.client.simulate_get(path, headers=PLACEMENT).json["usages"])


def shown(cloud: Cloud) -> dict[str, Any]:
    """Members of role db: status and server."""
    found = cloud.native("GET", f"/ensembles/{cloud.ensemble}/members")["members"]
    return {
        one["name"]: (one["status"], one.get("server_id"))
        for one in found
        if one["name"].startswith("db")
    }


@pytest.mark.parametrize("way", ["put", "reshape"])
def test_a_place_that_is_left_for_another_host_is_left_in_the_same_way(
    cloud: Cloud, way: str
) -> None:
    there = next(iter(cloud.candidates("db").values()))
    server, host = server_with(cloud, there), next(iter(there))
    other = elsewhere(cloud, *[next(iter(one)) for one in cloud.candidates("db").values()], host)
    moved = plain({other: there[host]})
    before = shown(cloud)
    if way == "put":
        assert cloud.put(moved, server, consumer_generation=1).status_code == 204
    else:
        reshape(cloud, server, moved, {host: inventories(cloud, host)})
    assert used(cloud, other) == moved[other]["resources"]
    assert shown(cloud) == before
    assert (
        cloud.client.simulate_delete(
            f"/placement/allocations/{server}", headers=PLACEMENT
        ).status_code
        == 204
    )
    assert {status for status, _ in shown(cloud).values()} == {"held"}


def test_a_place_within_a_reshaped_host_returns_in_its_new_shape(cloud: Cloud) -> None:
    there = next(iter(cloud.candidates("db").values()))
    server, host = server_with(cloud, there), next(iter(there))
    child = str(uuid4())
    made = cloud.client.simulate_post(
        PROVIDERS,
        json={"name": "numa0", "uuid": child, "parent_provider_uuid": host},
        headers=PLACEMENT,
    )
    assert made.status_code in {200, 201}, made.text
    old = inventories(cloud, host)
    stock = {name: one for name, one in old["inventories"].items() if name != "MEMORY_MB"}
    amounts = plain(there)[host]["resources"]
    rest = {name: n for name, n in amounts.items() if name != "MEMORY_MB"}
    memory = {"MEMORY_MB": amounts["MEMORY_MB"]}
    reshape(
        cloud,
        server,
        {host: {"resources": rest}, child: {"resources": memory}},
        {
            host: {**old, "inventories": stock},
            child: {
                "inventories": {"MEMORY_MB": old["inventories"]["MEMORY_MB"]},
                "resource_provider_generation": 0,
            },
        },
    )
    assert (used(cloud, host), used(cloud, child)) == (rest, memory)
    path = f"/placement/allocations/{server}"
    assert cloud.client.simulate_delete(path, headers=PLACEMENT).status_code == 204
    assert shown(cloud) == dict.fromkeys(("db[0]", "db[1]", "db[2]"), ("held", None))
    found = cloud.candidates("db")
    assert rest.items() <= found[host][host]["resources"].items()
    assert memory == found[host][child]["resources"]
