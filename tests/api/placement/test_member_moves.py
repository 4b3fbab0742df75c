"""Nova moves the servers of an ensemble's members: only to hosts that keep its policies."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from falcon.testing import TestClient
from tests.api.placement.test_tickets import ADMIN, NATIVE, PLACEMENT, ROOT, Cloud

from moorage.app import create_app
from moorage.settings import configure, read
from moorage.testing.ledger_copy import private_ledger
from moorage.testing.service import HandClock

WEB = {"VCPU": 1, "MEMORY_MB": 2048, "DISK_GB": 20}
DB = {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 160}
Servers = dict[str, str]


class Running(Cloud):
    """The shop with a server for every database and web server, confirmed."""

    def __init__(self, client: TestClient, clock: HandClock) -> None:
        super().__init__(client, clock)
        for role in ("web", "db"):
            for allocations in self.candidates(role).values():
                assert self.put(allocations).status_code == 204
        self.native("POST", f"/decisions/{self.decision}/confirm", {})

    def servers(self, role: str) -> Servers:
        """Server -> UUID of its host."""
        members = self.native("GET", f"/ensembles/{self.ensemble}/members")["members"]
        servers = [one["server_id"] for one in members if one["role"] == role]
        return {one: next(iter(self.allocations(one))) for one in servers}

    def allocations(self, consumer: str) -> Any:
        path = f"/placement/allocations/{consumer}"
        return self.client.simulate_get(path, headers=PLACEMENT).json["allocations"]

    def rack(self, host: str) -> str:
        (name,) = self.names([host])
        return f"r{(int(name[1:]) - 1) // 3 + 1}"

    def begin_move(self, server: str) -> str:
        """Give the server's allocations to a migration, as Nova does first; the migration."""
        migration = str(uuid4())
        answer = self.post({server: {}, migration: self.allocations(server)})
        assert answer.status_code == 204, answer.text
        return migration

    def post(self, allocations: dict[str, Any]) -> Any:
        body = {
            consumer: {
                "allocations": {
                    host: {"resources": one["resources"]} for host, one in taken.items()
                },
                "project_id": "shop",
                "user_id": "ann",
                "consumer_generation": self.generation(consumer),
                "consumer_type": "INSTANCE",
            }
            for consumer, taken in allocations.items()
        }
        return self.client.simulate_post("/placement/allocations", json=body, headers=PLACEMENT)

    def reshape(self, server: str, host: str, size: dict[str, int]) -> Any:
        """Put a server on a host by a reshape; the inventories of another host stay as they are."""
        path = "/placement/resource_providers"
        every = self.client.simulate_get(path, headers=PLACEMENT).json["resource_providers"]
        kept = next(one["uuid"] for one in every if one["uuid"] != host)
        found = self.client.simulate_get(f"{path}/{kept}/inventories", headers=PLACEMENT).json
        allocations = {
            "allocations": {host: {"resources": size}},
            "project_id": "shop",
            "user_id": "ann",
            "consumer_generation": self.generation(server),
            "consumer_type": "INSTANCE",
        }
        body = {"inventories": {kept: found}, "allocations": {server: allocations}}
        return self.client.simulate_post("/placement/reshaper", json=body, headers=PLACEMENT)

    def generation(self, consumer: str) -> int | None:
        path = f"/placement/allocations/{consumer}"
        found = self.client.simulate_get(path, headers=PLACEMENT).json
        return found.get("consumer_generation") if found["allocations"] else None

    def hosts_for(self, server: str, size: dict[str, int]) -> set[str]:
        """The candidates of a query in a request that names the server."""
        resources = ",".join(f"{name}:{amount}" for name, amount in size.items())
        answer = self.client.simulate_get(
            f"/placement/allocation_candidates?resources={resources}",
            headers={**PLACEMENT, "X-Openstack-Request-Id": f"req-{server}"},
        )
        return {next(iter(one["allocations"])) for one in answer.json["allocation_requests"]}

    def move(self, host: str, server: str) -> dict[str, Any]:
        """What an operator is told of a server's move to a host."""
        answer = self.client.simulate_get(f"/v1/hosts/{host}/moves/{server}", headers=ADMIN)
        return dict(answer.json["move"])

    def enter(self, server: str, host: str, size: dict[str, int]) -> Any:
        generation = self.generation(server)
        return self.put({host: {"resources": size}}, server, consumer_generation=generation)

    def misplaced(self) -> list[dict[str, Any]]:
        return list(self.native("GET", "/events?type=member.misplaced")["events"])


