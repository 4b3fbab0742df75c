"""Servers that take held places by their flavor's ticket class, as Nova asks and writes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
import yaml
from falcon.testing import TestClient

from moorage.client.discovery import OPERATOR_TOKEN
from moorage.domain.ensembles import Role
from moorage.domain.period import MINUTE
from moorage.domain.tickets import ticket_class, ticket_flavor
from moorage.testing import in_process
from moorage.testing.service import HandClock

ROOT = Path(__file__).parents[3]
THREE_RACKS = (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
NATIVE = {"X-Auth-Token": "shop-user:shop", "X-Roles": "member"}
PLACEMENT = {"X-Auth-Token": OPERATOR_TOKEN, "OpenStack-API-Version": "placement 1.39"}
ADMIN = {"X-Auth-Token": OPERATOR_TOKEN}


class Cloud:
    """A ledger of three racks with a held shop, and what Nova sends to Placement."""

    def __init__(self, client: TestClient, clock: HandClock) -> None:
        self.client, self.clock = client, clock
        shop = yaml.safe_load((ROOT / "examples/shop.yaml").read_text(encoding="utf-8"))
        body = {"ensemble": {**shop, "decide": {"hold": "PT10M", "objective": "balance"}}}
        made = self.native("POST", "/ensembles", body)
        self.ensemble, self.decision = made["ensemble"]["id"], made["decision"]["id"]
        self.flavors = {one["role"]: one for one in made["decision"]["ticket_flavors"]}

    def native(self, method: str, path: str, body: Any = None) -> Any:
        """A tenant's request."""
        answer = self.client.simulate_request(method, f"/v1{path}", json=body, headers=NATIVE)
        assert answer.status_code < 300, answer.text
        return answer.json if answer.content else None

    def places(self, role: str) -> list[str]:
        """The hosts of a role's members by name, as an operator sees them."""
        path = f"/v1/decisions/{self.decision}"
        found = self.client.simulate_get(path, headers=ADMIN).json["decision"]["assignments"]
        return sorted(one["host"] for one in found if one["member"].startswith(role))

    def query(self, role: str, **more: str) -> Any:
        """Nova's query for a flavor."""
        flavor = self.flavors[role]
        amounts = {"VCPU": flavor["vcpus"], "MEMORY_MB": flavor["ram"], "DISK_GB": flavor["disk"]}
        amounts |= {
            key.removeprefix("resources:"): int(value)
            for key, value in flavor["extra_specs"].items()
            if key.startswith("resources:")
        }
        query = {"resources": ",".join(f"{k}:{v}" for k, v in amounts.items()), **more}
        path = f"/placement/allocation_candidates?{urlencode(query)}"
        return self.client.simulate_get(path, headers=PLACEMENT)

    def candidates(self, role: str) -> dict[str, Any]:
        """Host UUID -> the allocations of its candidate."""
        answer = self.query(role)
        assert answer.status_code == 200, answer.text
        found = (one["allocations"] for one in answer.json["allocation_requests"])
        return {next(iter(one)): one for one in found}

    def names(self, hosts: Any) -> list[str]:
        """Names of hosts by UUID."""
        answer = self.client.simulate_get("/placement/resource_providers", headers=PLACEMENT)
        known = {one["uuid"]: one["name"] for one in answer.json["resource_providers"]}
        return sorted(known[one] for one in hosts)

    def put(self, allocations: Any, server: str | None = None, **more: Any) -> Any:
        """Nova's write of a server's allocations."""
        body = {
            "allocations": allocations,
            "project_id": "shop",
            "user_id": "ann",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
            **more,
        }
        path = f"/placement/allocations/{server or uuid4()}"
        return self.client.simulate_put(path, json=body, headers=PLACEMENT)


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    clock = HandClock()
    with in_process.app(clock=clock, fleet=THREE_RACKS) as application:
        yield Cloud(TestClient(application), clock)


def test_a_ticket_sees_the_held_places_of_its_role_and_takes_them(cloud: Cloud) -> None:
    held = cloud.places("db")
    seen = cloud.candidates("db")
    assert cloud.names(seen) == held

    for host, allocations in seen.items():
        server = str(uuid4())
        assert cloud.put(allocations, server).status_code == 204
        path = f"/placement/allocations/{server}"
        written = cloud.client.simulate_get(path, headers=PLACEMENT).json["allocations"]
        assert written[host]["resources"] == {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 160}
    members = cloud.native("GET", f"/ensembles/{cloud.ensemble}/members")["members"]
    states = {one["name"]: one["status"] for one in members}
    assert {states[f"db[{n}]"] for n in range(3)} == {"active"}
    assert cloud.candidates("db") == {}, "every place of the role is taken"
    assert cloud.native("POST", f"/decisions/{cloud.decision}/confirm")["claimed"] == 3


