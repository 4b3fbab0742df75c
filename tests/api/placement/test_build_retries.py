"""Nova retries a failed build on other hosts: its requests under the id of one claim."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from falcon.testing import TestClient
from tests.api.placement.test_tickets import ADMIN, PLACEMENT, ROOT, Cloud

from moorage.app import create_app
from moorage.settings import configure, read
from moorage.testing.ledger_copy import private_ledger
from moorage.testing.service import HandClock

QUERY = "/placement/allocation_candidates?resources=VCPU:1,MEMORY_MB:2048,DISK_GB:20"


class Retrying(Cloud):
    """A held ensemble beside the shop, and Nova with claims of its servers."""

    def __init__(self, client: TestClient, clock: HandClock) -> None:
        super().__init__(client, clock)
        described = {
            "name": "trio",
            "members": [{"name": "web", "count": 3, "flavor": "m1.small"}],
            "policies": [
                {"name": "web-apart", "type": "anti-affinity", "members": ["web"], "level": "host"}
            ],
            "decide": {"hold": "PT10M"},
        }
        made = self.native("POST", "/ensembles", {"ensemble": described})
        self.ensemble, self.decision = made["ensemble"]["id"], made["decision"]["id"]

    def claim(self, member: str) -> str:
        body = {"claim": {"member": member, "server": {"flavorRef": "m1.small"}}}
        made = self.native("POST", f"/decisions/{self.decision}/claims", body)
        return str(made["claim"]["id"])

    def offered(self, claim: str | None = None, more: str = "") -> list[dict[str, Any]]:
        """The allocations of the candidates of a request, in their order."""
        presents = {} if claim is None else {"X-Openstack-Request-Id": f"req-{claim}"}
        answer = self.client.simulate_get(QUERY + more, headers=PLACEMENT | presents)
        return [one["allocations"] for one in answer.json["allocation_requests"]]

    def build(self, server: str, allocations: dict[str, Any], claim: str) -> Any:
        body = {
            "allocations": allocations,
            "project_id": "shop",
            "user_id": "ann",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        headers = {**PLACEMENT, "X-Openstack-Request-Id": f"req-{claim}"}
        path = f"/placement/allocations/{server}"
        return self.client.simulate_put(path, json=body, headers=headers)

    def fails(self, server: str) -> None:
        """Nova deletes the allocations of a server that it could not build."""
        path = f"/placement/allocations/{server}"
        assert self.client.simulate_delete(path, headers=PLACEMENT).status_code == 204

    def members(self) -> dict[str, tuple[str, str, str | None]]:
        """Member -> status, host's name, server."""
        path = f"/v1/ensembles/{self.ensemble}/members"
        found = self.client.simulate_get(path, headers=ADMIN).json["members"]
        return {one["name"]: (one["status"], one.get("host"), one["server_id"]) for one in found}

    def hosts(self, offered: list[dict[str, Any]]) -> list[str]:
        """The names of the hosts of candidates."""
        path = "/placement/resource_providers"
        found = self.client.simulate_get(path, headers=PLACEMENT).json["resource_providers"]
        names = {one["uuid"]: one["name"] for one in found}
        return [names[next(iter(one))] for one in offered]

    def claims(self) -> list[tuple[str, str]]:
        found = self.native("GET", f"/decisions/{self.decision}/claims")["claims"]
        return sorted((one["member"], one["status"]) for one in found)


