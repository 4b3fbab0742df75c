"""Leases of whole hosts, as Nova sees them: closed to others, open to the lessee's servers."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from falcon.testing import TestClient

from moorage.app import create_app
from moorage.client.discovery import OPERATOR_TOKEN
from moorage.domain.effects import EffectKind, Lane
from moorage.domain.leases import LeaseState, reservation_class
from moorage.domain.period import DAY, HOUR, format_instant
from moorage.settings import configure, read
from moorage.testing.service import Service
from moorage.usecases.effect_dispatch import EffectResult, OutwardActions, carry_out

ADMIN = {"X-Auth-Token": OPERATOR_TOKEN, "X-Roles": "admin"}
LESSEE = {"X-Auth-Token": "ann:shop", "X-Roles": "member"}
PLACEMENT = {"X-Auth-Token": OPERATOR_TOKEN, "OpenStack-API-Version": "placement 1.39"}
FLEET = """
fleet: pair
hosts:
  - {name: "h{n}", count: 3, inventories: {VCPU: 16, MEMORY_MB: 65536}}
"""


class Cloud:
    """Three hosts, of which a tenant leases h2 whole from an hour from now on, for a day."""

    def __init__(self, client: TestClient, service: Service) -> None:
        self.client, self.service = client, service
        self.reservation("POST", "/os-hosts", {"name": "h2"}, ADMIN)
        whole = {
            "resource_type": "physical:host",
            "min": 1,
            "max": 1,
            "hypervisor_properties": "",
            "resource_properties": "",
        }
        made = self.reservation(
            "POST",
            "/leases",
            {
                "name": "week",
                "start_date": self.date(HOUR),
                "end_date": self.date(HOUR + DAY),
                "reservations": [whole],
                "events": [],
            },
            LESSEE,
        )
        self.lease = made["lease"]["id"]
        self.named = made["lease"]["reservations"][0]["id"]

    def date(self, later: int) -> str:
        return format_instant(self.service.clock.now() + later)[:16].replace("T", " ")

    def reservation(self, method: str, path: str, body: Any, headers: Any) -> Any:
        path = f"/reservation/v1{path}"
        answer = self.client.simulate_request(method, path, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json if answer.content else None

    def hosts(self, more: str = "", presents: str = "") -> dict[str, Any]:
        """Host -> the allocations of its candidate, for a small server."""
        path = f"/placement/allocation_candidates?resources=VCPU:2,MEMORY_MB:2048{more}"
        headers = PLACEMENT | ({"X-Openstack-Request-Id": f"req-{presents}"} if presents else {})
        answer = self.client.simulate_get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        listed = self.client.simulate_get("/placement/resource_providers", headers=PLACEMENT).json
        names = {one["uuid"]: one["name"] for one in listed["resource_providers"]}
        found = (one["allocations"] for one in answer.json["allocation_requests"])
        return {names[next(iter(one))]: one for one in found}

    def put(self, allocations: Any, project: str = "other", server: str = "") -> Any:
        body = {
            "allocations": allocations,
            "project_id": project,
            "user_id": "ann",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        path = f"/placement/allocations/{server or uuid4()}"
        return self.client.simulate_put(path, json=body, headers=PLACEMENT)


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    service = Service(FLEET)
    settings = configure(read({"database": "sqlite://"}, {}, files=()))
    yield Cloud(TestClient(create_app(settings, store=service.store, clock=service.clock)), service)
    service.store.close()


def begin(cloud: Cloud) -> None:
    """The lease is active, as the worker makes it at its start."""
    cloud.service.clock.pass_by(HOUR)
    for lane in Lane:
        while due := cloud.service.store.due_effects(1, lane):
            done = carry_out(cloud.service.env, OutwardActions(), due[0])
            assert done is EffectResult.DONE
    assert cloud.service.store.lease(cloud.lease).state is LeaseState.ACTIVE


def test_others_see_the_host_neither_before_nor_during_the_lease(cloud: Cloud) -> None:
    everywhere = cloud.hosts()
    assert sorted(everywhere) == ["h1", "h3"], "a server without an end would be there too long"
    begin(cloud)
    assert sorted(cloud.hosts()) == ["h1", "h3"]


def test_a_server_that_ends_before_the_lease_may_be_there(cloud: Cloud) -> None:
    assert sorted(cloud.hosts(",CUSTOM_MOORAGE_HOURS:1")) == ["h1", "h2", "h3"]
    assert sorted(cloud.hosts(",CUSTOM_MOORAGE_HOURS:2")) == ["h1", "h3"]


def test_a_write_there_is_refused(cloud: Cloud) -> None:
    (there,) = (one for name, one in cloud.hosts(",CUSTOM_MOORAGE_HOURS:1").items() if name == "h2")
    plain = {host: {"resources": {"VCPU": 2, "MEMORY_MB": 2048}} for host, amounts in there.items()}
    refused = cloud.put(plain)
    assert refused.status_code == 409
    assert "h2 is leased to others during this server's stay" in refused.text
    assert cloud.put(there).status_code == 204, "it ends in time"


@pytest.mark.parametrize("way", ["class", "presented"])
def test_the_lessees_servers_share_the_host_until_the_lease_ends(cloud: Cloud, way: str) -> None:
    begin(cloud)
    name = reservation_class(cloud.named)
    seen = cloud.hosts(f",{name}:1") if way == "class" else cloud.hosts(presents=cloud.named)
    assert list(seen) == ["h2"]
    refused = cloud.put(seen["h2"], "other")
    assert refused.status_code == 409
    assert "is another project's" in refused.text
    for _ in range(8):
        assert cloud.put(seen["h2"], "shop").status_code == 204
    full = cloud.put(seen["h2"], "shop")
    assert full.status_code == 409, "sixteen VCPU are taken"
    listed = cloud.client.simulate_get("/v1/bookings", headers=ADMIN).json["bookings"]
    ends = {one["end"] for one in listed if one["state"] == "allocated"}
    assert len(ends) == 1
    assert None not in ends


def ends(cloud: Cloud, *servers: str) -> set[str]:
    """The ends of these servers' allocations."""
    listed = cloud.client.simulate_get("/v1/bookings", headers=ADMIN).json["bookings"]
    return {one["end"] for one in listed if one["consumer"] in servers}