Make = Callable[..., Running]


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:

        def made(misplaced_members: str = "refuse") -> Running:
            clock, database = HandClock(), "sqlite://"
            given = {"database": database, "misplaced_members": misplaced_members}
            racks = (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
            store = private_ledger(clock, racks)
            stack.callback(store.close)
            application = create_app(configure(read(given, {}, ())), store=store, clock=clock)
            return Running(TestClient(application), clock)

        yield made


def test_a_member_moves_only_to_hosts_that_keep_its_policies(make: Make) -> None:
    cloud = make()
    webs = cloud.servers("web")
    server, home = next(iter(webs.items()))
    others = set(webs.values()) - {home}
    migration = cloud.begin_move(server)

    offered = cloud.hosts_for(server, WEB)
    assert offered
    assert not offered & others
    for other in others:
        refused = cloud.enter(server, other, WEB)
        assert refused.status_code == 409, refused.text
        assert "would break web-apart" in refused.text
        assert not cloud.allocations(server)
    target = min(offered - {home})
    assert cloud.enter(server, target, WEB).status_code == 204
    assert set(cloud.servers("web").values()) == {*others, target}

    # Back: Nova exchanges the two, and the old host is not new.
    answer = cloud.post({server: cloud.allocations(migration), migration: {}})
    assert answer.status_code == 204, answer.text
    assert cloud.servers("web") == webs
    assert cloud.misplaced() == []


def test_every_host_that_is_offered_is_accepted_and_every_other_refused(make: Make) -> None:
    cloud = make()
    server = next(iter(cloud.servers("db")))
    cloud.begin_move(server)
    anywhere = cloud.hosts_for(str(uuid4()), DB)
    offered = cloud.hosts_for(server, DB)
    assert set() < offered < anywhere
    for host in sorted(anywhere):
        status = cloud.enter(server, host, DB).status_code
        assert status == (204 if host in offered else 409)
        if status == 204:
            assert cloud.post({server: {}}).status_code == 204


def test_what_an_operator_is_told_of_a_host_is_what_the_write_gets(make: Make) -> None:
    cloud = make()
    server, home = next(iter(cloud.servers("db").items()))
    anywhere = cloud.hosts_for(str(uuid4()), DB)
    told = {host: cloud.move(host, server) for host in sorted({*anywhere, home})}
    assert told[home]["reason"] is None, "it is there"
    (name,) = cloud.names([home])
    assert cloud.move(name, server)["allowed"] is True
    cloud.begin_move(server)
    reasons = set()
    for host in sorted(anywhere - {home}):
        answer = cloud.enter(server, host, DB)
        assert told[host]["allowed"] is (answer.status_code == 204), host
        if told[host]["allowed"]:
            assert cloud.post({server: {}}).status_code == 204
        else:
            reasons.add(told[host]["reason"])
            assert told[host]["reason"] in answer.text
    assert reasons
    stranger = str(uuid4())
    assert (
        cloud.put({home: {"resources": WEB}}, stranger, consumer_generation=None).status_code < 300
    )
    told_of = cloud.move(next(iter(anywhere - {home})), stranger)
    assert (told_of["allowed"], told_of["reason"]) == (True, None)


def test_a_server_of_which_nothing_is_known_is_not_found(make: Make) -> None:
    """A tenant is refused alike, whatever there is."""
    cloud = make()
    server, home = next(iter(cloud.servers("db").items()))
    plain, unknown = str(uuid4()), str(uuid4())
    assert cloud.put({home: {"resources": WEB}}, plain, consumer_generation=None).status_code == 204
    tenant = {"X-Auth-Token": "bob:project-b", "X-Roles": "member"}

    def asked(host: str, one: str, headers: dict[str, str]) -> Any:
        return cloud.client.simulate_get(f"/v1/hosts/{host}/moves/{one}", headers=headers)

    told = {one: asked("h1", one, ADMIN) for one in (server, plain, unknown, "nonsense")}
    assert [one.status_code for one in told.values()] == [200, 200, 404, 404]
    assert told[unknown].json["errors"][0]["code"] == "ensemble.not_found"
    refusals = {
        asked(host, one, tenant).text[:200] for host in ("h1", "no") for one in (server, unknown)
    }
    assert len(refusals) == 1


def test_a_presented_id_of_another_project_changes_nothing(make: Make) -> None:
    cloud = make()
    before = cloud.servers("db")
    server, home = next(iter(before.items()))
    ensemble = cloud.native("GET", "/ensembles")["ensembles"][0]
    decision = cloud.native("GET", f"/ensembles/{ensemble['id']}")["ensemble"]["decision"]["id"]
    for presented in (server, ensemble["id"], decision):
        stranger = str(uuid4())
        body = {
            "allocations": {home: {"resources": WEB}},
            "project_id": "project-b",
            "user_id": "bob",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        answer = cloud.client.simulate_put(
            f"/placement/allocations/{stranger}",
            json=body,
            headers={**PLACEMENT, "X-Openstack-Request-Id": f"req-{presented}"},
        )
        assert answer.status_code == 204, answer.text
        assert cloud.allocations(stranger)
        assert cloud.servers("db") == before
        cloud.post({stranger: {}})


def test_by_setting_no_host_is_refused(make: Make) -> None:
    cloud = make("report")
    (server, _), (_, other), _ = cloud.servers("web").items()
    assert cloud.move(other, server)["allowed"] is True


def test_an_evacuation_is_judged_by_the_new_host(make: Make) -> None:
    cloud = make()
    webs = cloud.servers("web")
    (server, home), (_, other), _ = webs.items()
    both = {host: {"resources": WEB} for host in (home, other)}
    answer = cloud.put(both, server, consumer_generation=cloud.generation(server))
    assert answer.status_code == 409, answer.text
    free = min(cloud.hosts_for(server, WEB) - set(webs.values()))
    both = {host: {"resources": WEB} for host in (home, free)}
    answer = cloud.put(both, server, consumer_generation=cloud.generation(server))
    assert answer.status_code == 204, answer.text


def test_a_resize_on_the_same_host_is_no_move(make: Make) -> None:
    cloud = make()
    server, home = next(iter(cloud.servers("web").items()))
    cloud.begin_move(server)
    assert cloud.enter(server, home, {**WEB, "VCPU": 2}).status_code == 204


def test_by_setting_the_move_is_written_and_reported(make: Make) -> None:
    cloud = make("report")
    webs = cloud.servers("web")
    (server, _), (_, other), _ = webs.items()
    cloud.begin_move(server)
    assert other in cloud.hosts_for(server, WEB)
    assert cloud.enter(server, other, WEB).status_code == 204
    (told,) = cloud.misplaced()
    assert told["subject"] == server
    assert "web-apart" in told["body"]["policies"]
    assert told["body"]["ensemble"] == cloud.ensemble
    path = f"/ensembles/{cloud.ensemble}?compliance=true"
    shown = cloud.native("GET", path)["ensemble"]
    assert "web-apart" in {one["policy"] for one in shown["compliance"]}

    # It moves on to a host with nobody of its own: nothing more to report.
    cloud.begin_move(server)
    free = min(cloud.hosts_for(server, WEB) - set(webs.values()))
    assert cloud.enter(server, free, WEB).status_code == 204
    assert len(cloud.misplaced()) == 1


def test_a_member_that_left_moves_like_any_server(make: Make) -> None:
    cloud = make()
    webs = cloud.servers("web")
    (server, _), (_, other), _ = webs.items()
    members = cloud.native("GET", f"/ensembles/{cloud.ensemble}/members")["members"]
    name = next(one["name"] for one in members if one["server_id"] == server)
    cloud.native("DELETE", f"/ensembles/{cloud.ensemble}/members/{name}")
    cloud.begin_move(server)
    assert other in cloud.hosts_for(server, WEB)
    assert cloud.enter(server, other, WEB).status_code == 204


def test_two_members_of_one_request_are_judged_together(make: Make) -> None:
    cloud = make()
    (first, _), (second, other), (_, third) = cloud.servers("web").items()
    cloud.begin_move(first)
    cloud.begin_move(second)
    (free, *_) = sorted(cloud.hosts_for(first, WEB) - {other, third})
    size = {"resources": WEB}
    beside = cloud.post({first: {free: size}, second: {free: size}})
    assert beside.status_code == 409
    assert "would break" in beside.text
    apart = cloud.post({first: {free: size}, second: {other: size}})
    assert apart.status_code == 204, apart.text


def test_a_move_in_one_write_changes_the_ensembles_generation(make: Make) -> None:
    """So that a move of another member, judged at the same time, is judged again."""
    cloud = make()

    def generation() -> int:
        path = f"/ensembles/{cloud.ensemble}"
        return int(cloud.native("GET", path)["ensemble"]["generation"])

    server, home = next(iter(cloud.servers("web").items()))
    free = min(cloud.hosts_for(server, WEB) - {home})
    before = generation()
    assert cloud.enter(server, free, WEB).status_code == 204
    assert generation() > before


def test_who_else_gives_up_a_host_makes_it_no_less_new(make: Make) -> None:
    """Nor does anybody's giving exactly what the server gets: only its own migration reverts."""
    cloud = make()
    (server, home), (_, other), (_, third) = cloud.servers("web").items()
    anywhere, size = cloud.hosts_for(str(uuid4()), WEB), {"resources": WEB}
    assert {other, third} <= anywhere
    unrelated = str(uuid4())
    assert cloud.post({unrelated: {other: size}}).status_code == 204
    for more in ({}, {third: size}):
        refused = cloud.post({unrelated: more, server: {other: size}})
        assert refused.status_code == 409, refused.text
        assert "would break web-apart" in refused.text
    migration = cloud.begin_move(server)
    refused = cloud.post({unrelated: {}, server: {other: size}})
    assert refused.status_code == 409, refused.text
    # Nor may its own migration serve as an excuse for another host.
    for left in ({}, {home: size}):
        refused = cloud.post({migration: left, server: {other: size}})
        assert refused.status_code == 409, refused.text
    assert cloud.post({migration: {}, server: {home: size}}).status_code == 204
    assert cloud.servers("web")[server] == home


def test_a_host_that_a_member_left_by_force_is_entered_back_only_by_its_migration(
    make: Make,
) -> None:
    """The reverting POST of Nova is taken even where the host breaks policies meanwhile."""
    cloud = make("report")
    webs = cloud.servers("web")
    (server, home), (second, _), _ = webs.items()
    migration = cloud.begin_move(server)
    free = min(cloud.hosts_for(server, WEB) - set(webs.values()))
    assert cloud.enter(server, free, WEB).status_code == 204
    cloud.begin_move(second)
    assert cloud.enter(second, home, WEB).status_code == 204
    told = len(cloud.misplaced())
    answer = cloud.post({server: cloud.allocations(migration), migration: {}})
    assert answer.status_code == 204, answer.text
    assert len(cloud.misplaced()) == told


def test_a_reshape_moves_a_member_only_to_hosts_that_keep_its_policies(make: Make) -> None:
    cloud = make()
    webs = cloud.servers("web")
    (server, home), (_, other), _ = webs.items()
    refused = cloud.reshape(server, other, WEB)
    assert refused.status_code == 409, refused.text
    assert "would break web-apart" in refused.text
    assert cloud.servers("web") == webs
    free = min(cloud.hosts_for(server, WEB) - set(webs.values()))
    assert cloud.reshape(server, free, WEB).status_code == 204
    assert cloud.servers("web")[server] == free != home
    assert cloud.misplaced() == []


def test_a_reshape_that_breaks_policies_is_reported_where_they_say_so(make: Make) -> None:
    cloud = make("report")
    (server, _), (_, other), _ = cloud.servers("web").items()
    assert cloud.reshape(server, other, WEB).status_code == 204
    (told,) = cloud.misplaced()
    assert told["subject"] == server
    assert "web-apart" in told["body"]["policies"]


def test_a_reshape_within_a_host_is_not_judged(make: Make) -> None:
    """Processors of a member, also of a misplaced one, go to a NUMA node of its host."""
    cloud = make("report")
    (server, _), (_, host), _ = cloud.servers("web").items()
    assert cloud.reshape(server, host, WEB).status_code == 204
    assert len(cloud.misplaced()) == 1
    strict = {"type": "anti-affinity", "members": ["web"], "on_violation": "refuse"}
    policy = f"/v1/ensembles/{cloud.ensemble}/policies/web-apart"
    either = {**NATIVE, "If-Match": "*"}
    answer = cloud.client.simulate_put(policy, json={"policy": strict}, headers=either)
    assert answer.status_code == 200, answer.text

    providers = "/placement/resource_providers"
    node = {"name": "numa0", "uuid": str(uuid4()), "parent_provider_uuid": host}
    made = cloud.client.simulate_post(providers, json=node, headers=PLACEMENT)
    assert made.status_code == 200, made.text
    path = f"{providers}/{host}/allocations"
    there = cloud.client.simulate_get(path, headers=PLACEMENT).json["allocations"]
    inventories = cloud.client.simulate_get(
        f"{providers}/{host}/inventories", headers=PLACEMENT
    ).json
    processors = {"VCPU": inventories["inventories"].pop("VCPU")}
    moved = {}
    for consumer in there:
        shown = cloud.client.simulate_get(f"/placement/allocations/{consumer}", headers=PLACEMENT)
        resources = shown.json["allocations"][host]["resources"]
        taken = {node["uuid"]: {"resources": {"VCPU": resources.pop("VCPU")}}}
        moved[consumer] = {
            "allocations": taken | {host: {"resources": resources}},
            "project_id": shown.json["project_id"],
            "user_id": shown.json["user_id"],
            "consumer_generation": shown.json["consumer_generation"],
            "consumer_type": shown.json["consumer_type"],
        }
    assert server in moved
    child = {"resource_provider_generation": made.json["generation"], "inventories": processors}
    body = {"inventories": {host: inventories, node["uuid"]: child}, "allocations": moved}
    answer = cloud.client.simulate_post("/placement/reshaper", json=body, headers=PLACEMENT)
    assert answer.status_code == 204, answer.text
    assert set(cloud.allocations(server)) == {host, node["uuid"]}
    assert len(cloud.misplaced()) == 1
