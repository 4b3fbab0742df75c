"""Server groups over ensembles: what each version takes and shows, to whom, and refusals."""

import json
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from falcon.testing import TestClient

from moorage.api.compute import create_app
from moorage.domain.member_names import MemberName
from moorage.domain.quotas import QuotaDefaults, QuotaName
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, Service
from moorage.usecases.ports import Caller
from moorage.usecases.shared.limits import Limits

FLEET = """
fleet: one
topology:
  location:
    levels: [zone]
    domains:
      - {name: az1, level: zone}
hosts:
  - name: "n{n}"
    count: 3
    inventories: {VCPU: 64, MEMORY_MB: 65536, DISK_GB: 1000}
    place: {location: az1}
flavors:
  - {name: small, resources: {VCPU: 2}}
"""
GROUPS = "/v2.1/os-server-groups"
NEWEST = "2.104"


class Door:
    """The dialect over a fleet of three hosts."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.service = Service(FLEET, limits=limits)
        self._client = TestClient(create_app(self.service.env))

    def call(
        self,
        method: str,
        path: str = "",
        body: object = None,
        *,
        version: str | None = NEWEST,
        caller: Caller = TENANT,
        **more: Any,
    ) -> Any:
        headers = {} if version is None else {"OpenStack-API-Version": f"compute {version}"}
        return self._client.simulate_request(
            method,
            more.pop("root", GROUPS) + path,
            json=body,
            headers={**headers, **more.pop("headers", {})},
            extras={"moorage.caller": caller, "moorage.request_id": "req-door"},
            **more,
        )

    def made(self, name: str, policy: str = "affinity", **rules: object) -> Any:
        group = {"name": name, "policy": policy} | ({"rules": rules} if rules else {})
        answer = self.call("POST", "", {"server_group": group})
        assert answer.status_code == 200, answer.text
        return answer.json["server_group"]

    def names(self, query: str = "", caller: Caller = TENANT) -> list[str]:
        answer = self.call("GET", query, caller=caller)
        return [one["name"] for one in answer.json["server_groups"]]


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door()
    yield made
    made.service.close()


def fault(answer: Any, status: int, name: str) -> str:
    """The message of Nova's form of an error."""
    assert answer.status_code == status, answer.text
    [(kind, told)] = answer.json.items()
    assert (kind, told["code"]) == (name, status)
    return str(told["message"])


@pytest.mark.parametrize("root", ["/", "/v2.1", "/v2.1/"])
def test_documents_of_versions_lead_clients_to_the_api(door: Door, root: str) -> None:
    answer = door.call("GET", root=root, version=None, root_path="/compute")
    document = answer.json
    version = document.get("version") or document["versions"][0]
    assert (version["id"], version["status"]) == ("v2.1", "CURRENT")
    assert (version["min_version"], version["version"]) == ("2.1", NEWEST)
    assert version["links"][0]["href"].endswith("/compute/v2.1/")


SHAPES = {
    "2.1": {"id", "name", "policies", "metadata", "members"},
    "2.12": {"id", "name", "policies", "metadata", "members"},
    "2.13": {"id", "name", "policies", "metadata", "members", "project_id", "user_id"},
    "2.63": {"id", "name", "policies", "metadata", "members", "project_id", "user_id"},
    "2.64": {"id", "name", "policy", "rules", "members", "project_id", "user_id"},
    NEWEST: {"id", "name", "policy", "rules", "members", "project_id", "user_id"},
}


@pytest.mark.parametrize("version", SHAPES)
def test_each_version_shows_its_own_fields(door: Door, version: str) -> None:
    made = door.made("g", "anti-affinity", max_server_per_host="3")
    shown = door.call("GET", f"/{made['id']}", version=version).json["server_group"]
    assert shown.keys() == SHAPES[version]
    assert door.call("GET", version=version).json == {"server_groups": [shown]}
    expected = {"policy": "anti-affinity", "rules": {"max_server_per_host": 3}}
    if "policies" in shown:
        expected = {"policies": ["anti-affinity"], "metadata": {}}
    assert expected.items() <= shown.items()