Make = Callable[..., Retrying]


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:

        def made(**settings: str) -> Retrying:
            clock, database = HandClock(), "sqlite://"
            racks = (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
            store = private_ledger(clock, racks)
            stack.callback(store.close)
            given = {"database": database, **settings}
            application = create_app(configure(read(given, {}, ())), store=store, clock=clock)
            return Retrying(TestClient(application), clock)

        yield made


def test_the_decided_host_is_first_and_the_others_keep_the_policies(make: Make) -> None:
    cloud = make(build_retries="3")
    before = cloud.members()
    strangers = cloud.offered()
    claim = cloud.claim("web[0]")
    found = cloud.hosts(cloud.offered(claim))
    assert found[0] == before["web[0]"][1]
    assert len(set(found)) == len(found) == 4
    others = {host for name, (_, host, _) in before.items() if name.startswith("web")}
    assert others & set(found) == {found[0]}
    assert cloud.hosts(cloud.offered(claim, "&limit=1")) == found[:1]
    assert sorted(cloud.hosts(cloud.offered())) == sorted(cloud.hosts(strangers))
    assert sorted(cloud.hosts(cloud.offered(str(uuid4())))) == sorted(cloud.hosts(strangers))


def test_a_failed_build_ends_as_the_same_server_elsewhere(make: Make) -> None:
    cloud = make(build_retries="3")
    claim, server = cloud.claim("web[0]"), str(uuid4())
    first, second, third, *_ = cloud.offered(claim)
    before = cloud.members()
    for allocations in (first, second):
        assert cloud.build(server, allocations, claim).status_code == 204
        cloud.fails(server)
        assert cloud.members()["web[0]"] == ("held", *cloud.hosts([allocations]), None)
    answer = cloud.build(server, third, claim)
    assert answer.status_code == 204, answer.text
    after = cloud.members()
    assert after.pop("web[0]") == ("active", *cloud.hosts([third]), server)
    assert after == {name: one for name, one in before.items() if name != "web[0]"}
    assert ("web[0]", "active") in cloud.claims()
    shown = cloud.native("GET", f"/ensembles/{cloud.ensemble}?compliance=true")["ensemble"]
    assert not any(one.get("violations") for one in shown["compliance"]), shown["compliance"]
    cloud.native("POST", f"/decisions/{cloud.decision}/confirm", {})
    assert cloud.members()["web[0]"][2] == server


def test_a_server_may_be_built_elsewhere_at_once(make: Make) -> None:
    """As Nova does without the weigher, or if its other filters refuse the decided host."""
    cloud = make(build_retries="1")
    claim, server = cloud.claim("web[1]"), str(uuid4())
    _, other = cloud.offered(claim)
    assert cloud.build(server, other, claim).status_code == 204
    assert cloud.members()["web[1]"] == ("active", *cloud.hosts([other]), server)
    assert cloud.claims() == [("web[1]", "active")]


def test_two_failures_at_once_keep_the_policies(make: Make) -> None:
    cloud = make(build_retries="3")
    names = ("web[0]", "web[1]")
    claims = {name: cloud.claim(name) for name in names}
    servers = {name: str(uuid4()) for name in names}
    offered = {name: cloud.offered(claim) for name, claim in claims.items()}
    for name in names:
        assert cloud.build(servers[name], offered[name][0], claims[name]).status_code == 204
    for name in names:
        cloud.fails(servers[name])
    common = [one for one in offered["web[0]"][1:] if one in offered["web[1]"][1:]]
    assert common, "both were offered a host before either failed"
    target = common[0]
    with ThreadPoolExecutor(2) as pool:
        answers = dict(
            zip(
                names,
                pool.map(lambda name: cloud.build(servers[name], target, claims[name]), names),
                strict=True,
            )
        )
    [other] = [name for name, answer in answers.items() if answer.status_code != 204]
    assert answers[other].status_code == 409
    assert f"{other} of ensemble trio would break web-apart on" in answers[other].text
    rest = next(one for one in offered[other][1:] if one != target)
    assert cloud.build(servers[other], rest, claims[other]).status_code == 204
    webs = [host for name, (_, host, _) in cloud.members().items() if name.startswith("web")]
    assert len(set(webs)) == len(webs) == 3


def test_another_server_does_not_take_the_member_elsewhere(make: Make) -> None:
    cloud = make(build_retries="2", spent_claims="refuse")
    claim, server = cloud.claim("web[0]"), str(uuid4())
    first, second, _ = cloud.offered(claim)
    assert cloud.build(server, first, claim).status_code == 204
    cloud.fails(server)
    assert cloud.build(str(uuid4()), second, claim).status_code == 409
    assert cloud.members()["web[0]"][0] == "held"


def test_off_by_default(make: Make) -> None:
    cloud = make(spent_claims="refuse")
    claim, server = cloud.claim("web[0]"), str(uuid4())
    [only] = cloud.offered(claim)
    other = next(one for one in cloud.offered() if cloud.hosts([one]) != cloud.hosts([only]))
    assert cloud.build(server, only, claim).status_code == 204
    cloud.fails(server)
    assert cloud.build(server, other, claim).status_code == 409
