"""A tenant who knows the ids of another one's groups, claims and servers gains nothing by them."""

from typing import Any

import pytest
from tests.minicloud.tenant import Operator, Tenant
from tests.minicloud.test_ticket_flavors import places

GROUPS = "/os-server-groups"
V = "2.64"


def send(
    tenant: Tenant, method: str, path: str, body: Any = None, version: str = "2.96", **more: str
) -> Any:
    """The answer of nova-api with the filters before it."""
    url = tenant.cloud.layout.url("nova", f"/v2.1{path}")
    headers = {"OpenStack-API-Version": f"compute {version}", **more}
    return tenant.connection.session.request(
        url, method, json=body, headers=headers, raise_exc=False
    )


def boot(tenant: Tenant, hints: Any, **headers: str) -> Any:
    """Status of a request that creates a server, and its id."""
    flavor = tenant.nova.find_flavor("m1.small", ignore_missing=False).id
    server = {"name": "x", "imageRef": tenant.image, "flavorRef": flavor, "networks": "none"}
    body = {"server": server, "os:scheduler_hints": hints}
    answer = send(tenant, "POST", "/servers", body, **headers)
    made = answer.json().get("server", {}).get("id") if answer.status_code < 300 else None
    return answer.status_code, made


@pytest.fixture
def group(demo: Tenant) -> Any:
    """A joinable group of `demo` with one held place, by id."""
    body = {"server_group": {"name": "mine", "policy": "anti-affinity"}}
    url = demo.cloud.layout.url("moorage", f"/compute/v2.1{GROUPS}")
    headers = {"OpenStack-API-Version": f"compute {V}"}
    made = demo.connection.session.request(url, "POST", json=body, headers=headers)
    found = made.json()["server_group"]["id"]
    role = {"name": "web", "flavor": "m1.small", "count": 1}
    added = {"member": {"role": role, "decide": {"hold": "PT10M"}}}
    demo.native("POST", f"/ensembles/{found}/members", added)
    yield found
    demo.native("DELETE", f"/ensembles/{found}", generation="*")


def test_groups_of_others_are_neither_joined_shown_nor_deleted(
    demo: Tenant, neighbour: Tenant, group: str
) -> None:
    before = demo.members(group)
    for hints in ({"group": group}, {"group": group.upper()}, {"group": [group]}):
        assert boot(neighbour, hints)[0] == 400, hints
    for hints in (
        {"moorage": group},
        {"moorage": f"{group}/web[0]"},
        {"moorage": [f"{group}/web"]},
    ):
        assert boot(neighbour, hints)[0] == 404, hints
    for method in ("GET", "DELETE"):
        assert send(neighbour, method, f"{GROUPS}/{group}", version=V).status_code == 404
    listed = send(neighbour, "GET", f"{GROUPS}?all_projects=true", version=V)
    assert group not in listed.text
    assert demo.members(group) == before


def test_the_id_of_anothers_claim_takes_no_place(
    operator: Operator, demo: Tenant, neighbour: Tenant, group: str
) -> None:
    decision = demo.native("GET", f"/ensembles/{group}")["ensemble"]["decision"]["id"]
    body = {"claim": {"member": "web[0]", "server": {"flavorRef": "m1.small"}}}
    claim = demo.native("POST", f"/decisions/{decision}/claims", body)["claim"]["id"]
    place = places(operator, decision)["web[0]"]
    presented = {"X-Openstack-Request-Id": f"req-{claim}"}
    for hints in (
        {},
        {"moorage_claim": claim},
        {"moorage_claim": [claim]},
        {"moorage_claim": ["", claim]},
    ):
        status, server = boot(neighbour, hints, **presented)
        if server is not None:
            neighbour.settled(server)
        [member] = demo.members(group).values()
        assert (member["status"], member["server_id"]) == ("building", None), (hints, status)
    # The owner's own request still has it.
    status, server = boot(demo, {"moorage_claim": claim}, **presented)
    assert status == 202
    demo.built(server)
    assert operator.host(server) == place
    [member] = demo.members(group).values()
    assert member["server_id"] == server


def test_hints_of_any_form_break_neither_the_filter_nor_the_scheduler(
    demo: Tenant,
) -> None:
    """Strange hints are refused, or the server is built; nothing answers 500."""
    strange: list[Any] = [
        {"group": {"a": 1}},
        {"group": []},
        {"group": ["x", "y"]},
        {"moorage": ""},
        {"moorage": "a" * 70_000},
        {"moorage": "../../quotas[0]"},
        {"moorage": "\x00/web[0]"},
        {"moorage": "é/☃[1]"},
        {"moorage_claim": "x" * 1_000},
        {"reservation": ["11111111-2222-4333-8444-555555555555"]},
        {"heat_root_stack_id": "11111111-2222-4333-8444-555555555555", "heat_path_in_stack": 7},
    ]
    for hints in strange:
        status, server = boot(demo, hints)
        assert status in {202, 400, 404, 409}, (hints, status)
        if server is not None:
            demo.settled(server)
            demo.nova.delete_server(server)
    demo.built(*demo.boot("m1.small"))
