"""A server whose request presents a claim that is over: treated as any other, or refused."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from falcon.testing import TestClient
from tests.api.placement.test_tickets import ADMIN, PLACEMENT, ROOT, Cloud

from moorage.app import create_app
from moorage.domain.period import HOUR
from moorage.settings import configure, read
from moorage.testing.ledger_copy import private_ledger
from moorage.testing.service import HandClock

SIZE = {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 160}
Make = Callable[[str], Cloud]


@pytest.fixture
def make() -> Iterator[Make]:
    """A cloud with the setting `spent_claims`."""
    with ExitStack() as stack:

        def made(spent_claims: str) -> Cloud:
            clock, database = HandClock(), "sqlite://"
            given = {"database": database, "spent_claims": spent_claims}
            racks = (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
            store = private_ledger(clock, racks)
            stack.callback(store.close)
            application = create_app(configure(read(given, {}, ())), store=store, clock=clock)
            return Cloud(TestClient(application), clock)

        yield made


def claimed(cloud: Cloud) -> Any:
    body = {"claim": {"member": "db[0]", "server": {"flavorRef": "m1.xlarge"}}}
    return cloud.native("POST", f"/decisions/{cloud.decision}/claims", body)["claim"]


def host_of(cloud: Cloud, member: str) -> str:
    """The UUID of the member's host."""
    path = f"/v1/decisions/{cloud.decision}"
    shown = cloud.client.simulate_get(path, headers=ADMIN).json["decision"]["assignments"]
    name = next(one["host"] for one in shown if one["member"] == member)
    answer = cloud.client.simulate_get(
        f"/placement/resource_providers?name={name}", headers=PLACEMENT
    )
    return str(answer.json["resource_providers"][0]["uuid"])


def boot(
    cloud: Cloud, claim_id: str, host: str, server: str | None = None, project: str = "shop"
) -> Any:
    """Nova's write for a server whose request presents a claim."""
    body = {
        "allocations": {host: {"resources": SIZE}},
        "project_id": project,
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    headers = {**PLACEMENT, "X-Openstack-Request-Id": f"req-{claim_id}"}
    path = f"/placement/allocations/{server or uuid4()}"
    return cloud.client.simulate_put(path, json=body, headers=headers)


def told(cloud: Cloud) -> list[dict[str, Any]]:
    """The bodies of the events of claims that were presented too late."""
    events = cloud.native("GET", "/events?type=claim.spent")["events"]
    return [one["body"] for one in events]


def spend(cloud: Cloud, claim: Any, state: str) -> None:
    """Let the claim end so."""
    path = f"/claims/{claim['id']}"
    if state == "expired":
        cloud.clock.pass_by(2 * HOUR)
    elif state == "failed":
        cloud.native("PATCH", path, {"claim": {"status": "failed"}})
    else:
        server = str(uuid4())
        answer = boot(cloud, claim["id"], host_of(cloud, "db[0]"), server)
        assert answer.status_code == 204, answer.text
        if state == "ended":
            path = f"/placement/allocations/{server}"
            assert cloud.client.simulate_delete(path, headers=PLACEMENT).status_code == 204


@pytest.mark.parametrize("state", ["expired", "failed", "active", "ended"])
@pytest.mark.parametrize("setting", ["ignore", "refuse"])
def test_a_new_server_with_a_claim_that_is_over(make: Make, setting: str, state: str) -> None:
    cloud, server = make(setting), str(uuid4())
    claim, elsewhere = claimed(cloud), host_of(cloud, "web[0]")
    spend(cloud, claim, state)
    answer = boot(cloud, claim["id"], elsewhere, server)
    assert answer.status_code == (204 if setting == "ignore" else 409), answer.text
    (body,) = told(cloud)
    assert {name: body[name] for name in ("presented_by", "refused", "status", "member")} == {
        "presented_by": server,
        "refused": setting == "refuse",
        "status": state,
        "member": "db[0]",
    }
    if setting == "refuse":
        why = "has its server already" if state == "active" else f"is {state}"
        assert f"claim {claim['id']} of db[0] {why}" in answer.text
        assert "; to create servers in held places: moorage ensemble boot " in answer.text


@pytest.mark.parametrize("whose", ["nobody's", "another project's", "its own server's"])
def test_other_requests_are_not_refused(make: Make, whose: str) -> None:
    cloud = make("refuse")
    claim, elsewhere, server = claimed(cloud), host_of(cloud, "web[0]"), str(uuid4())
    if whose == "nobody's":
        answer = boot(cloud, str(uuid4()), elsewhere)
    elif whose == "another project's":
        spend(cloud, claim, "failed")
        answer = boot(cloud, claim["id"], elsewhere, project="other")
    else:
        assert boot(cloud, claim["id"], host_of(cloud, "db[0]"), server).status_code == 204
        answer = boot(cloud, claim["id"], host_of(cloud, "db[0]"), server)
    assert answer.status_code == 204, answer.text
    assert told(cloud) == []


def test_a_server_that_comes_in_a_write_of_several_is_refused_as_well(make: Make) -> None:
    """Another consumer that is written with it makes it no server that moves."""
    cloud = make("refuse")
    claim, host, other = claimed(cloud), host_of(cloud, "db[0]"), str(uuid4())
    spend(cloud, claim, "failed")
    body = {
        server: {
            "allocations": {host: {"resources": {"VCPU": 1}}},
            "project_id": "shop",
            "user_id": "ann",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        for server in (str(uuid4()), other)
    }
    headers = {**PLACEMENT, "X-Openstack-Request-Id": f"req-{claim['id']}"}
    answer = cloud.client.simulate_post("/placement/allocations", json=body, headers=headers)
    assert answer.status_code == 409, answer.text
    assert len(told(cloud)) == 1
