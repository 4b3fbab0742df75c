"""Servers of others where the policy `exclusive` keeps hosts: refused or reported, as it says."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from falcon.testing import TestClient
from tests.api.placement.test_member_moves import WEB, Make, Running, make
from tests.api.placement.test_tickets import ADMIN, NATIVE, PLACEMENT, ROOT

from moorage.app import create_app
from moorage.settings import configure, read
from moorage.store import open_store
from moorage.testing.ledger_copy import fill, private_ledger
from moorage.testing.service import HandClock
from moorage.testing.statements import said

__all__ = ["make"]
SMALL = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 1}
Statement = dict[str, Any]


class Racks:
    """Three racks, as Nova sees them."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def hosts(self) -> dict[str, str]:
        """Name -> UUID."""
        answer = self.client.simulate_get("/placement/resource_providers", headers=PLACEMENT)
        return {one["name"]: one["uuid"] for one in answer.json["resource_providers"]}

    def put(
        self, host: str, project: str = "other", server: str = "", resources: Any = SMALL
    ) -> Any:
        server = server or str(uuid4())
        path = f"/placement/allocations/{server}"
        before = self.client.simulate_get(path, headers=PLACEMENT).json
        body = {
            "allocations": {host: {"resources": resources}},
            "project_id": project,
            "user_id": "ann",
            "consumer_generation": before.get("consumer_generation"),
            "consumer_type": "INSTANCE",
        }
        return self.client.simulate_put(path, json=body, headers=PLACEMENT)

    def offered(self, request_id: str = "") -> set[str]:
        """The hosts of candidates for a small server."""
        named = {"X-Openstack-Request-Id": request_id} if request_id else {}
        asked = ",".join(f"{name}:{amount}" for name, amount in SMALL.items())
        path = f"/placement/allocation_candidates?resources={asked}"
        answer = self.client.simulate_get(path, headers=PLACEMENT | named)
        return {next(iter(one["allocations"])) for one in answer.json["allocation_requests"]}


