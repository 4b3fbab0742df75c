"""What a lease's flavor asks, against a real server, with osc-placement and at every microversion.

The words of leases are resource classes, so every version of the wire can say them.
"""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.test_osc_placement import Openstack
from tests.servers.replica import MEMBER, Replica

pytestmark = [
    pytest.mark.process,
    # The client's own deprecations are not ours to repair.
    pytest.mark.filterwarnings("ignore"),
]

NOVA = {"X-Auth-Token": "nova:service", "X-Roles": "service", "Content-Type": "application/json"}
HOURS = "CUSTOM_MOORAGE_HOURS"
SECONDS = 100


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    """`moorage serve` on a database of its own, with two hosts that no test fills."""
    home = tmp_path_factory.mktemp("leased")
    found = Replica(home, f"sqlite:///{home}/ledger.db")
    found.start()
    found.up()
    for name in ("h1", "h2"):
        host = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        call(found, "POST", "/resource_providers", {"name": name, "uuid": host})
        stock = {
            "resource_provider_generation": 0,
            "inventories": {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 8192}},
        }
        call(found, "PUT", f"/resource_providers/{host}/inventories", stock)
    yield found
    found.down()


def call(
    server: Replica, method: str, path: str, body: object = None, version: str = "1.36"
) -> Any:
    """Nova's request; the body of a good answer."""
    headers = {**NOVA, "OpenStack-API-Version": f"placement {version}"}
    status, answer = server.ask(method, f"/placement{path}", body, headers)
    assert status < 300, answer
    return answer


def lease(server: Replica, count: int) -> str:
    """The class of a lease of so many servers of 4 VCPU, which has begun."""
    roles = [{"name": "db", "count": count, "resources": {"VCPU": 4, "MEMORY_MB": 512}}]
    asked = {
        "name": str(uuid.uuid4()),
        "duration": "PT1H",
        "ensemble": {"name": str(uuid.uuid4()), "members": roles},
    }
    status, answer = server.ask("POST", "/v1/leases", {"lease": asked}, MEMBER)
    assert status == 201, answer
    path, limit = f"/v1/leases/{answer['lease']['id']}", time.monotonic() + SECONDS
    while server.ask("GET", path, None, MEMBER)[1]["lease"]["status"] != "active":
        assert time.monotonic() < limit, server.log()
        time.sleep(0.05)
    return str(answer["lease"]["reservations"][0]["resource_class"])


@pytest.mark.parametrize("version", ["1.10", "1.12", "1.17", "1.28", "1.29", "1.36", "1.39"])
def test_every_version_draws_from_a_lease(server: Replica, version: str) -> None:
    name = lease(server, 1)
    query = f"/allocation_candidates?resources=VCPU:4,MEMORY_MB:512,{name}:1"
    found = call(server, "GET", query, version=version)
    (candidate,) = found["allocation_requests"]
    (summary,) = found["provider_summaries"].values()
    assert summary["resources"][name] == {"capacity": 1, "used": 0}
    body = {**candidate, "project_id": "project-a", "user_id": "ann"}
    minor = int(version.partition(".")[2])
    if minor >= 28:
        body["consumer_generation"] = None
    if minor >= 38:
        body["consumer_type"] = "INSTANCE"
    instance = str(uuid.uuid4())
    call(server, "PUT", f"/allocations/{instance}", body, version)
    (had,) = call(server, "GET", f"/allocations/{instance}")["allocations"].values()
    assert had["resources"] == {"VCPU": 4, "MEMORY_MB": 512}
    assert call(server, "GET", query, version=version)["allocation_requests"] == []
    call(server, "DELETE", f"/allocations/{instance}", version=version)
    assert len(call(server, "GET", query, version=version)["allocation_requests"]) == 1


@pytest.mark.parametrize("version", ["1.10", "1.27", "1.36"])
def test_every_version_says_hours(server: Replica, version: str) -> None:
    query = f"/allocation_candidates?resources=VCPU:1,{HOURS}:2"
    found = call(server, "GET", query, version=version)
    assert len(found["allocation_requests"]) == 2
    assert all(HOURS in one["resources"] for one in found["provider_summaries"].values())
    assert HOURS in json.dumps(found["allocation_requests"][0])


def test_the_client_draws_and_leaves(server: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_AUTH_TYPE", "admin_token")
    monkeypatch.setenv("OS_TOKEN", "admin")
    monkeypatch.setenv("OS_ENDPOINT", f"http://127.0.0.1:{server.port}/placement")
    openstack, name = Openstack(), lease(server, 1)
    asked = f"--resource VCPU=4 --resource MEMORY_MB=512 --resource {name}=1"
    (found,) = openstack(f"allocation candidate list {asked}", version="1.29")
    host, instance = found["resource provider"], uuid.uuid4()
    assert f"{name}=1" in found["allocation"]
    openstack(
        f"resource provider allocation set {instance} --project-id project-a --user-id ann"
        f" --allocation rp={host},VCPU=4 --allocation rp={host},MEMORY_MB=512"
        f" --allocation rp={host},{name}=1",
        version="1.29",
    )
    (shown,) = openstack(f"resource provider allocation show {instance}", version="1.29")
    assert shown["resources"] == {"VCPU": 4, "MEMORY_MB": 512}
    assert openstack(f"allocation candidate list {asked}", version="1.29") == []
    assert openstack(f"resource class show {name}")["name"] == name
    openstack(f"resource provider allocation delete {instance}")
    assert len(openstack(f"allocation candidate list {asked}", version="1.29")) == 1
