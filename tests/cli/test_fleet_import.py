"""`moorage fleet import` of a listing of hypervisors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli, clean

from moorage.cli.sim_process import end
from moorage.client.registry import running, state_directory

HYPERVISORS = [
    {"ID": str(n), "Hypervisor Hostname": f"nova-r1-n{n}", "State": "up"}
    | {"vCPUs Used": 0, "vCPUs": 8, "Memory MB Used": 0, "Memory MB": 16384}
    for n in (1, 2)
]
RULES = """\
topology: {location: {levels: [zone, rack]}}
rules:
  - {name: 'nova-(?P<rack>r.)-.*', zone: az1}
"""


@pytest.fixture
def listing(tmp_path: Path) -> str:
    file = tmp_path / "hypervisors.json"
    file.write_text(json.dumps(HYPERVISORS), encoding="utf-8")
    return str(file)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Cli]:
    """A service of its own: what is loaded here, no other test may find."""
    file = tmp_path / "own.yaml"
    file.write_text("fleet: own\nhosts: [{name: h1, inventories: {VCPU: 4}}]\n", encoding="utf-8")
    cli = Cli(clean(tmp_path) | {"OS_CLOUD": "own"})
    started = cli("sim", "start", "--fleet", str(file), "--name", "own")
    try:
        assert started.status == 0, started
        yield cli
    finally:
        for one in list(running(state_directory({"XDG_STATE_HOME": str(tmp_path)}))):
            end(one.pid)


@pytest.mark.process
def test_a_host_that_is_down_is_not_disabled(own: Cli, tmp_path: Path) -> None:
    file = tmp_path / "down.json"
    file.write_text(json.dumps([HYPERVISORS[0], HYPERVISORS[1] | {"State": "down"}]), "utf-8")
    planned = own("fleet", "import", str(file), "--dry-run")
    assert planned.out.endswith(", load of 0 consumers, 1 down\n"), planned
    for _ in range(2):
        loaded = own("fleet", "import", str(file))
        assert loaded.status == 0, loaded
        hosts = {one["name"]: one for one in own.body("host", "list")["hosts"]}
        down = hosts["nova-r1-n2"]
        assert (down["state"], [one["why"] for one in down["closed"]]) == ("down", ["service down"])
        assert hosts["nova-r1-n1"]["state"] == "open"
    file.write_text(json.dumps(HYPERVISORS), "utf-8")
    assert own("fleet", "import", str(file)).status == 0


@pytest.mark.process
def test_hosts_are_loaded_once(own: Cli, listing: str) -> None:
    words = ("fleet", "import", listing, "--ratio", "VCPU=4", "--total", "DISK_GB=100")
    planned = own(*words, "--dry-run")
    assert planned.out == (
        "would load hypervisors: 2 hosts, 0 domains, 0 flavors, load of 0 consumers\n"
    )
    first = own.body(*words)
    assert [(one["hosts"], one["unchanged"]) for one in first["parts"]] == [(2, 0)]
    again = own.body(*words)
    assert [(one["hosts"], one["unchanged"]) for one in again["parts"]] == [(0, 2)]
    assert "nova-r1-n1" in own("fleet", "show").out
    other = own("fleet", "import", listing, "--ratio", "VCPU=2", "--total", "DISK_GB=100")
    assert other.status == 4
    assert "nova-r1-n1 VCPU is 8" in other.err


def test_rules_are_applied_and_their_mistakes_named(
    offline: Any, listing: str, tmp_path: Path
) -> None:
    rules = tmp_path / "racks.yaml"
    rules.write_text(RULES, encoding="utf-8")
    words = ("fleet", "import", listing, "--topology", str(rules), "--dry-run")
    assert "2 hosts, 2 domains" in offline(*words).out
    rules.write_text(RULES.replace("zone: az1", "shelf: az1"), encoding="utf-8")
    wrong = offline(*words)
    assert wrong.status == 1
    assert "racks.yaml: line 3" in wrong.err
    for odd in ("VCPU", "VCPU=0", "VCPU=x", "=1"):
        assert offline("fleet", "import", listing, "--ratio", odd).status == 2
