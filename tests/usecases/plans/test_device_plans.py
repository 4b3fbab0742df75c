"""Plans for servers with devices: what they get on the target is like what they had."""

from typing import Any

import pytest
from tests.usecases.conftest import ROOT
from tests.usecases.plans.clouds import Cloud

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, SERVER_TYPE, Consumer
from moorage.domain.plans import PlanKind
from moorage.testing.service import TENANT, Service

FLEET = (ROOT / "fleets/edge-numa.yaml").read_text(encoding="utf-8")
APART = {"name": "apart", "type": "anti-affinity", "members": ["upf"]}


@pytest.fixture
def cloud(service: Service) -> Cloud:
    return Cloud(service)


def port(name: str, physnet: str) -> dict[str, Any]:
    return {
        "name": name,
        "vnic_type": "direct",
        "resources": {"SRIOV_NET_VF": 2},
        "required": [f"CUSTOM_PHYSNET_{physnet}"],
    }


def servers(cloud: Cloud, count: int) -> str:
    """An ensemble with ports on both networks, all of whose members have servers."""
    role = {
        "name": "upf",
        "count": count,
        "resources": {"VCPU": 8, "MEMORY_MB": 8192},
        "ports": [port("a", "A"), port("b", "B")],
    }
    body = {"name": "upf", "members": [role], "policies": [APART], "decide": {"hold": "PT1H"}}
    made = cloud.service.call("POST", "/ensembles", {"ensemble": body}, caller=TENANT)
    assert made.status_code == 201, made.text
    for number in range(count):
        server = {"resources": role["resources"], "ports": role["ports"]}
        claim = {"claim": {"member": f"upf[{number}]", "server": server}}
        path = f"/decisions/{made.json['decision']['id']}/claims"
        found = cloud.service.call("POST", path, claim, caller=TENANT)
        assert found.status_code == 201, found.text
        active = {"claim": {"status": "active", "server_id": cloud.uuid()}}
        path = f"/claims/{found.json['claim']['id']}"
        done = cloud.service.call("PATCH", path, active, caller=TENANT)
        assert done.status_code == 200, done.text
    return str(made.json["ensemble"]["id"])


def taken(
    cloud: Cloud, server: str
) -> list[tuple[str, frozenset[str], tuple[tuple[str, int], ...]]]:
    """Host, the traits of each provider that tell its network, and amounts."""
    snapshot, found = cloud.snapshot, cloud.service.store.consumer(server)
    assert found is not None
    return sorted(
        (
            snapshot.names[snapshot.root[(row := snapshot.row_of[one.provider])]],
            frozenset(name for name in snapshot.traits_of(row) if "PHYSNET" in name),
            tuple(sorted(one.amounts.items())),
        )
        for one in found[1]
    )


def test_members_keep_their_networks_where_they_go(cloud: Cloud) -> None:
    ensemble = servers(cloud, 2)
    host = cloud.hosts(ensemble)[0]
    plan = cloud.plan(PlanKind.DRAIN, hosts=(host,))
    assert plan.complete
    (move,) = plan.moves
    before = taken(cloud, move.server)
    cloud.make(move)
    after = taken(cloud, move.server)
    assert {one[0] for one in after} == {move.target_name}
    networks = sorted((one[1], one[2]) for one in before if one[1])
    assert sorted((one[1], one[2]) for one in after if one[1]) == networks
    assert networks
    assert not cloud.broken(ensemble)


def test_a_server_that_nobody_describes_gets_devices_like_its_own(cloud: Cloud) -> None:
    snapshot = cloud.snapshot
    wanted = snapshot.traits["CUSTOM_PHYSNET_B"] & snapshot.alive
    device = next(row for row in wanted.nonzero()[0].tolist() if snapshot.root[row] != row)
    root = int(snapshot.root[device])
    node = next(
        row
        for row in snapshot.tree(root).tolist()
        if any(one.resource_class == "VCPU" for one in snapshot.inventories_of(row))
    )
    owner = Consumer(cloud.uuid(), "p", "u", SERVER_TYPE)
    amounts = {
        snapshot.uuids[node]: {"VCPU": 2},
        snapshot.uuids[device]: {"SRIOV_NET_VF": 1},
    }
    cloud.service.store.commit(Changeset((ReplaceAllocations(owner, amounts, ANY_GENERATION),)))
    plan = cloud.plan(PlanKind.DRAIN, hosts=(snapshot.names[root],))
    assert plan.complete
    cloud.make(plan.moves[0])
    after = taken(cloud, owner.uuid)
    assert {one[0] for one in after} == {plan.moves[0].target_name}
    assert {one[1] for one in after if ("SRIOV_NET_VF", 1) in one[2]} == {
        frozenset({"CUSTOM_PHYSNET_B"})
    }


def test_devices_are_given_to_each_once(cloud: Cloud) -> None:
    ensemble = servers(cloud, 4)
    host = cloud.hosts(ensemble)[0]
    plan = cloud.plan(PlanKind.DRAIN, hosts=(host,))
    assert not plan.moves, "each of the four hosts has one of the four"
    assert [one.code for one in plan.unmoved] == ["policy"]
