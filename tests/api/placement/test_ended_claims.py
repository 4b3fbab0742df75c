"""The claim of a server ends with the server, whatever Nova did with it before."""

from typing import Any
from uuid import uuid4

import pytest
from tests.api.placement.test_tickets import NATIVE, PLACEMENT, Cloud, cloud

__all__ = ["cloud"]


def server_with(cloud: Cloud, allocations: Any) -> str:
    """A server that has taken a held place by its ticket."""
    server = str(uuid4())
    assert cloud.put(allocations, server).status_code == 204
    return server


def plain(allocations: Any) -> Any:
    """Allocations without the ticket."""
    return {
        host: {"resources": {k: n for k, n in one["resources"].items() if "TICKET" not in k}}
        for host, one in allocations.items()
    }


def elsewhere(cloud: Cloud, *hosts: str) -> str:
    """Another host with room for a server of the role."""
    path = "/placement/allocation_candidates?resources=VCPU:8,MEMORY_MB:16384,DISK_GB:160"
    found = cloud.client.simulate_get(path, headers=PLACEMENT).json["provider_summaries"]
    return str(next(one for one in found if one not in hosts))


def post(cloud: Cloud, **consumers: Any) -> None:
    """Write allocations of several consumers at once; underscores are hyphens."""
    body = {
        name.replace("_", "-"): {
            "allocations": allocations,
            "project_id": "shop",
            "user_id": "ann",
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }
        for name, (allocations, generation) in consumers.items()
    }
    answer = cloud.client.simulate_post("/placement/allocations", json=body, headers=PLACEMENT)
    assert answer.status_code == 204, answer.text


def delete(cloud: Cloud, consumer: str) -> None:
    answer = cloud.client.simulate_delete(f"/placement/allocations/{consumer}", headers=PLACEMENT)
    assert answer.status_code == 204, answer.text


def claims(cloud: Cloud) -> dict[str, str]:
    """Server -> the status of its claim."""
    found = cloud.native("GET", f"/decisions/{cloud.decision}/claims")["claims"]
    return {one["server_id"]: one["status"] for one in found}


def migrate(cloud: Cloud, server: str, there: Any, to: str) -> str:
    """Nova books the old host for the migration, and the new one for the server."""
    migration = str(uuid4())
    post(cloud, **{server: ({}, 1), migration: (plain(there), None)})
    assert cloud.put(plain({to: next(iter(there.values()))}), server).status_code == 204
    return migration


@pytest.mark.parametrize("confirmed", [False, True])
def test_all_that_are_deleted_at_once(cloud: Cloud, *, confirmed: bool) -> None:
    seen = cloud.candidates("db")
    servers = [server_with(cloud, one) for one in seen.values()]
    if confirmed:
        cloud.native("POST", f"/decisions/{cloud.decision}/confirm")
    post(cloud, **{one: ({}, 1) for one in servers[:2]})
    assert claims(cloud) == {
        servers[0]: "ended",
        servers[1]: "ended",
        servers[2]: "active",
    }


@pytest.mark.parametrize("confirmed", [False, True])
@pytest.mark.parametrize("server_first", [False, True])
def test_a_server_that_is_deleted_while_it_migrates(
    cloud: Cloud, *, confirmed: bool, server_first: bool
) -> None:
    seen = cloud.candidates("db")
    host, *others = seen
    server, beside = (server_with(cloud, seen[one]) for one in (host, others[0]))
    if confirmed:
        cloud.native("POST", f"/decisions/{cloud.decision}/confirm")
    migration = migrate(cloud, server, seen[host], elsewhere(cloud, *seen))
    assert claims(cloud) == {server: "active", beside: "active"}
    for one in (server, migration) if server_first else (migration, server):
        delete(cloud, one)
    assert claims(cloud) == {server: "ended", beside: "active"}


def test_a_server_that_has_moved_keeps_its_claim(cloud: Cloud) -> None:
    """Another one is just between its two hosts: it has no allocations of its own."""
    seen = cloud.candidates("db")
    one, two, _ = seen
    servers = [server_with(cloud, seen[host]) for host in (one, two)]
    post(cloud, **{servers[1]: ({}, 1), str(uuid4()): (plain(seen[two]), None)})
    migration = migrate(cloud, servers[0], seen[one], elsewhere(cloud, *seen))
    delete(cloud, migration)
    assert claims(cloud) == dict.fromkeys(servers, "active")


def test_a_server_whose_ensemble_is_deleted_before(cloud: Cloud) -> None:
    seen = cloud.candidates("db")
    server = server_with(cloud, next(iter(seen.values())))
    (claim,) = cloud.native("GET", f"/decisions/{cloud.decision}/claims")["claims"]
    path = f"/v1/ensembles/{cloud.ensemble}"
    gone = cloud.client.simulate_delete(path, headers={**NATIVE, "If-Match": "*"})
    assert gone.status_code == 204, gone.text
    assert cloud.native("GET", f"/claims/{claim['id']}")["claim"]["status"] == "active"
    delete(cloud, server)
    assert cloud.native("GET", f"/claims/{claim['id']}")["claim"]["status"] == "ended"


def test_a_server_whose_ensemble_is_deleted_while_it_migrates(cloud: Cloud) -> None:
    seen = cloud.candidates("db")
    host = next(iter(seen))
    server = server_with(cloud, seen[host])
    (claim,) = cloud.native("GET", f"/decisions/{cloud.decision}/claims")["claims"]
    migration = migrate(cloud, server, seen[host], elsewhere(cloud, *seen))
    path = f"/v1/ensembles/{cloud.ensemble}"
    gone = cloud.client.simulate_delete(path, headers={**NATIVE, "If-Match": "*"})
    assert gone.status_code == 204, gone.text
    delete(cloud, migration)
    assert cloud.native("GET", f"/claims/{claim['id']}")["claim"]["status"] == "active"
    delete(cloud, server)
    assert cloud.native("GET", f"/claims/{claim['id']}")["claim"]["status"] == "ended"


@pytest.mark.parametrize("confirmed", [False, True])
def test_a_server_is_deleted_while_another_one_migrates(cloud: Cloud, *, confirmed: bool) -> None:
    """Whose migration is whose is on record: the deleted server is nobody's."""
    seen = cloud.candidates("db")
    host, *others = seen
    server, beside = (server_with(cloud, seen[one]) for one in (host, others[0]))
    if confirmed:
        cloud.native("POST", f"/decisions/{cloud.decision}/confirm")
    migration = migrate(cloud, server, seen[host], elsewhere(cloud, *seen))
    delete(cloud, beside)
    assert claims(cloud) == {server: "active", beside: "ended"}
    delete(cloud, migration)
    assert claims(cloud) == {server: "active", beside: "ended"}