def test_a_host_gives_as_many_places_as_it_holds(cloud: Cloud) -> None:
    allocations = next(iter(cloud.candidates("db").values()))
    assert cloud.put(allocations).status_code == 204
    refused = cloud.put(allocations)
    assert refused.status_code == 409, "Nova tries its next alternate"
    assert "role db of ensemble shop has no place left on" in refused.text


def test_other_projects_get_no_place(cloud: Cloud) -> None:
    allocations = next(iter(cloud.candidates("db").values()))
    refused = cloud.put(allocations, project_id="other")
    assert refused.status_code == 409
    assert "is another project's; to see your own ensembles: moorage ensemble" in refused.text


def test_a_server_without_the_ticket_gets_no_held_place(cloud: Cloud) -> None:
    allocations = next(iter(cloud.candidates("db").values()))
    plain = {
        host: {"resources": {k: v for k, v in one["resources"].items() if "TICKET" not in k}}
        for host, one in allocations.items()
    }
    statuses = [cloud.put(plain).status_code for _ in range(2)]
    assert statuses[-1] == 409, "what is free may be taken, what is held may not"
    assert len(cloud.candidates("db")) == 3


def test_after_the_decision_the_ticket_means_nothing(cloud: Cloud) -> None:
    """Servers keep their flavor: what moves or heals them later is an ordinary request."""
    server = str(uuid4())
    host, allocations = next(iter(cloud.candidates("db").items()))
    assert cloud.put(allocations, server).status_code == 204
    cloud.native("POST", f"/decisions/{cloud.decision}/confirm")

    free = cloud.candidates("db")
    assert len(free) > 3, "ordinary hosts, also those that were never held"
    assert not any("TICKET" in name for one in free.values() for name in str(one).split("'"))
    shown = cloud.client.simulate_get(f"/placement/allocations/{server}", headers=PLACEMENT).json
    again = cloud.put(allocations, server, consumer_generation=shown["consumer_generation"])
    assert again.status_code == 204, "as heal_allocations writes what the flavor says"
    other = next(one for one in free if one != host)
    migrated = cloud.put(free[other], server, consumer_generation=2)
    assert migrated.status_code == 204
    assert cloud.put(allocations).status_code == 204, "a write of anybody, on what is free"


def test_a_lapsed_hold_ends_the_ticket(cloud: Cloud) -> None:
    allocations = next(iter(cloud.candidates("db").values()))
    cloud.clock.pass_by(11 * MINUTE)
    assert len(cloud.candidates("db")) > 3
    assert cloud.put(allocations).status_code == 204, "its host has room for anybody now"
    members = cloud.native("GET", f"/ensembles/{cloud.ensemble}/members")["members"]
    assert {one["status"] for one in members} == {"unplaced"}


def test_one_members_ticket(cloud: Cloud) -> None:
    name = ticket_class(cloud.decision, "db", 1)
    cloud.flavors["db"]["extra_specs"] = {f"resources:{name}": "1"}
    (allocations,) = cloud.candidates("db").values()
    assert cloud.put(allocations).status_code == 204
    members = cloud.native("GET", f"/ensembles/{cloud.ensemble}/members")["members"]
    assert [one["name"] for one in members if one["status"] == "active"] == ["db[1]"]


def test_a_new_decision_that_replaces_a_held_one_keeps_its_tickets(cloud: Cloud) -> None:
    before = {role: one["resource_class"] for role, one in cloud.flavors.items()}
    changed = {"role": {"name": "web", "count": 1}}
    cloud.native("POST", f"/ensembles/{cloud.ensemble}/members", {"member": changed})
    listed = cloud.native("GET", f"/decisions?ensemble_id={cloud.ensemble}")["decisions"]
    newest = cloud.native("GET", f"/decisions/{listed[0]['id']}")["decision"]
    assert newest["id"] != cloud.decision
    assert {one["role"]: one["resource_class"] for one in newest["ticket_flavors"]} == before


