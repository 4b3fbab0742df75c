"""Nova's candidates and writes where a pool is kept: who borrows from it is on it."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from falcon.testing import TestClient
from tests.api.placement.test_tickets import ADMIN, PLACEMENT

from moorage.app import create_app
from moorage.settings import configure, read
from moorage.testing.ledger_copy import private_ledger
from moorage.testing.service import HandClock

FLEET = """\
fleet: store
hosts:
  - {name: "n{n}", count: 2, inventories: {VCPU: 8}, aggregates: [all]}
sharing:
  - {name: fast, inventories: {DISK_GB: 300}, aggregates: [all], traits: [CUSTOM_SSD]}
  - {name: slow, inventories: {DISK_GB: 300}, aggregates: [all], traits: [CUSTOM_OLD]}
"""
KEPT = {
    "name": "kept",
    "members": [
        {
            "name": "data",
            "kind": "volume",
            "resources": {"DISK_GB": 10},
            "required": ["CUSTOM_SSD"],
        }
    ],
    "policies": [
        {"name": "alone", "type": "exclusive", "members": ["data"], "on_violation": "refuse"}
    ],
    "decide": {},
}


@pytest.fixture
def client() -> Iterator[TestClient]:
    clock, database = HandClock(), "sqlite://"
    store = private_ledger(clock, FLEET)
    application = create_app(configure(read({"database": database}, {}, ())), store=store)
    yield TestClient(application)
    store.close()


def names(client: TestClient) -> dict[str, str]:
    """UUID -> name."""
    answer = client.simulate_get("/placement/resource_providers", headers=PLACEMENT)
    return {one["uuid"]: one["name"] for one in answer.json["resource_providers"]}


def candidates(client: TestClient) -> list[tuple[str, ...]]:
    """Names of the providers of each candidate for a server that needs a disk."""
    path = "/placement/allocation_candidates?resources=VCPU:1,DISK_GB:1"
    answer = client.simulate_get(path, headers=PLACEMENT)
    known = names(client)
    every = (one["allocations"] for one in answer.json["allocation_requests"])
    return sorted(tuple(sorted(known[uuid] for uuid in one)) for one in every)


def put(client: TestClient, host: str, pool: str, project: str) -> Any:
    uuids = {name: uuid for uuid, name in names(client).items()}
    amounts = {uuids[host]: {"VCPU": 1}, uuids[pool]: {"DISK_GB": 1}}
    body = {
        "allocations": {uuid: {"resources": taken} for uuid, taken in amounts.items()},
        "project_id": project,
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return client.simulate_put(f"/placement/allocations/{uuid4()}", json=body, headers=PLACEMENT)


def test_a_kept_pool_lends_nothing_to_servers_of_others(client: TestClient) -> None:
    every = [(pool, host) for pool in ("fast", "slow") for host in ("n1", "n2")]
    assert candidates(client) == sorted(tuple(sorted(one)) for one in every)
    made = client.simulate_post("/v1/ensembles", json={"ensemble": KEPT}, headers=ADMIN)
    assert made.status_code == 201, made.text
    assert candidates(client) == [("n1", "slow"), ("n2", "slow")]
    refused = put(client, "n1", "fast", "other")
    assert refused.status_code == 409
    assert "fast is exclusive to others" in refused.text
    assert put(client, "n1", "slow", "other").status_code == 204
    project = made.json["ensemble"]["project_id"]
    assert put(client, "n1", "fast", project).status_code == 204


def test_a_policy_that_is_broken_on_every_host_forbids_no_move(client: TestClient) -> None:
    """Pools are no hosts for servers, though policies would let them be there."""
    members = [{"name": "web", "resources": {"VCPU": 1}}, *KEPT["members"]]
    ban = {"type": "ban", "members": ["web"], "traits": ["CUSTOM_OLD"], "on_violation": "refuse"}
    body = {"name": "shop", "members": members, "policies": [ban], "decide": {}}
    made = client.simulate_post("/v1/ensembles", json={"ensemble": body}, headers=ADMIN)
    assert made.status_code == 201, made.text
    path = f"/v1/decisions/{made.json['decision']['id']}/claims"
    claim = {"member": "web[0]", "server": {"resources": {"VCPU": 1}}}
    claimed = client.simulate_post(path, json={"claim": claim}, headers=ADMIN)
    assert claimed.status_code == 201, claimed.text
    server = str(uuid4())
    path = f"/v1/claims/{claimed.json['claim']['id']}"
    active = {"claim": {"server_id": server, "status": "active"}}
    assert client.simulate_patch(path, json=active, headers=ADMIN).status_code == 200
    known = names(client)
    for uuid, name in known.items():
        if name.startswith("n"):
            path = f"/placement/resource_providers/{uuid}/traits"
            generation = client.simulate_get(path, headers=PLACEMENT).json
            old = {
                "traits": ["CUSTOM_OLD"],
                "resource_provider_generation": generation["resource_provider_generation"],
            }
            assert client.simulate_put(path, json=old, headers=PLACEMENT).status_code == 200
    path = f"/placement/allocations/{server}"
    shown = client.simulate_get(path, headers=PLACEMENT).json
    (here,) = shown["allocations"]
    there = next(uuid for uuid, name in known.items() if name[0] == "n" and uuid != here)
    asked = {**PLACEMENT, "X-Openstack-Request-Id": f"req-{server}"}
    answer = client.simulate_get("/placement/allocation_candidates?resources=VCPU:1", headers=asked)
    offered = {next(iter(one["allocations"])) for one in answer.json["allocation_requests"]}
    assert offered == {here, there}
    moved = {
        "allocations": {there: {"resources": {"VCPU": 1}}},
        "project_id": shown["project_id"],
        "user_id": shown["user_id"],
        "consumer_generation": shown["consumer_generation"],
        "consumer_type": "INSTANCE",
    }
    answer = client.simulate_put(path, json=moved, headers=PLACEMENT)
    assert answer.status_code == 204, answer.text