def test_the_version_is_that_of_the_request(door: Door) -> None:
    for headers, expected in (
        ({}, "2.1"),
        ({"X-OpenStack-Nova-API-Version": "2.15"}, "2.15"),
        ({"OpenStack-API-Version": "compute latest"}, NEWEST),
        ({"OpenStack-API-Version": "placement 1.39"}, "2.1"),
        ({"OpenStack-API-Version": "compute 2.40", "X-OpenStack-Nova-API-Version": "2.2"}, "2.40"),
    ):
        answer = door.call("GET", version=None, headers=headers)
        assert answer.headers["openstack-api-version"] == f"compute {expected}"
        assert answer.headers["x-openstack-nova-api-version"] == expected
        assert answer.headers["vary"] == "OpenStack-API-Version, X-OpenStack-Nova-API-Version"
    assert NEWEST in fault(door.call("GET", version="2.105"), 406, "computeFault")
    fault(door.call("GET", version="2"), 400, "badRequest")


def added(role: str, count: int) -> Any:
    """Held members of a new role."""
    described = {"name": role, "flavor": "small", "count": count}
    return {"member": {"role": described, "decide": {"hold": "PT9M"}}}


def test_a_group_is_an_ensemble_whose_policy_holds_for_all_members(door: Door) -> None:
    made = door.made("g", "anti-affinity", max_server_per_host=2)
    [policy] = door.service.store.ensemble(made["id"]).policies
    assert (policy.type, str(policy.members[0]), policy.required) == ("anti-affinity", "*", True)
    assert dict(policy.parameters) == {"level": "host", "max_per_domain": 2}
    soft = door.made("s", "soft-affinity")
    [policy] = door.service.store.ensemble(soft["id"]).policies
    assert (policy.type, policy.weight) == ("affinity", 1)
    path = f"/ensembles/{made['id']}/members"
    grown = door.service.call("POST", path, added("web", 4))
    assert grown.status_code == 201, grown.text
    placed = door.service.call("GET", path).json["members"]
    assert {one["status"] for one in placed} == {"held"}
    refused = door.service.call("POST", path, added("db", 3))
    assert refused.status_code == 409, "two on each host are six"


def test_members_are_servers_with_allocations(door: Door) -> None:
    made = door.made("g", "anti-affinity")
    answer = door.service.call("POST", f"/ensembles/{made['id']}/members", added("web", 2))
    decision = answer.json["decision"]
    assert door.call("GET", f"/{made['id']}").json["server_group"]["members"] == []
    claim = {"claim": {"member": "web[1]", "server": {"flavor": "small"}}}
    claimed = door.service.call("POST", f"/decisions/{decision['id']}/claims", claim).json["claim"]
    server = str(UUID(int=77, version=4))
    used = {"claim": {"status": "active", "server_id": server}}
    assert door.service.call("PATCH", f"/claims/{claimed['id']}", used).status_code == 200
    shown = door.call("GET", f"/{made['id']}").json["server_group"]
    assert shown["members"] == [server]
    member = door.service.store.ensemble(made["id"]).member(MemberName("web", 1))
    assert member.server_id == server


def described(name: str, *policies: Any) -> dict[str, Any]:
    roles = [{"name": role, "flavor": "small", "count": 1} for role in ("web", "db")]
    return {"ensemble": {"name": name, "members": roles, "policies": list(policies)}}


APART = {"type": "anti-affinity", "members": ["*"]}
EVEN = {"type": "spread", "members": ["*"], "level": "host", "max_skew": 1}


@pytest.mark.parametrize(
    ("policies", "shown"),
    [
        ([], None),
        ([APART], "anti-affinity"),
        ([{**APART, "members": ["web", "db"]}], "anti-affinity"),
        ([{**APART, "members": ["web"]}], None),
        ([{**APART, "level": "zone", "max_per_domain": 2}], None),
        ([{**APART, "phase": ["create"]}], None),
        ([{**APART, "strength": {"preferred": 7}}], "soft-anti-affinity"),
        ([{**APART, "strength": "preferred", "max_per_domain": 2}], None),
        ([EVEN], None),
        ([{"type": "affinity", "zip": ["web", "db"]}], None),
        (["soft-affinity", {**APART, "max_per_domain": 2}], "anti-affinity"),
        ([EVEN, "soft-affinity"], "soft-affinity"),
    ],
)
def test_an_ensemble_shows_with_what_nova_has_a_word_for(
    door: Door, policies: list[Any], shown: str | None
) -> None:
    made = door.service.call("POST", "/ensembles", described("e", *policies))
    assert made.status_code == 201, made.text
    id_ = made.json["ensemble"]["id"]
    listed = door.call("GET").json["server_groups"]
    assert [one["policy"] for one in listed] == ([] if shown is None else [shown])
    if shown is None:
        fault(door.call("GET", f"/{id_}"), 404, "itemNotFound")
        fault(door.call("DELETE", f"/{id_}"), 404, "itemNotFound")
        assert door.service.store.ensemble(id_).name == "e"


