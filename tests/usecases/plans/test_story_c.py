"""The end of the story of a cluster that grows: room for more workers, and a rack emptied."""

from typing import Any

import pytest
from tests.usecases.plans.clouds import Cloud

from moorage.domain.ensembles import Phase
from moorage.domain.plans import PlanKind
from moorage.testing.service import TENANT, Service

FLEET = """
fleet: hadoop
topology:
  location: {levels: [rack], domains: [{name: "r{n}", count: 4, level: rack}]}
hosts:
  - name: "h{n}"
    count: 20
    inventories: {VCPU: 16, MEMORY_MB: 65536, CUSTOM_LOCAL_DISK: 4}
    place: {location: {name: "r{n}", count: 4}}
"""
MASTER: dict[str, Any] = {"name": "master", "count": 2, "resources": {"VCPU": 4, "MEMORY_MB": 4096}}
WORKER: dict[str, Any] = {
    "name": "worker",
    "count": 15,
    "resources": {"VCPU": 8, "MEMORY_MB": 8192, "CUSTOM_LOCAL_DISK": 2},
}
POLICIES: list[dict[str, Any]] = [
    {"name": "masters", "type": "survive", "members": ["master"], "level": "rack", "keep": 1},
    {"name": "one-per-host", "type": "anti-affinity", "members": ["worker"], "level": "host"},
    {"name": "racks", "type": "spread", "members": ["worker"], "level": "rack", "max_skew": 1},
]


@pytest.fixture
def cloud(service: Service) -> Cloud:
    return Cloud(service)


def cluster(cloud: Cloud, workers: int, *policies: dict[str, Any]) -> str:
    """The cluster, all of whose members have servers."""
    roles = {one["name"]: one for one in (MASTER, {**WORKER, "count": workers})}
    body = {
        "name": "hadoop",
        "members": list(roles.values()),
        "policies": list(policies),
        "decide": {"hold": "PT1H"},
    }
    made = cloud.service.call("POST", "/ensembles", {"ensemble": body}, caller=TENANT)
    assert made.status_code == 201, made.text
    id_ = str(made.json["ensemble"]["id"])
    for member in cloud.service.store.ensemble(id_).members:
        server = {"resources": roles[member.name.role]["resources"]}
        claim = {"claim": {"member": str(member.name), "server": server}}
        path = f"/decisions/{made.json['decision']['id']}/claims"
        found = cloud.service.call("POST", path, claim, caller=TENANT)
        assert found.status_code == 201, found.text
        active = {"claim": {"status": "active", "server_id": cloud.uuid()}}
        cloud.service.call("PATCH", f"/claims/{found.json['claim']['id']}", active, caller=TENANT)
    return id_


def test_room_is_made_for_three_more_workers_by_three_moves(cloud: Cloud) -> None:
    cluster(cloud, 15, *POLICIES)
    free = [row for row in cloud.snapshot.hosts.tolist() if not workers_on(cloud, row)]
    assert len(free) == 5
    for row in free:
        for _ in range(3):  # as `sim load --vcpu 9`: no worker fits beside them
            cloud.stranger(cloud.snapshot.names[row], 3)
    (ensemble,) = cloud.service.store.compliance.every_ensemble()
    plan = cloud.plan(PlanKind.ADMIT, ensemble=ensemble, role="worker", count=3)
    assert plan.complete, plan.unmoved
    assert len(plan.moves) == 3
    for move in plan.moves:
        assert move.ensemble_id is None, "neighbours make room"
        cloud.make(move)
    body = {"extend": {"role": "worker", "count": 3}}
    path = f"/ensembles/{ensemble}/extend"
    answer = cloud.service.call("POST", path, body, caller=TENANT, headers={"If-Match": "*"})
    assert answer.status_code in {200, 201}, answer.text


def test_a_rack_is_drained_and_nothing_is_broken_on_the_way(cloud: Cloud) -> None:
    even = {**POLICIES[2], "max_skew": 5}
    hadoop = cluster(cloud, 12, POLICIES[0], POLICIES[1], even)
    for number in range(1, 6):
        cloud.stranger(f"h{number}", 2)
    plan = cloud.plan(PlanKind.DRAIN, domains=("rack/r2",))
    assert plan.complete, plan.unmoved
    assert len(plan.moves) == plan.lower_bound
    for move in plan.moves:
        cloud.make(move)
        assert not cloud.broken(hadoop, phases=frozenset({Phase.TRANSITION}))
    assert not cloud.broken(hadoop)
    rack = [f"h{number}" for number in range(6, 11)]
    assert not any(cloud.snapshot.bookings_of(cloud.row(name)) for name in rack)


def workers_on(cloud: Cloud, row: int) -> int:
    return sum("CUSTOM_LOCAL_DISK" in one.amounts for one in cloud.snapshot.bookings_of(row))