def test_the_lessees_servers_end_when_the_lease_does(cloud: Cloud) -> None:
    """Later, if it is extended, and at once, if it is deleted: as with leases of instances."""
    begin(cloud)
    seen, server, stranger = cloud.hosts(presents=cloud.named), str(uuid4()), str(uuid4())
    assert cloud.put(seen["h2"], "shop", server).status_code == 204
    assert cloud.put(cloud.hosts()["h1"], "shop", stranger).status_code == 204
    path = f"/leases/{cloud.lease}"
    cloud.reservation("PUT", path, {"end_date": cloud.date(2 * DAY)}, LESSEE)
    [later] = ends(cloud, server)
    assert later[:16].replace("T", " ") == cloud.date(2 * DAY)
    cloud.service.clock.pass_by(HOUR)
    cloud.reservation("DELETE", path, None, LESSEE)
    assert ends(cloud, server) == {format_instant(cloud.service.clock.now())}
    assert ends(cloud, stranger) == {None}
    asked = [one for lane in Lane for one in cloud.service.store.due_effects(9, lane)]
    assert [one.subject for one in asked if one.kind is EffectKind.DELETE] == [server]


def test_before_it_begins_the_lessee_is_not_admitted(cloud: Cloud) -> None:
    assert cloud.hosts(presents=cloud.named) == {}


def test_a_reservation_that_is_not_there_changes_nothing(cloud: Cloud) -> None:
    assert cloud.hosts(presents=str(uuid4())) == cloud.hosts()


def test_a_reservation_finds_its_lease(cloud: Cloud) -> None:
    path = f"/v1/leases?reservation={cloud.named}"
    (found,) = cloud.client.simulate_get(path, headers=LESSEE).json["leases"]
    assert found["id"] == cloud.lease
    others = {"X-Auth-Token": "bob:other", "X-Roles": "member"}
    assert cloud.client.simulate_get(path, headers=others).json["leases"] == []
    unknown = f"/v1/leases?reservation={uuid4()}"
    assert cloud.client.simulate_get(unknown, headers=LESSEE).json["leases"] == []


def test_an_exclusive_ensemble_of_a_tenant_closes_no_host_to_nova(cloud: Cloud) -> None:
    alone = {"name": "alone", "type": "exclusive", "members": ["a"], "against": "others"}
    members = [{"name": "a", "count": 2, "resources": {"VCPU": 1}}]
    body = {"name": "greedy", "members": members, "policies": [alone], "decide": {}}
    made = cloud.client.simulate_post("/v1/ensembles", json={"ensemble": body}, headers=LESSEE)
    assert made.status_code == 201, made.text
    assert sorted(cloud.hosts()) == ["h1", "h3"]


def test_a_reservation_admits_to_its_hosts_alone(cloud: Cloud) -> None:
    begin(cloud)
    (elsewhere, *_) = cloud.hosts().values()
    (there,) = cloud.hosts(presents=cloud.named).values()
    unit = {host: {"resources": {reservation_class(cloud.named): 1}} for host in there}
    refused = cloud.put({**unit, **elsewhere}, "shop")
    assert refused.status_code == 409
    assert "does not have this host" in refused.text


def test_the_lease_is_not_active_while_a_server_of_others_outstays(cloud: Cloud) -> None:
    def shown() -> tuple[str, bool, str, bool]:
        lease = cloud.reservation("GET", f"/leases/{cloud.lease}", None, LESSEE)["lease"]
        [part] = lease["reservations"]
        return lease["status"], lease["degraded"], part["status"], part["missing_resources"]

    there, server = cloud.hosts(",CUSTOM_MOORAGE_HOURS:1")["h2"], str(uuid4())
    assert cloud.put(there, server=server).status_code == 204
    begin(cloud)
    assert shown() == ("STARTING", True, "pending", True)
    name = reservation_class(cloud.named)
    own = cloud.put(cloud.hosts(f",{name}:1")["h2"], "shop")
    assert own.status_code == 204, "there is room beside it"
    gone = cloud.client.simulate_delete(f"/placement/allocations/{server}", headers=PLACEMENT)
    assert gone.status_code == 204
    assert shown() == ("ACTIVE", False, "active", False)
