"""VNIC slices get their ports from Neutron, attached by Nova, whatever fails meanwhile."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from tests.minicloud.cloud import Cloud
from tests.minicloud.layout import ours
from tests.minicloud.tenant import Operator, Tenant, eventually

from moorage.client.slice_ports import PortOrder

GATE = {"name": "gate", "kind": "slice", "resources": {"CUSTOM_VNIC_SLICE": 1}}


@dataclass(frozen=True)
class Lobby:
    """A server of `demo` that offers slices to `neighbour`, who claims them."""

    cloud: Cloud
    owner: Tenant
    guest: Tenant
    server: str

    @property
    def mark(self) -> str:
        return PortOrder(self.server, "shared").mark

    def claim(self, tenant: Tenant, *, units: int = 1) -> str:
        """The id of a project's claim of a slice on the server."""
        offered = self.owner.native("GET", f"/server-providers/{self.server}")["server_provider"]
        role = {**GATE, "on_server": offered["id"], "resources": {"CUSTOM_VNIC_SLICE": units}}
        held = tenant.hold(role)
        made = tenant.native(
            "POST", f"/decisions/{held['id']}/claims", {"claim": {"member": "gate[0]"}}
        )
        return str(made["claim"]["id"])

    def begin(self, *words: str, program: str = "moorage") -> subprocess.Popen[str]:
        config = {"OS_CLIENT_CONFIG_FILE": str(self.cloud.layout.home / "clouds.yaml")}
        noun = ["ensemble", "server"] if program == "openstack" else ["server"]
        command = [*noun, "provider", "ports", self.server, "--network", "shared"]
        return subprocess.Popen(
            [ours(program), "--os-cloud", "demo", *command, *words, "-f", "json"],
            env={**os.environ, **config},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def make(self, *words: str, status: int = 0, program: str = "moorage") -> list[Any]:
        """What one run says."""
        process = self.begin(*words, program=program)
        out, err = process.communicate(timeout=300)
        assert process.returncode == status, out + err
        found: list[Any] = json.loads(out)["ports"]
        return found

    def interfaces(self) -> set[str]:
        """Ids of the ports that Nova says are attached."""
        return {one.port_id for one in self.owner.nova.server_interfaces(self.server)}

    def ports(self) -> dict[str, Any]:
        """Neutron's ports of slices of the server, by id."""
        found = self.owner.connection.network.ports(description=self.mark)
        return {one.id: one for one in found}


def shown(tenant: Tenant, claim: str) -> Any:
    return tenant.native("GET", f"/claims/{claim}")["claim"]


def change(tenant: Tenant, claim: str, status: str, **more: str) -> None:
    tenant.native("PATCH", f"/claims/{claim}", {"claim": {"status": status, **more}})


@pytest.fixture
def lobby(cloud: Cloud, demo: Tenant, neighbour: Tenant) -> Iterator[Lobby]:
    (server,) = demo.boot("m1.small", "lobby")
    demo.built(server)
    offer = {
        "resources": {"CUSTOM_VNIC_SLICE": 8},
        "shared_with": [str(neighbour.connection.current_project_id)],
    }
    demo.native("PUT", f"/server-providers/{server}", {"server_provider": offer})
    found = Lobby(cloud, demo, neighbour, server)
    yield found
    demo.native("DELETE", f"/server-providers/{server}?force=true")
    if found.ports():
        found.make()
    assert found.ports() == {}


@pytest.mark.parametrize("program", ["moorage", "openstack"])
def test_slices_of_two_projects_are_ports_of_the_server(lobby: Lobby, program: str) -> None:
    own, foreign = lobby.claim(lobby.owner), lobby.claim(lobby.guest, units=2)
    made = {one["slice"]: one for one in lobby.make(program=program)}
    assert {one["status"] for one in made.values()} == {"active"}
    assert [len(made[one]["ports"]) for one in (own, foreign)] == [1, 2]
    ports = {port for one in made.values() for port in one["ports"]}
    assert lobby.interfaces() == ports == lobby.ports().keys()
    for tenant, claim in ((lobby.owner, own), (lobby.guest, foreign)):
        told = shown(tenant, claim)
        assert (told["status"], told["server_id"]) == ("active", made[claim]["ports"][0])
    assert lobby.make(program=program) == []
    change(lobby.guest, foreign, "ended")
    gone = lobby.make(program=program)
    assert {one["status"] for one in gone} == {"removed"}
    assert lobby.interfaces() == set(made[own]["ports"]) == lobby.ports().keys()


@pytest.fixture
def trunk(lobby: Lobby) -> Iterator[Any]:
    """A trunk whose parent port is attached to the server."""
    network = lobby.owner.connection.network
    shared = network.find_network("shared", ignore_missing=False)
    parent = network.create_port(network_id=shared.id, name="parent")
    made = network.create_trunk(name=f"t{uuid4().hex[:8]}", port_id=parent.id)
    lobby.owner.nova.create_server_interface(lobby.server, port_id=parent.id)
    eventually(lambda: parent.id in lobby.interfaces(), "the parent is attached")
    yield made
    lobby.owner.native("DELETE", f"/server-providers/{lobby.server}?force=true")
    if lobby.ports():
        lobby.make()
    offer = {"resources": {"CUSTOM_VNIC_SLICE": 8}}
    lobby.owner.native("PUT", f"/server-providers/{lobby.server}", {"server_provider": offer})
    lobby.owner.nova.delete_server_interface(parent.id, server=lobby.server)
    eventually(lambda: parent.id not in lobby.interfaces(), "the parent is detached")
    network.delete_trunk(made.id)
    network.delete_port(parent.id)


def test_slices_are_sub_ports_of_a_trunk(lobby: Lobby, trunk: Any) -> None:
    network = lobby.owner.connection.network
    first, second = lobby.claim(lobby.guest), lobby.claim(lobby.guest)
    made = {one["slice"]: one["ports"][0] for one in lobby.make("--trunk", trunk.name)}
    subs = {one["port_id"]: one["segmentation_id"] for one in network.get_trunk(trunk.id).sub_ports}
    assert subs.keys() == set(made.values()) == lobby.ports().keys()
    assert sorted(subs.values()) == [1, 2]
    assert shown(lobby.guest, first)["server_id"] == made[first]
    change(lobby.guest, first, "ended")
    (gone,) = lobby.make("--trunk", trunk.id)
    assert (gone["status"], gone["ports"]) == ("removed", [made[first]])
    left = network.get_trunk(trunk.id).sub_ports
    assert [one["port_id"] for one in left] == [made[second]] == list(lobby.ports())
    third = lobby.claim(lobby.guest)
    lobby.make("--trunk", trunk.name)
    assert shown(lobby.guest, third)["status"] == "active"


def test_neutrons_quota_is_told_to_the_guest(lobby: Lobby, operator: Operator) -> None:
    network, project = operator.connection.network, str(lobby.owner.connection.current_project_id)
    claim = lobby.claim(lobby.guest, units=2)
    used = len(list(network.ports(project_id=project)))
    network.update_quota(project, port=used + 1)
    try:
        told = lobby.make(status=1)
    finally:
        network.delete_quota(project)
    assert [one["status"] for one in told] == ["failed", "removed"]
    failed = shown(lobby.guest, claim)
    assert failed["status"] == "failed"
    assert "Quota exceeded for resources: ['port']" in failed["reason"]
    assert lobby.interfaces() == set()


def test_a_run_that_is_killed_is_taken_up(lobby: Lobby) -> None:
    """At once after a port was made; no slice gets two, and none is left."""
    claims = [lobby.claim(lobby.guest) for _ in range(4)]
    for number in range(1, 4):
        process = lobby.begin()
        eventually(lambda n=number: len(lobby.ports()) >= n, f"port {number} is made")  # type: ignore[misc]
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    lobby.make()
    active = {shown(lobby.guest, one)["server_id"] for one in claims}
    assert len(active) == len(claims)
    assert active == lobby.interfaces() == lobby.ports().keys()


def test_a_port_that_was_made_before_the_crash_is_attached_and_reported(lobby: Lobby) -> None:
    network = lobby.owner.connection.network
    claim = lobby.claim(lobby.guest)
    shared = network.find_network("shared", ignore_missing=False)
    name = f"slice-{claim}-0"
    made = [
        network.create_port(network_id=shared.id, name=name, description=lobby.mark)
        for _ in range(2)
    ]
    told = lobby.make()
    assert sorted(one["status"] for one in told) == ["active", "removed"]
    assert {port for one in told for port in one["ports"]} == {one.id for one in made}
    assert lobby.interfaces() == {shown(lobby.guest, claim)["server_id"]} == lobby.ports().keys()


def test_the_server_is_deleted_under_its_slices(lobby: Lobby) -> None:
    one = lobby.claim(lobby.guest)
    lobby.make()
    late = lobby.claim(lobby.guest)
    lobby.owner.nova.delete_server(lobby.server)
    eventually(
        lambda: lobby.server not in {each.id for each in lobby.owner.nova.servers(details=False)},
        "the server is deleted",
    )
    told = lobby.make(status=1)
    assert [each["status"] for each in told if each["slice"] == late] == ["failed", "removed"]
    assert "could not be found" in shown(lobby.guest, late)["reason"]
    assert lobby.server not in shown(lobby.guest, late)["reason"]
    assert shown(lobby.guest, one)["status"] == "active"


@pytest.mark.parametrize("program", ["neutron", "nova", "moorage"])
def test_it_watches_while_a_service_is_away(lobby: Lobby, program: str) -> None:
    process = lobby.begin("--watch")
    try:
        first = lobby.claim(lobby.guest)
        eventually(lambda: shown(lobby.guest, first)["status"] == "active", "it is made")
        second = lobby.claim(lobby.guest) if program != "moorage" else first
        lobby.cloud.program(program).kill()
        time.sleep(6)
        lobby.cloud.start(program)
        eventually(lambda: shown(lobby.guest, second)["status"] == "active", "it is made")
        change(lobby.guest, first, "ended")
        eventually(
            lambda: shown(lobby.guest, first)["server_id"] not in lobby.ports(), "it is removed"
        )
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
