"""The ports of slices are made, attached and removed, whatever fails meanwhile."""

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli, clean
from tests.servers.nova import NETWORK, Instance, Nova, environment, running

from moorage.client import nova as nova_client
from moorage.client import registry
from moorage.client.discovery import Wishes, find
from moorage.client.moorage import connect
from moorage.client.slice_ports import PortOrder, PortOutcome, PortState, PortTiming, SlicePorts
from moorage.domain.retry_policy import RetryPolicy

pytestmark = pytest.mark.process

FAST = PortTiming(watch=0.05, poll=0.01, tries=RetryPolicy(first_pause=0.01, attempts=3))
GATES = """\
name: gates
members:
  - name: gate
    kind: slice
    count: 2
    resources: {{CUSTOM_VNIC_SLICE: {units}}}
    on_server: {server}
"""


@dataclass(frozen=True)
class Clouds:
    """A server of one project that offers slices, and another project whose slices stand there."""

    owner: Cli
    guest: Cli
    server: str
    nova: Nova
    folder: Path

    def claim(self, *, units: int = 1, member: int = 0) -> str:
        if not self.guest.body("ensemble", "list")["ensembles"]:
            text = GATES.format(units=units, server=self.server)
            (self.folder / "gates.yaml").write_text(text, encoding="utf-8")
            file = str(self.folder / "gates.yaml")
            made = self.guest("ensemble", "create", "-f", file, "--hold", "1h")
            assert made.status == 0, made
        found = self.guest.body("claim", "create", "gates", f"gate[{member}]")
        return str(found["claim"]["id"])

    def shown(self, claim: str) -> Any:
        return self.guest.body("claim", "show", claim)["claim"]

    @property
    def words(self) -> tuple[str, ...]:
        return ("server", "provider", "ports", self.server, "--network", "shop-net")

    def make(self, **order: Any) -> list[PortOutcome]:
        """One run, with short pauses."""
        whole = replace(PortOrder(self.server, "shop-net"), **order)
        wishes, variables = Wishes(), self.owner.environment
        access = find(wishes, variables)
        with connect(access) as client, nova_client.connect(wishes, variables) as compute:
            return list(SlicePorts(client, compute, whole, FAST).once())

    @property
    def attached(self) -> list[str]:
        ports = self.nova.network.ports.values()
        return sorted(one["id"] for one in ports if one["device_id"] == self.server)


@pytest.fixture
def clouds(sim: Any, state: Path, tmp_path: Path) -> Iterator[Clouds]:
    server, name = str(uuid.uuid4()), uuid.uuid4().hex[:8]
    folder = registry.state_directory({"XDG_STATE_HOME": str(state)})
    found = registry.known(folder, sim.environment["OS_CLOUD"])
    assert found is not None
    with running(Nova(f"{found.endpoint}/placement", elsewhere=True)) as nova:
        base = clean(state) | {"MOORAGE_ENDPOINT": found.endpoint, **environment(nova)}
        owner = Cli(base | {"MOORAGE_PROJECT": f"owner-{name}"})
        guest = Cli(base | {"MOORAGE_PROJECT": f"guest-{name}"})
        made = owner("ensemble", "create", "--server", "m1.small", "--name", "lobby")
        assert made.status == 0, made
        claim = owner.body("claim", "create", "lobby", "server[0]", "--flavor", "m1.small")["claim"]
        assert owner("claim", "set", claim["id"], "--active", "--server", server).status == 0
        offer = ("CUSTOM_VNIC_SLICE=4", "--share-with", f"guest-{name}")
        assert owner("server", "provider", "set", server, *offer).status == 0
        nova.servers[server] = Instance(server, f"owner-{name}", {"name": "lobby"}, None, "ACTIVE")
        yield Clouds(owner, guest, server, nova, tmp_path)
        owner("server", "provider", "delete", server, "--force")


def test_a_port_is_made_attached_reported_and_removed(clouds: Clouds) -> None:
    other = clouds.nova.network.add_port(name="eth0", device_id=clouds.server)["id"]
    claim = clouds.claim()
    made = clouds.owner(*clouds.words)
    assert made.status == 0, made
    port = clouds.shown(claim)["server_id"]
    assert (clouds.shown(claim)["status"], port in made.out) == ("active", True)
    assert clouds.attached == sorted([port, other])
    assert clouds.nova.network.ports[port]["network_id"] == NETWORK
    assert clouds.owner.body(*clouds.words)["ports"] == []
    assert clouds.guest("claim", "set", claim, "--ended").status == 0
    (gone,) = clouds.owner.body(*clouds.words)["ports"]
    assert gone == {"slice": claim, "status": "removed", "ports": [port], "message": ""}
    assert clouds.attached == [other]
    assert clouds.nova.network.created == [f"slice-{claim}-0"]


def test_a_slice_of_two_has_two_ports(clouds: Clouds) -> None:
    claim = clouds.claim(units=2)
    (made,) = clouds.make()
    assert clouds.attached == sorted(made.ports)
    assert clouds.shown(claim)["server_id"] == made.ports[0]
    assert clouds.make() == []
    clouds.guest("ensemble", "delete", "gates")
    assert clouds.make() == []
    assert clouds.owner("server", "provider", "delete", clouds.server, "--force").status == 0
    assert {one.state for one in clouds.make()} == {"removed"}
    assert clouds.nova.network.ports == {}


