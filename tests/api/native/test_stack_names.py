"""The names of stacks: how long an ensemble keeps its own."""

from tests.api.native.conftest import refused
from tests.api.native.test_stacks import (
    APART,
    OTHER_PATH,
    PATH,
    STACK,
    booked,
    claimed,
    deleted,
    group,
    members,
    put,
    running,
    stack,
)

from moorage.testing.service import Service


def confirm(service: Service) -> None:
    """End the hold of the stack's decision."""
    decision = service.call("GET", PATH).json["stack"]["decision"]["id"]
    done = service.call("POST", f"/decisions/{decision}/confirm")
    assert done.status_code == 200, done.text


def test_a_name_is_free_again_when_no_member_has_a_place(service: Service) -> None:
    """As of a stack that was deleted while nobody could tell Moorage."""
    put(service, {"web": group(2)})
    servers = claimed(service, ["web[0]"])
    namesake = {"stack": {**stack({"web": group(1)})["stack"]}}
    confirm(service)
    refused(service.call("PUT", OTHER_PATH, namesake), 409, "name_taken")
    deleted(service, servers["web[0]"])
    dry = service.call("PUT", OTHER_PATH, namesake, query={"dry_run": "true"})
    assert dry.status_code == 200, dry.text
    again = service.call("PUT", OTHER_PATH, namesake)
    assert again.json["stack"]["decision"]["status"] == "held", again.text
    refused(service.call("PUT", PATH, stack({"web": group(2)})), 409, "name_taken")
    assert service.call("DELETE", OTHER_PATH).status_code == 204
    assert put(service, {"web": group(2)})["decision"]["status"] == "held", "it is back"


def test_a_place_that_is_claimed_keeps_the_name(service: Service) -> None:
    put(service, {"web": group(1)})
    decision = service.call("GET", PATH).json["stack"]["decision"]["id"]
    claim = {"claim": {"member": "web[0]", "server": {"flavorRef": "m1.small"}}}
    made = service.call("POST", f"/decisions/{decision}/claims", claim).json["claim"]
    confirm(service)
    refused(service.call("PUT", OTHER_PATH, stack({"web": group(1)})), 409, "name_taken")
    failed = {"claim": {"status": "failed"}}
    assert service.call("PATCH", f"/claims/{made['id']}", failed).status_code == 200
    assert service.call("PUT", OTHER_PATH, stack({"web": group(1)})).status_code == 200


def test_a_member_that_joins_needs_the_name_again(service: Service) -> None:
    put(service, {"web": group(1)})
    confirm(service)
    assert service.call("PUT", OTHER_PATH, stack({"web": group(1)})).status_code == 200
    join = {"member": {"name": "web", "server_id": running(service, "h1")}}
    refused(service.call("POST", f"/ensembles/{STACK}/members", join), 409, "name_taken")


def test_a_server_is_the_member_of_one_stack(service: Service) -> None:
    put(service, {"web": group(1)})
    server_id = claimed(service, ["web[0]"])["web[0]"]
    other = {
        "stack": {**stack({"db": group(1)}, servers={"db/0": server_id})["stack"], "name": "b"}
    }
    error = refused(service.call("PUT", OTHER_PATH, other), 409, "in_use")
    assert f"web[0] of ensemble shop ({STACK})" in error["detail"]
    assert f"moorage member remove {STACK} 'web[0]'" in error["detail"]
    assert service.call("GET", OTHER_PATH).status_code == 404
    assert service.call("DELETE", f"/ensembles/{STACK}/members/web[0]").status_code == 200
    joined = service.call("PUT", OTHER_PATH, other)
    assert joined.status_code == 200, joined.text


def test_a_held_place_is_no_server(service: Service) -> None:
    put(service, {"web": group(1)})
    (held,) = booked(service)
    body = {"stack": {**stack({"db": group(1)}, servers={"db/0": held})["stack"], "name": "b"}}
    made = service.call("PUT", OTHER_PATH, body).json["stack"]
    assert "no allocations" in made["notes"][0]


def test_members_have_the_numbers_that_heat_gives(service: Service) -> None:
    """A server is removed by its id; its name is given to no other, then or later."""
    put(service, {"web": group(3, "m1.small", APART)})
    servers = {f"web/{name[4]}": one for name, one in claimed(service, list_of(3)).items()}
    smaller = group(2, "m1.small", APART)
    smaller["properties"]["removal_policies"] = [{"resource_list": [servers["web/1"]]}]
    found = put(service, {"web": smaller}, servers=servers)
    assert found["keys"] == {"web[0]": "web/0", "web[2]": "web/2"}
    kept = {path: one for path, one in servers.items() if path != "web/1"}
    assert {f"web/{n[4]}": one["server_id"] for n, one in members(service).items()} == kept
    more = {"servers": kept, "removed": {"web": ["1"]}}
    grown = put(service, {"web": group(3, "m1.small", APART)}, **more)
    assert grown["keys"] == {f"web[{n}]": f"web/{n}" for n in (0, 2, 3)}
    there = {f"web/{n[4]}": one["server_id"] for n, one in members(service).items()}
    assert there == kept | {"web/3": None}


def list_of(count: int) -> list[str]:
    return [f"web[{n}]" for n in range(count)]
