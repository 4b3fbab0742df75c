"""The program: exit statuses, what it prints, and a daemon that goes on."""

import io
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.agent.machines import two_sockets
from tests.servers.reference import Placement as Reference

from moorage.agent import main as program
from moorage.agent.discovery import discover
from moorage.agent.files import Files
from moorage.agent.main import Agent, main, parser
from moorage.agent.report import ReportOptions
from moorage.agent.target import OWNED
from moorage.client import agent_file
from moorage.client.agent_file import read_agent_config
from moorage.client.placement_wire import PlacementWire
from moorage.domain.agent_config import AgentConfig
from moorage.domain.errors import InvalidDescription

ROOT = Path(__file__).resolve().parents[2]
BEYOND_THE_BASE = {
    *("numpy", "falcon", "sqlalchemy", "alembic", "jsonschema", "fastjsonschema", "re2", "ortools"),
    *("oslo_config", "oslo_policy", "prometheus_client", "httptools", "keystoneauth1", "openstack"),
    *("rich", "cliff"),
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration, simulation or cloud of whoever runs the tests."""
    for name in ("OS_CLOUD", "OS_AUTH_URL", "OS_TOKEN", "MOORAGE_ENDPOINT", "MOORAGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(program, "CONFIG", tmp_path / "none.yaml")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return two_sockets("main-1").write(tmp_path / "node")


def test_once_on_the_reference(
    reference_url: str, node: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--sysfs", str(node), "--endpoint", reference_url]
    assert main(["--once", *common]) == 6
    assert "no resource provider main-1" in capsys.readouterr().err
    Reference(reference_url).done("POST", "/resource_providers", {"name": "main-1"})
    assert main(["--dry-run", *common]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("+ main-1/numa0  +HW_NUMA_ROOT  CUSTOM_HUGEPAGES_1GB 4")
    assert shown[-1].endswith("4 providers; nothing was written")
    assert main(["--once", "-f", "json", *common]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["providers"] == 4
    assert report["cautions"] == []
    assert main(["--once", *common]) == 0
    assert capsys.readouterr().out == "main-1: in step, 4 providers\n"


def test_this_machine_is_reported(
    reference_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the files of the kernel that the tests run on."""
    config = tmp_path / "agent.yaml"
    config.write_text("{name: main-here, uuid: 0e2b0a52-6b0c-4a39-9a53-0d3a5c1c9f11, root: agent}")
    arguments = ["--once", "--endpoint", reference_url, "--config", str(config)]
    if discover(Files(Path("/"))).doubts:
        assert main(arguments) == program.INCONSISTENT
        return
    assert main(arguments) == 0
    assert "+ main-here  " in capsys.readouterr().out
    assert main(arguments) == 0
    assert "main-here: in step" in capsys.readouterr().out


def test_a_node_of_which_half_is_known(
    reference_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = two_sockets("main-half").without("sys/devices/system/node/node1").write(tmp_path / "n")
    config = tmp_path / "agent.yaml"
    config.write_text("root: agent")
    arguments = ["--once", "--endpoint", reference_url, "--config", str(config)]
    assert main([*arguments, "--sysfs", str(root)]) == program.INCONSISTENT
    assert "main-half is not reported" in (said := capsys.readouterr().err)
    assert "processors-differ: processors: 32 are online, and 16 of them in NUMA nodes" in said


def test_another_root_is_a_conflict(
    reference_url: str, node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text("{name: main-nova, root: agent}")
    Reference(reference_url).done("POST", "/resource_providers", {"name": "main-nova"})
    arguments = ["--once", "--sysfs", str(node), "--endpoint", reference_url]
    assert main([*arguments, "--config", str(config)]) == 4
    assert "is not the agent's" in capsys.readouterr().err


def test_a_user_without_rights(
    reference_url: str, node: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--once", "--sysfs", str(node), "--endpoint", reference_url]
    assert main([*arguments, "--token", "nobody"]) == 5
    assert "403" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["--once", "--endpoint", "http://127.0.0.1:9"], 1, "127.0.0.1:9"),
        (["--once", "--endpoint", "ftp://x"], 1, "not the URL of a service"),
        (["--once", "--os-cloud", "nowhere"], 2, "nowhere"),
        (["--once", "--interval", "0s"], 2, "interval"),
        (["--once", "--intervall", "5s"], 2, "unrecognized arguments"),
        (["--version"], 0, ""),
    ],
)
def test_what_is_wrong_is_told(
    arguments: list[str], status: int, told: str, node: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--sysfs", str(node)]) == status
    assert told in capsys.readouterr().err


def test_a_directory_that_is_not_there(
    reference_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--once", "--sysfs", "/nowhere", "--endpoint", reference_url]) == 2
    assert "no such directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("netwroks: []", "unknown key 'netwroks'"),
        ("root: moorage", "none of agent, nova"),
        ("dedicated_cpus: 1-3", "is for `root: agent`"),
        ("{root: agent, dedicated_cpus: 3-1}", "no range"),
        ("{root: agent, dedicated_cpus: [a]}", "numbers and ranges"),
        ("{root: agent, dedicated_cpus: [1, 4-]}", "numbers and ranges"),
        ("{root: agent, memory_nodes: '2-'}", "numbers and ranges"),
        ("{root: agent, memory_nodes: '-2'}", "numbers and ranges"),
        ("{root: agent, bare_metal: VCPU}", "begins with CUSTOM_"),
        ("networks: [{physnet: A}]", "by address, or by interface"),
        ("networks: [{address: '*', bandwidth: fast}]", "none of link"),
        ("networks: [{address: '*', bandwidth: {egress: 0, ingress: 1}}]", "between 1 and"),
        ("shared_storage: [{total_gb: 1}]", "by name, or by the directory"),
        ("shared_storage: [{name: a}]", "needs total_gb"),
        ("uuid: x", "a UUID is needed"),
        ("reserved: {vcpu: 1}", "not a resource class"),
        ("allocation_ratio: {VCPU: 0}", "between"),
        ("traits: [a b]", "is for `root: agent`"),
        ("- a", "a mapping is needed"),
        ("a: [", "line"),
    ],
)
def test_a_configuration_that_is_wrong_is_told(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text(text)
    assert main(["--config", str(config), "--endpoint", "http://127.0.0.1:9"]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n"])
def test_an_empty_configuration_has_the_defaults(text: str) -> None:
    assert read_agent_config(text) == AgentConfig()


def test_processors_as_the_kernel_writes_them() -> None:
    for written in ("1,4-6", "[1, 4-6]", '["1", "4-6"]'):
        found = read_agent_config(f"root: agent\ndedicated_cpus: {written}")
        assert found.dedicated_cpus == {1, 4, 5, 6}


def test_yaml_that_is_none() -> None:
    with pytest.raises(InvalidDescription):
        read_agent_config("a: b: c")


def test_the_guide_has_every_key() -> None:
    text = (ROOT / "docs" / "guide" / "agent.md").read_text()
    table = text.partition("## Configuration")[2].partition("## ")[0]
    keys = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert keys == set(agent_file._KEYS)


def test_the_guide_has_every_code() -> None:
    text = (ROOT / "docs" / "guide" / "agent.md").read_text()
    table = text.partition("| Code | Meaning |")[2].partition("\n\n")[0]
    sources = "".join(path.read_text() for path in (ROOT / "src/moorage/agent").rglob("*.py"))
    codes = set(re.findall(r'(?:Caution|_caution|_warn)\(\s*"([a-z-]+)"', sources))
    assert len(codes) > 20
    told = set(re.findall(r"`([a-z-]+)`", table))
    assert {one for one in codes if not re.match("not-an?-", one)} == told


def test_the_unit_starts_the_program() -> None:
    unit = (ROOT / "packaging" / "systemd" / "moorage-agent.service").read_text()
    [start] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    words = start.partition("=")[2].split()
    assert words[0].endswith("/moorage-agent")
    parser().parse_args(words[1:])


def test_the_base_install_is_enough(node: Path) -> None:
    """No library of the server side, of Keystone, or of the command line is imported."""
    script = f"""
import sys
class Away:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BEYOND_THE_BASE!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Away())
from moorage.agent.main import main
sys.exit(main(["--once", "--endpoint", "ftp://x", "--sysfs", {str(node)!r}]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert "not the URL of a service" in done.stderr
    assert done.returncode == 1


# --- a daemon -------------------------------------------------------------------------------------


class Daemon:
    """An agent that runs a few times; before each pause a test may change something."""

    def __init__(self, arguments: list[str], between: list[Callable[[], object]]) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        options = ReportOptions(sleep=lambda _: None)
        self.agent = Agent(parser().parse_args(arguments), {}, self.out, self.err, options)
        self.stop = threading.Event()
        self.left = between
        self.stop.wait = self.wait  # type: ignore[method-assign]
        self.pauses: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout or 0)
        if not self.left:
            self.stop.set()
        else:
            self.left.pop(0)()
        return self.stop.is_set()

    def run(self, chance: float = 0.5) -> int:
        return self.agent.for_ever(self.stop, lambda: chance)


def test_a_daemon_waits_for_nova_and_tells_changes_only(
    reference_url: str, node: Path, tmp_path: Path
) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text("name: daemon-1")
    arguments = ["--sysfs", str(node), "--endpoint", reference_url, "--config", str(config)]

    def appear() -> None:
        Reference(reference_url).done("POST", "/resource_providers", {"name": "daemon-1"})

    daemon = Daemon([*arguments, "--interval", "100s"], [lambda: None, appear, *[lambda: None] * 3])
    assert daemon.run(chance=1.0) == 0
    assert daemon.pauses == [pytest.approx(110.0)] * 6
    assert daemon.err.getvalue().count("no resource provider daemon-1") == 1
    lines = daemon.out.getvalue().splitlines()
    assert lines[-1] == "daemon-1: 4 created, 0 changed, 0 deleted, reshape none, 4 providers"
    assert len(lines) == 5


def test_a_daemon_outlives_its_service_and_a_broken_configuration(
    reference_url: str, node: Path, tmp_path: Path
) -> None:
    Reference(reference_url).done("POST", "/resource_providers", {"name": "daemon-2"})
    config = tmp_path / "agent.yaml"
    config.write_text("name: daemon-2")
    arguments = ["--sysfs", str(node), "--endpoint", reference_url, "--config", str(config)]
    daemon = Daemon(
        arguments,
        [
            lambda: config.write_text("nome: x"),
            lambda: config.write_text("name: daemon-2"),
            lambda: setattr(daemon.agent.options, "endpoint", "http://127.0.0.1:9"),
            lambda: setattr(daemon.agent.options, "endpoint", reference_url),
        ],
    )
    assert daemon.run() == 0
    assert "unknown key 'nome'" in daemon.err.getvalue()
    assert "127.0.0.1:9" in daemon.err.getvalue()
    assert daemon.out.getvalue().count("4 created") == 1


def test_a_daemon_in_step_reads_listings_only(
    reference_url: str, node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = Reference(reference_url)
    reference.done("POST", "/resource_providers", {"name": "daemon-3"})
    config = tmp_path / "agent.yaml"
    config.write_text("{name: daemon-3, shared_storage: [{name: daemon-pool, total_gb: 9}]}")
    counts: list[int] = []
    real = PlacementWire.call

    def call(self: PlacementWire, *args: Any, **more: Any) -> Any:
        counts[-1] += 1
        return real(self, *args, **more)

    monkeypatch.setattr(PlacementWire, "call", call)

    def spoil() -> None:
        """Somebody takes a trait from a card."""
        counts.append(0)
        [card] = reference.done("GET", "/resource_providers?name=daemon-3/pf:0000:3b:00.0")[
            "resource_providers"
        ]
        body = {"traits": [OWNED], "resource_provider_generation": card["generation"]}
        reference.done("PUT", f"/resource_providers/{card['uuid']}/traits", body)

    counts.append(0)
    arguments = ["--sysfs", str(node), "--endpoint", reference_url, "--config", str(config)]
    quiet = [lambda: counts.append(0)] * 2
    daemon = Daemon(arguments, [*quiet, spoil, *quiet])
    assert daemon.run() == 0
    first, full, listings, repaired, again, last = counts
    assert listings == last == 4, "two to find the service, the root, and its tree"
    assert first > 20 < full
    assert repaired > 20 < again
    assert daemon.out.getvalue().count("+HW_NIC_SRIOV") == 3


def test_the_example_of_the_guide_is_read() -> None:
    text = (ROOT / "docs" / "guide" / "agent.md").read_text()
    example = text.partition("```yaml\nshared_storage:")[2].partition("```")[0]
    found = read_agent_config(f"shared_storage:{example}")
    assert [one.name for one in found.shared_storage] == [None, "ceph-vms"]
