"""Agents on the computes: Nova's own reports and theirs live beside each other."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.agent.machines import Machine, two_sockets
from tests.minicloud.cloud import Cloud
from tests.minicloud.contents import load_flavors
from tests.minicloud.layout import ours
from tests.minicloud.tenant import Operator, Tenant, eventually
from tests.minicloud.test_ticket_flavors import flavor_of, places

REFRESH = 20
"""Seconds after which a compute has read its providers again."""
NETWORKS = """
networks:
  - {address: "0000:3b:00.0", physnet: A}
  - {address: "0000:af:00.0", physnet: B}
"""


class Agents:
    """`moorage-agent` for each compute, with the cloud's administrator as its user."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self.cloud = cloud
        self.folder = folder
        self.runs = 0

    def run(self, machine: Machine) -> str:
        """Report once; what was printed, cautions included."""
        self.runs += 1
        own = self.cloud.layout.folder(machine.host) / "compute_id"
        if own.exists():
            machine.put("var/lib/nova/compute_id", own.read_text())
        config = self.folder / "agent.yaml"
        config.write_text(NETWORKS)
        node = machine.write(self.folder / f"{machine.host}-{self.runs}")
        done = subprocess.run(
            [ours("moorage-agent"), "--once", "--config", config, "--sysfs", node],
            env={
                **os.environ,
                "OS_CLIENT_CONFIG_FILE": str(self.cloud.layout.home / "clouds.yaml"),
                "OS_CLOUD": "admin",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def agents(cloud: Cloud, operator: Operator, tmp_path: Path) -> Iterator[Agents]:
    yield Agents(cloud, tmp_path)
    placement = operator.connection.placement
    below = [one for one in placement.resource_providers() if "/" in one.name]
    for one in sorted(below, key=lambda one: "/numa" in one.name):
        placement.delete(f"/resource_providers/{one.id}")
    # A compute keeps what it has read, and fails when it is gone.
    for host in cloud.layout.computes:
        cloud.program(host).stop()
        cloud.start(host)


def stock(operator: Operator, name: str) -> dict[str, int]:
    """Class -> total of a provider."""
    placement = operator.connection.placement
    [uuid] = [one.id for one in placement.resource_providers() if one.name == name]
    found = placement.get(f"/resource_providers/{uuid}/inventories").json()["inventories"]
    return {one: inventory["total"] for one, inventory in found.items()}


def pulled(host: str) -> Machine:
    return two_sockets(host).without("sys/bus/pci/devices/0000:3b")


def test_a_server_takes_functions_that_an_agent_has_reported(
    cloud: Cloud, operator: Operator, demo: Tenant, agents: Agents
) -> None:
    computes = cloud.layout.computes
    before = {one: stock(operator, one) for one in computes}
    for one in computes:
        assert "4 created" in agents.run(two_sockets(one))
        assert "in step" in agents.run(two_sockets(one))
    flavor = f"f{uuid4().hex[:8]}"
    made = operator.nova.create_flavor(name=flavor, vcpus=1, ram=512, disk=1)
    specs = {"resources1:SRIOV_NET_VF": "2", "trait1:CUSTOM_PHYSNET_A": "required"}
    operator.nova.create_flavor_extra_specs(made, specs)
    load_flavors(cloud, operator.connection)
    held = demo.hold({"name": "a", "count": 1, "flavor": flavor})
    [host] = places(operator, held["id"]).values()
    [server] = demo.boot(flavor_of(demo, held))
    demo.built(server)
    card = f"{host}/pf:0000:3b:00.0"
    assert operator.allocations(server)[card] == {"SRIOV_NET_VF": 2}

    # nova-compute starts anew, and reads the tree: what the agent has reported stays.
    cloud.program(host).stop()
    cloud.start(host)
    eventually(lambda: operator.nova.get_server(server).status == "ACTIVE", "it is back")
    [again] = demo.boot(flavor)
    demo.built(again)
    assert stock(operator, card) == {"SRIOV_NET_VF": 8}
    assert {one: stock(operator, one) for one in computes} == before
    assert "in step" in agents.run(two_sockets(host))

    # The card is pulled: its provider stays until its servers are gone.
    assert f"vanished-in-use: {card}" in agents.run(pulled(host))
    assert operator.allocations(server)[card] == {"SRIOV_NET_VF": 2}
    for one in (server, again):
        demo.nova.delete_server(one)
    eventually(lambda: not any(operator.usages().values()), "all is deleted")
    assert f"~ {card}  SRIOV_NET_VF 0" in agents.run(pulled(host))
    assert stock(operator, card) == {}
    time.sleep(REFRESH)  # nova-compute reads the tree again, with the empty card
    some = [one for _ in range(3) for one in demo.boot("m1.tiny")]
    demo.built(*some)
    for one in some:
        demo.nova.delete_server(one)
    eventually(lambda: not any(operator.usages().values()), "all is deleted")

    # The card is in its place again: so is its provider.
    agents.run(two_sockets(host))
    [last] = demo.boot(flavor)
    demo.built(last)
    demo.nova.delete_server(last)
    eventually(lambda: not any(operator.usages().values()), "all is deleted")