class Kept(Racks):
    """Three racks, and an ensemble of one member whose host, or rack, is its own."""

    def __init__(self, client: TestClient, *, caller: Any = ADMIN, **statement: Any) -> None:
        super().__init__(client)
        self.caller = caller
        alone = {"name": "alone", "type": "exclusive", "members": ["x"], **statement}
        member = {"name": "x", "count": 1, "resources": {"VCPU": 1}}
        self.body = {"name": "kept", "members": [member], "policies": [alone], "decide": {}}
        self.made = client.simulate_post(
            "/v1/ensembles", json={"ensemble": self.body}, headers=caller
        )
        if self.made.status_code == 201:
            self.ensemble = self.made.json["ensemble"]["id"]
            self.project = self.made.json["ensemble"]["project_id"]
            (place,) = self.shown(self.made.json["decision"]["id"])
            self.host: str = place

    def shown(self, decision: str) -> list[str]:
        """The UUIDs of the members' hosts."""
        path = f"/v1/decisions/{decision}"
        found = self.client.simulate_get(path, headers=ADMIN).json["decision"]["assignments"]
        names = self.hosts()
        return [names[one["host"]] for one in found]

    def neighbour(self) -> str:
        """Another host of the same rack."""
        names = {uuid: name for name, uuid in self.hosts().items()}
        number = int(names[self.host][1:])
        rack = [3 * ((number - 1) // 3) + n for n in (1, 2, 3)]
        return next(self.hosts()[f"h{n}"] for n in rack if n != number)

    def compliance(self) -> list[str]:
        path = f"/v1/ensembles/{self.ensemble}?compliance=true"
        found = self.client.simulate_get(path, headers=self.caller).json["ensemble"]
        return [one["policy"] for one in found["compliance"]]


Serve = Callable[..., TestClient]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def made(database: str | None = None, **given: str) -> TestClient:
            clock, racks = HandClock(), (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
            if database is None:
                store = private_ledger(clock, racks)
            else:
                store = open_store(database, clock=clock)
                fill(store, racks)
            stack.callback(store.close)
            settings = configure(read({"database": database or "sqlite://", **given}, {}, ()))
            return TestClient(create_app(settings, store=store, clock=clock))

        yield made


def test_by_default_the_arrival_is_written_and_reported(serve: Serve) -> None:
    kept = Kept(serve(), caller=NATIVE)
    assert kept.host in kept.offered()
    assert kept.compliance() == []
    assert kept.put(kept.host).status_code == 204
    assert kept.compliance() == ["alone"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, {"on_violation": "refuse"}),
        ({"foreign_servers": "refuse"}, {}),
        ({"foreign_servers": "refuse"}, {"on_violation": "refuse"}),
    ],
)
def test_a_policy_that_refuses_keeps_its_host(
    serve: Serve, settings: dict[str, str], said: Statement
) -> None:
    kept = Kept(serve(**settings), **said)
    everywhere = set(kept.hosts().values())
    assert kept.offered() == everywhere - {kept.host}
    refused = kept.put(kept.host)
    assert refused.status_code == 409
    assert "is exclusive to others" in refused.text
    assert kept.put(kept.neighbour()).status_code == 204
    assert kept.put(kept.host, kept.project).status_code == 204, "the project's own are no others"
    assert kept.compliance() == []
    assert kept.compliance() == []


def test_a_policy_written_by_another_process_counts(serve: Serve, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    there, here = serve(database), Racks(serve(database))
    host, *_ = here.hosts().values()
    assert here.put(host).status_code == 204
    with said() as asked:
        assert here.put(host).status_code == 204
        assert not [one for one in asked if "FROM exclusive_ensembles" in one]
        assert host in here.offered()
        asked.clear()
        assert host in here.offered()
        assert asked == [], "nothing has changed since"
    kept = Kept(there, on_violation="refuse")
    assert kept.made.status_code == 201
    assert here.put(kept.host).status_code == 409, "refused, though not known here before"
    assert kept.host not in here.offered()
    assert here.put(kept.neighbour()).status_code == 204


def test_a_policy_that_reports_is_not_closed_by_the_setting(serve: Serve) -> None:
    kept = Kept(serve(foreign_servers="refuse"), on_violation="report")
    assert kept.host in kept.offered()
    assert kept.put(kept.host).status_code == 204
    assert kept.compliance() == ["alone"]


def test_a_whole_rack_is_kept(serve: Serve) -> None:
    kept = Kept(serve(), level="rack", on_violation="refuse")
    assert kept.neighbour() not in kept.offered()
    assert len(kept.offered()) == 6
    assert kept.put(kept.neighbour()).status_code == 409


def test_isolation_keeps_what_exclusive_keeps(serve: Serve) -> None:
    kept = Kept(serve(), type="isolate", at="host", on_violation="refuse")
    assert kept.put(kept.host).status_code == 409
    assert kept.put(kept.neighbour()).status_code == 204
    port = Kept(serve(), type="isolate", at="vnic", on_violation="refuse")
    assert port.put(port.host).status_code == 204
    assert port.compliance() == []


def test_slices_on_a_servers_host_are_judged_like_servers(serve: Serve) -> None:
    kept = Kept(serve(), type="isolate", at="host", on_violation="refuse")
    server, slice_ = str(uuid4()), {"CUSTOM_SESSION": 1}
    assert kept.put(kept.host, kept.project, server).status_code == 204
    body = {"resources": {"CUSTOM_SESSION": 9}, "shared_with": "everyone"}
    path = f"/v1/server-providers/{server}"
    answer = kept.client.simulate_put(path, json={"server_provider": body}, headers=ADMIN)
    assert answer.status_code == 200, answer.text
    provider = answer.json["server_provider"]["id"]
    assert kept.put(provider, resources=slice_).status_code == 409
    assert kept.put(provider, kept.project, resources=slice_).status_code == 204
    # The server may leave, and then everybody may have slices of it.
    assert kept.put(kept.neighbour(), kept.project, server).status_code == 204
    assert kept.put(provider, resources=slice_).status_code == 204
    # But it does not come back with them.
    assert kept.put(kept.host, kept.project, server).status_code == 409
    assert kept.compliance() == []


def test_against_everybody_the_own_project_is_kept_out_too(serve: Serve) -> None:
    kept = Kept(serve(), against="others", on_violation="refuse")
    assert kept.put(kept.host, kept.project).status_code == 409


@pytest.mark.parametrize(
    "weaker", [{"strength": {"preferred": 5}}, {"phase": ["create", "transition"]}]
)
def test_a_policy_that_need_not_hold_afterwards_closes_nothing(
    serve: Serve, weaker: Statement
) -> None:
    kept = Kept(serve(foreign_servers="refuse"), **weaker)
    assert kept.host in kept.offered()
    assert kept.put(kept.host).status_code == 204


def test_who_is_there_stays_and_may_change_size(serve: Serve) -> None:
    client = serve(foreign_servers="refuse")
    first = Kept(client, strength="preferred")
    server = str(uuid4())
    host = first.host
    assert first.put(host, server=server).status_code == 204
    path = f"/v1/ensembles/{first.ensemble}/policies/alone"
    strict = {"policy": {"type": "exclusive", "members": ["x"]}}
    client.simulate_put(path, json=strict, headers=ADMIN | {"If-Match": "*"})
    assert first.put(host, server=server).status_code == 204
    assert first.put(host).status_code == 409


def test_a_server_that_is_known_is_offered_what_it_may_enter(serve: Serve) -> None:
    kept = Kept(serve(), on_violation="refuse")
    own, foreign = str(uuid4()), str(uuid4())
    assert kept.put(kept.neighbour(), kept.project, own).status_code == 204
    assert kept.put(kept.neighbour(), "other", foreign).status_code == 204
    assert kept.host in kept.offered(f"req-{own}")
    assert kept.host not in kept.offered(f"req-{foreign}")
    assert kept.put(kept.host, kept.project, own).status_code == 204
    assert kept.put(kept.host, "other", foreign).status_code == 409


def test_a_tenant_may_not_close_hosts_unless_the_service_does(serve: Serve) -> None:
    refused = Kept(serve(), caller=NATIVE, on_violation="refuse").made
    assert refused.status_code == 403, refused.text
    assert "only operators may refuse servers of others" in refused.text
    granted = Kept(serve(foreign_servers="refuse"), caller=NATIVE, on_violation="refuse")
    assert granted.made.status_code == 201


@pytest.mark.parametrize(
    "wrong",
    [
        {"on_violation": "ignore"},
        {"on_violation": ["refuse"]},
        {"on_violation": "report", "strength": "preferred"},
    ],
)
def test_nonsense_is_refused_with_its_place(serve: Serve, wrong: Statement) -> None:
    answer = Kept(serve(), **wrong).made
    assert answer.status_code == 400
    assert answer.json["errors"][0]["path"] == "policies[0].on_violation"


def test_what_is_said_reads_back(serve: Serve) -> None:
    kept = Kept(serve(), on_violation="refuse")
    path = f"/v1/ensembles/{kept.ensemble}/policies/alone"
    shown = kept.client.simulate_get(path, headers=ADMIN).json["policy"]
    assert shown["on_violation"] == "refuse"


@pytest.mark.parametrize(
    ("setting", "said", "status", "told"),
    [("refuse", "report", 204, 1), ("report", "refuse", 409, 0)],
)
def test_a_policy_says_itself_what_becomes_of_moves(
    make: Make, setting: str, said: str, status: int, told: int
) -> None:
    cloud: Running = make(setting)
    apart = {"type": "anti-affinity", "members": ["web"], "on_violation": said}
    path = f"/v1/ensembles/{cloud.ensemble}/policies"
    either = {**NATIVE, "If-Match": "*"}
    cloud.client.simulate_delete(f"{path}/web-racks", headers=either)
    answer = cloud.client.simulate_put(f"{path}/web-apart", json={"policy": apart}, headers=either)
    assert answer.status_code == 200, answer.text
    (server, _), (_, other), _ = cloud.servers("web").items()
    cloud.begin_move(server)
    offered = other in cloud.hosts_for(server, WEB)
    assert offered is (status == 204)
    assert cloud.enter(server, other, WEB).status_code == status
    assert len(cloud.misplaced()) == told


@pytest.mark.parametrize(("said", "status"), [("refuse", 409), ("report", 204)])
def test_a_reshape_is_judged_like_every_other_write(make: Make, said: str, status: int) -> None:
    cloud: Running = make("report")
    stranger, (kept, *_) = str(uuid4()), sorted(cloud.servers("web").values())
    body = {"type": "exclusive", "members": ["web"], "against": "others", "on_violation": said}
    path = f"/v1/ensembles/{cloud.ensemble}/policies/alone"
    headers = {**ADMIN, "If-Match": "*"}
    answer = cloud.client.simulate_put(path, json={"policy": body}, headers=headers)
    assert answer.status_code == 200, answer.text
    answer = cloud.reshape(stranger, kept, SMALL)
    assert answer.status_code == status, answer.text
    shown = cloud.native("GET", f"/ensembles/{cloud.ensemble}?compliance=true")["ensemble"]
    assert "alone" in {one["policy"] for one in shown["compliance"]}


@pytest.mark.parametrize("against", ["others", "other_projects"])
def test_a_members_migration_is_no_foreigner(make: Make, against: str) -> None:
    cloud: Running = make()
    (server, home), *_ = cloud.servers("db").items()
    members = cloud.native("GET", f"/ensembles/{cloud.ensemble}/members")["members"]
    name = next(one["name"] for one in members if one["server_id"] == server)
    alone = {"type": "exclusive", "members": [name], "against": against}
    path = f"/v1/ensembles/{cloud.ensemble}/policies/alone"
    headers = {**NATIVE, "If-Match": "*"}
    answer = cloud.client.simulate_put(path, json={"policy": alone}, headers=headers)
    assert answer.status_code == 200, answer.text
    cloud.begin_move(server)
    size = {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 160}
    there = min(cloud.hosts_for(server, size) - set(cloud.servers("web").values()) - {home})
    assert cloud.enter(server, there, size).status_code == 204
    shown = cloud.native("GET", f"/ensembles/{cloud.ensemble}?compliance=true")["ensemble"]
    assert "alone" not in {one["policy"] for one in shown["compliance"]}


def test_who_else_gives_up_the_host_makes_it_no_less_exclusive(serve: Serve) -> None:
    """Nor is a server its own revert because it gets what somebody else gives up there."""
    kept = Kept(serve(foreign_servers="refuse"), strength="preferred")
    first, server, unrelated = (str(uuid4()) for _ in range(3))
    for one, host in ((first, kept.host), (unrelated, kept.host), (server, kept.neighbour())):
        assert kept.put(host, server=one).status_code == 204
    path, headers = f"/v1/ensembles/{kept.ensemble}/policies/alone", {**ADMIN, "If-Match": "*"}
    strict = {"policy": {"type": "exclusive", "members": ["x"]}}
    kept.client.simulate_put(path, json=strict, headers=headers)

    def post(**allocations: Any) -> int:
        body = {}
        for uuid, taken in allocations.items():
            found = kept.client.simulate_get(f"/placement/allocations/{uuid}", headers=PLACEMENT)
            body[uuid] = {
                "allocations": taken,
                "project_id": "other",
                "user_id": "ann",
                "consumer_generation": found.json.get("consumer_generation"),
                "consumer_type": "INSTANCE",
            }
        answer = kept.client.simulate_post("/placement/allocations", json=body, headers=PLACEMENT)
        return int(answer.status_code)

    here = {kept.host: {"resources": SMALL}}
    assert post(**{unrelated: {}, server: here}) == 409
    # Its own migration has the host meanwhile: that may give it back, to nobody else.
    migration = str(uuid4())
    assert post(**{first: {}, migration: here}) == 204
    assert kept.put(kept.neighbour(), server=first).status_code == 204
    assert post(**{migration: {}, server: here}) == 409
    assert post(**{migration: {}, first: here}) == 204