REFUSED = [
    ("2.14", {"name": "a", "policies": ["soft-affinity"]}),
    ("2.15", {"name": "a", "policies": ["affinity", "anti-affinity"]}),
    ("2.15", {"name": "a", "policies": []}),
    ("2.15", {"name": "a", "policies": ["legacy"]}),
    ("2.63", {"name": "a", "policy": "affinity"}),
    ("2.64", {"name": "a", "policies": ["affinity"]}),
    ("2.64", {"name": "a"}),
    ("2.64", {"policy": "affinity"}),
    ("2.64", {"name": "", "policy": "affinity"}),
    ("2.64", {"name": " a", "policy": "affinity"}),
    ("2.64", {"name": "a\tb", "policy": "affinity"}),
    ("2.64", {"name": "x" * 256, "policy": "affinity"}),
    ("2.64", {"name": 7, "policy": "affinity"}),
    ("2.64", {"name": "a", "policy": "affinity", "more": 1}),
    ("2.64", {"name": "a", "policy": "affinity", "rules": {"max_server_per_host": 2}}),
    ("2.64", {"name": "a", "policy": "soft-anti-affinity", "rules": {"max_server_per_host": 2}}),
    ("2.64", {"name": "a", "policy": "anti-affinity", "rules": {"max_server_per_host": 0}}),
    ("2.64", {"name": "a", "policy": "anti-affinity", "rules": {"max_server_per_host": "0"}}),
    ("2.64", {"name": "a", "policy": "anti-affinity", "rules": {"max_server_per_host": "two"}}),
    ("2.64", {"name": "a", "policy": "anti-affinity", "rules": {"max_server_per_host": "1\n"}}),
    ("2.64", {"name": "a", "policy": "anti-affinity", "rules": {"max_server_per_host": 10**20}}),
    ("2.64", {"name": "a", "policy": "anti-affinity", "rules": {"other": 1}}),
    ("2.64", None),
    ("2.64", []),
]


@pytest.mark.parametrize(("version", "group"), REFUSED)
def test_what_cannot_be_understood_is_refused(door: Door, version: str, group: Any) -> None:
    answer = door.call("POST", "", {"server_group": group}, version=version)
    fault(answer, 400, "badRequest")
    assert door.names() == []


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b'{"server_group": 1}', b"\xff"])
def test_a_body_that_is_none(door: Door, raw: bytes) -> None:
    client = TestClient(create_app(door.service.env))
    extras = {"moorage.caller": TENANT, "moorage.request_id": "req-raw"}
    headers = {"Content-Type": "application/json"}
    answer = client.simulate_post(GROUPS, body=raw, headers=headers, extras=extras)
    fault(answer, 400, "badRequest")
    answer = client.simulate_post(
        GROUPS, body=json.dumps({}), headers={"Content-Type": "text/plain"}, extras=extras
    )
    fault(answer, 400, "badRequest")


def test_pages(door: Door) -> None:
    for name in "abcde":
        door.made(name)
    door.service.call("POST", "/ensembles", described("none"))
    assert door.names() == ["a", "b", "c", "d", "e"]
    assert door.names("?limit=2") == ["a", "b"]
    assert door.names("?limit=2&offset=3") == ["d", "e"]
    assert door.names("?limit=0&offset=4") == ["e"]
    assert door.names(f"?limit={10**30}") == ["a", "b", "c", "d", "e"]
    assert door.names(f"?offset={10**30}") == []
    assert door.names("?limit=1&limit=2") == ["a", "b"]
    for query in ("limit=-1", "limit=a", "limit=", "offset=-1", "offset=x", "offset=%C2%B2"):
        fault(door.call("GET", f"?{query}"), 400, "badRequest")
    assert door.call("GET", "?unknown=1", version="2.74").status_code == 200
    fault(door.call("GET", "?unknown=1", version="2.75"), 400, "badRequest")


def test_the_ensembles_of_many_pages_are_all_looked_at() -> None:
    door = Door(Limits(page=2))
    for number in range(5):
        door.service.call("POST", "/ensembles", described(f"none{number}"))
    door.made("late")
    assert door.names() == ["late"]
    door.service.close()