def test_sub_ports_of_the_trunk_have_vlans_of_their_own(clouds: Clouds) -> None:
    network = clouds.nova.network
    trunk = network.add_trunk("t", clouds.server)
    network.add_trunk("elsewhere", str(uuid.uuid4()))
    trunk["sub_ports"] = [{"port_id": "x", "segmentation_id": 1}]
    first, second = clouds.claim(), clouds.claim(member=1)
    assert len(clouds.make(trunk="t")) == 2
    ports = {clouds.shown(one)["server_id"] for one in (first, second)}
    found = {one["segmentation_id"]: one["port_id"] for one in trunk["sub_ports"]}
    assert {found[2], found[3]} == ports
    assert clouds.guest("claim", "set", first, "--ended").status == 0
    clouds.make()
    assert {one["segmentation_id"] for one in trunk["sub_ports"]} < {1, 2, 3}
    assert {one["id"] for one in network.ports.values()} & ports == {
        clouds.shown(second)["server_id"]
    }
    trunk["sub_ports"] = [{"port_id": str(n), "segmentation_id": n} for n in range(1, 4095)]
    clouds.guest("claim", "set", second, "--ended")
    clouds.make()
    full = clouds.claim()
    assert clouds.make(trunk="t")[0].state == "failed"
    assert clouds.shown(full)["reason"] == "no VLAN is free on the trunk"
    told = clouds.owner(*clouds.words, "--trunk", "elsewhere")
    assert "not attached to server" in told.err
    assert clouds.owner(*clouds.words, "--trunk", "none").status == 6


def test_the_guest_hears_why_there_is_no_port(clouds: Clouds) -> None:
    clouds.nova.network.quota = 1
    two = clouds.claim(units=2)
    told = clouds.owner(*clouds.words, "-f", "json")
    assert told.status == 1
    assert [one["status"] for one in told.body["ports"]] == ["failed", "removed"]
    shown = clouds.shown(two)
    assert shown["status"] == "failed"
    assert shown["reason"] == "its port cannot be made: Quota exceeded for resources: ['port']."
    assert clouds.nova.network.ports == {}


def test_the_server_is_gone(clouds: Clouds) -> None:
    claim = clouds.claim()
    del clouds.nova.servers[clouds.server]
    assert [one.state for one in clouds.make()] == ["failed", "removed"]
    assert clouds.shown(claim)["reason"] == (
        "its port cannot be attached: Instance ... could not be found."
    )


def test_a_server_that_is_busy_is_waited_for(clouds: Clouds) -> None:
    claim = clouds.claim()
    clouds.nova.busy = True
    (told,) = clouds.make()
    assert told.state == "waiting"
    assert "409" in told.message
    assert clouds.shown(claim)["status"] == "building"
    clouds.nova.busy = False
    assert [one.state for one in clouds.make()] == ["active"]
    assert len(clouds.nova.network.created) == 1
    clouds.guest("claim", "set", claim, "--ended")
    clouds.nova.busy = True
    assert [one.state for one in clouds.make()] == ["waiting"]
    clouds.nova.busy = False
    assert [one.state for one in clouds.make()] == ["removed"]


@pytest.mark.parametrize("faults", [[503], [429, 500], [403]])
def test_what_passes_is_tried_again(clouds: Clouds, faults: list[int | None]) -> None:
    claim = clouds.claim()
    clouds.nova.network.faults = faults
    assert [one.state for one in clouds.make()] == ["active"]
    assert clouds.shown(claim)["status"] == "active"


def test_no_port_is_made_twice_when_an_answer_is_lost(clouds: Clouds) -> None:
    clouds.claim()
    clouds.nova.network.lose_answers = 1
    assert [one.state for one in clouds.make()] == ["active"]
    assert len(clouds.nova.network.created) == 1


def test_a_lapsed_claim_leaves_no_port(clouds: Clouds) -> None:
    claim = clouds.claim()
    mark = PortOrder(clouds.server, "").mark
    late = clouds.nova.network.add_port(name=f"slice-{claim}-0", description=mark)["id"]
    assert clouds.guest("claim", "set", claim, "--failed").status == 0
    assert clouds.make() == [PortOutcome(claim, PortState.REMOVED, (late,))]


def test_slices_of_other_classes_are_left_alone(clouds: Clouds) -> None:
    claim = clouds.claim()
    assert clouds.make(resource_class="CUSTOM_SESSION") == []
    assert clouds.shown(claim)["status"] == "building"
    assert [one.state for one in clouds.make()] == ["active"]
    assert clouds.make(resource_class="CUSTOM_SESSION") == []
    assert len(clouds.attached) == 1


def test_it_watches_until_it_is_interrupted(clouds: Clouds) -> None:
    words = [sys.executable, "-m", "moorage.cli.main", *clouds.words, "--watch", "-f", "json"]
    process = subprocess.Popen(words, env=clouds.owner.environment, stdout=subprocess.PIPE)
    try:
        claim = clouds.claim()
        until = time.monotonic() + 60
        while clouds.shown(claim)["status"] != "active":
            assert time.monotonic() < until
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out.count(b"\n") == 1
    assert b'"status": "active"' in out


def test_what_is_missing_is_said_before_anything_is_made(clouds: Clouds) -> None:
    claim = clouds.claim()
    provider = ("server", "provider", "ports")
    assert clouds.owner(*provider, clouds.server, "--network", "nowhere").status == 6
    missing = clouds.owner(*provider, clouds.server, "--network", str(uuid.uuid4()))
    assert (missing.status, "404" in missing.err) == (1, True)
    assert clouds.owner(*provider, str(uuid.uuid4()), "--network", "shop-net").status == 6
    assert clouds.guest(*clouds.words).status == 6
    assert clouds.owner(*provider, clouds.server).status == 2
    assert clouds.shown(claim)["status"] == "building"