@pytest.mark.parametrize(
    "name",
    [
        "CUSTOM_MOORAGE_TICKET_",
        "CUSTOM_MOORAGE_TICKET_1",
        "CUSTOM_MOORAGE_TICKET_" + "Z" * 32 + "_0123456789AB",
        "CUSTOM_MOORAGE_TICKET_" + "0" * 32 + "_0123456789AB",
        "CUSTOM_MOORAGE_TICKET_" + "0" * 32 + "_0123456789AB_X",
    ],
)
def test_an_unknown_ticket_means_nothing(cloud: Cloud, name: str) -> None:
    cloud.flavors["db"]["extra_specs"] = {f"resources:{name}": "1"}
    found = cloud.candidates("db")
    cloud.flavors["db"]["extra_specs"] = {}
    assert found == cloud.candidates("db"), "as without it"
    only = cloud.put({next(iter(found)): {"resources": {name: 1}}})
    assert only.status_code == 400
    assert "virtual resource classes only" in only.text


def test_a_deleted_server_gives_its_place_back_while_the_decision_is_held(cloud: Cloud) -> None:
    """A build that fails on one host does not cost the others a place."""
    server = str(uuid4())
    host, allocations = next(iter(cloud.candidates("db").items()))
    assert cloud.put(allocations, server).status_code == 204
    assert host not in cloud.candidates("db")
    path = f"/placement/allocations/{server}"
    assert cloud.client.simulate_delete(path, headers=PLACEMENT).status_code == 204

    assert cloud.candidates("db")[host] == allocations
    members = cloud.native("GET", f"/ensembles/{cloud.ensemble}/members")["members"]
    assert {one["status"] for one in members} == {"held"}
    claims = cloud.native("GET", f"/decisions/{cloud.decision}/claims")["claims"]
    assert [one["status"] for one in claims] == ["ended"]
    assert cloud.put(allocations, server).status_code == 204, "and is tried again"


def test_nova_retries_on_another_held_host(cloud: Cloud) -> None:
    """The conductor empties the allocations of a failed build, and writes the next alternate's."""
    server = str(uuid4())
    first, second, third = cloud.candidates("db").items()
    assert cloud.put(first[1], server).status_code == 204
    assert cloud.put({}, server, consumer_generation=1).status_code == 204
    assert cloud.put(second[1], server).status_code == 204
    assert cloud.candidates("db").keys() == {first[0], third[0]}


def test_a_deleted_server_frees_its_place_after_the_decision(cloud: Cloud) -> None:
    server = str(uuid4())
    allocations = next(iter(cloud.candidates("db").values()))
    assert cloud.put(allocations, server).status_code == 204
    cloud.native("POST", f"/decisions/{cloud.decision}/confirm")
    path = f"/placement/allocations/{server}"
    assert cloud.client.simulate_delete(path, headers=PLACEMENT).status_code == 204
    members = cloud.native("GET", f"/ensembles/{cloud.ensemble}/members")["members"]
    assert {one["status"] for one in members} == {"unplaced"}
    claims = cloud.native("GET", f"/decisions/{cloud.decision}/claims")["claims"]
    assert [one["status"] for one in claims] == ["ended"]


def test_a_server_is_a_member_of_one_ensemble(cloud: Cloud) -> None:
    """Resized to another ensemble's ticket flavor, it stays what it is and takes no place there."""
    server = str(uuid4())
    allocations = next(iter(cloud.candidates("db").values()))
    assert cloud.put(allocations, server).status_code == 204
    role = {"name": "web", "count": 1, "flavor": "m1.small"}
    emptiest = {"hold": "PT10M", "objective": "balance"}
    body = {"ensemble": {"name": "two", "members": [role], "decide": emptiest}}
    made = cloud.native("POST", "/ensembles", body)
    cloud.flavors = {one["role"]: one for one in made["decision"]["ticket_flavors"]}
    (other,) = cloud.candidates("web").values()
    assert cloud.put(other, server, consumer_generation=1).status_code == 204
    members = cloud.native("GET", f"/ensembles/{cloud.ensemble}/members")["members"]
    assert [one["server_id"] for one in members if one["server_id"]] == [server]
    two = cloud.native("GET", f"/ensembles/{made['ensemble']['id']}/members")["members"]
    assert [one["status"] for one in two] == ["held"]


def test_flavors_of_an_ensemble_with_a_long_name_differ() -> None:
    names = {
        ticket_flavor("e" * 300, Role(name, {"VCPU": 1}), str(uuid4())).name
        for name in ("web", "db", "r" * 128)
    }
    assert len(names) == 3
    assert all(len(name) <= 255 for name in names)