def test_whose_groups_one_sees(door: Door) -> None:
    made = door.made("g")
    assert door.names("?all_projects=1", OTHER) == []
    assert door.names("", OPERATOR) == []
    assert door.names("?all_projects", OPERATOR) == ["g"]
    assert door.call("GET", f"/{made['id']}", caller=OPERATOR).status_code == 200
    for method in ("GET", "DELETE"):
        told = fault(door.call(method, f"/{made['id']}", caller=OTHER), 404, "itemNotFound")
        assert made["id"] in told
    fault(door.call("DELETE", f"/{made['id']}", caller=READER), 403, "forbidden")
    body = {"server_group": {"name": "r", "policy": "affinity"}}
    fault(door.call("POST", "", body, caller=READER), 403, "forbidden")
    assert door.names("", READER) == ["g"]
    assert door.call("GET", f"/{made['id'].upper()}").json["server_group"]["id"] == made["id"]
    assert door.call("DELETE", f"/{made['id']}").status_code == 204
    fault(door.call("DELETE", f"/{made['id']}"), 404, "itemNotFound")
    fault(door.call("GET", "/nope"), 404, "itemNotFound")


def test_two_groups_may_have_one_name_and_an_ensemble_of_another_kind_may_not(door: Door) -> None:
    made = [door.made("g"), door.made("g", "anti-affinity")]
    assert door.names() == ["g", "g"]
    answer = door.service.call("POST", "/ensembles", described("g"))
    assert made[0]["id"] in answer.text
    assert answer.status_code == 409
    beside = {"type": "separation", "between": [["web"], ["ensemble:g"]], "level": "host"}
    body = described("h", beside)
    answer = door.service.call("POST", "/ensembles", body)
    assert answer.status_code == 400, answer.text
    text = f"2 ensembles have the name g; use an id: {made[0]['id']}, {made[1]['id']}"
    assert text in answer.text
    assert door.call("DELETE", f"/{made[0]['id']}").status_code == 204
    assert door.names() == ["g"]
    answer = door.service.call("POST", "/ensembles", body)
    assert answer.status_code == 201, answer.text


def test_a_group_may_have_the_name_of_an_ensemble_that_was_there_before(door: Door) -> None:
    answer = door.service.call("POST", "/ensembles", described("g"))
    assert answer.status_code == 201, answer.text
    door.made("g")
    assert door.names() == ["g"]
    answer = door.service.call("POST", "/ensembles", described("g"))
    assert answer.status_code == 409, answer.text


def test_a_group_of_a_shared_name_that_was_emptied_gets_members_again(door: Door) -> None:
    made = [door.made("g"), door.made("g", "anti-affinity")]
    path = f"/ensembles/{made[1]['id']}/members"
    grown = door.service.call("POST", path, added("web", 1)).json
    gone = f"/decisions/{grown['decision']['id']}"
    answer = door.service.call("DELETE", gone, headers={"If-Match": "*"})
    assert answer.status_code == 204, answer.text
    again = door.service.call("POST", path, added("db", 1))
    assert again.status_code == 201, again.text


def test_the_quota_is_that_of_ensembles() -> None:
    quotas = QuotaDefaults(MappingProxyType({QuotaName.ENSEMBLES: 2}))
    door = Door(Limits(quotas=quotas))
    door.made("a")
    door.made("b")
    answer = door.call("POST", "", {"server_group": {"name": "c", "policy": "affinity"}})
    fault(answer, 403, "forbidden")
    door.service.close()


def test_a_leased_group_stays(door: Door) -> None:
    made = door.service.call("POST", "/ensembles", described("e", APART)).json["ensemble"]
    lease = {
        "name": "l",
        "ensemble_id": made["id"],
        "start": "2026-12-07T08:00:00Z",
        "duration": "PT1H",
    }
    leased = door.service.call("POST", "/leases", {"lease": lease})
    assert leased.status_code == 201, leased.text
    fault(door.call("DELETE", f"/{made['id']}"), 409, "conflictingRequest")


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", f"{GROUPS}/x"), ("DELETE", GROUPS), ("GET", "/v2.1/servers"), ("GET", "/v2/x")],
)
def test_nothing_else_of_novas_api_is_here(door: Door, method: str, path: str) -> None:
    assert "Nova" in fault(door.call(method, root=path), 404, "itemNotFound")


def test_a_whole_number_may_be_written_with_a_point(door: Door) -> None:
    made = door.made("g", "anti-affinity", max_server_per_host=2.0)
    assert made["rules"] == {"max_server_per_host": 2}
