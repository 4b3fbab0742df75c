"""The unmodified `openstack` client with osc-placement from PyPI, against a real server process."""

import json
import os
import uuid
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pytest
from tests.servers import openstack_shell
from tests.servers.replica import Replica

pytestmark = [
    pytest.mark.process,
    # The client's own deprecations are not ours to repair.
    pytest.mark.filterwarnings("ignore"),
]

COMMANDS = {one.name.replace("_", " "): one for one in entry_points(group="openstack.placement.v1")}
"""Every command the plug-in brings, by the words one types."""


def command_of(words: str) -> str:
    """The longest of the plug-in's commands that the words begin with."""
    return max((one for one in COMMANDS if f"{words} ".startswith(f"{one} ")), key=len)


def shows(command: EntryPoint) -> bool:
    """Whether a command has an answer to show, and so an option for its format."""
    from cliff.display import DisplayCommandBase

    return issubclass(command.load(), DisplayCommandBase)


class Openstack:
    """The `openstack` command, which remembers what it was used for."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def __call__(self, words: str, *, version: str = "1.39") -> Any:
        """The answer of a command that must end well; None if it shows none."""
        command = command_of(words)
        self.used.add(command)
        shown = shows(COMMANDS[command])
        as_json = ["-f", "json"] if shown else []
        ran = openstack_shell.openstack(
            "--os-placement-api-version", version, *words.split(), *as_json
        )
        assert ran.status == 0, f"{words}: {ran.err}"
        return json.loads(ran.out) if shown else None


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where Placement is served, by `moorage serve` on a database of its own."""
    home = tmp_path_factory.mktemp("served")
    server = Replica(home, f"sqlite:///{home}/ledger.db")
    server.start()
    server.up()
    yield f"http://127.0.0.1:{server.port}/placement"
    server.down()


@pytest.fixture
def openstack(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Openstack:
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OS_AUTH_TYPE", "admin_token")
    monkeypatch.setenv("OS_TOKEN", "admin")
    monkeypatch.setenv("OS_ENDPOINT", endpoint)
    return Openstack()


def test_every_command(openstack: Openstack) -> None:
    keep_providers(openstack)
    keep_classes_and_traits(openstack)
    keep_allocations(openstack)
    assert openstack.used == COMMANDS.keys()


def keep_providers(openstack: Openstack) -> None:
    own = openstack("resource provider create h1")["uuid"]
    assert openstack(f"resource provider show {own}")["name"] == "h1"
    child = openstack(f"resource provider create h1-gpu --parent-provider {own}")["uuid"]
    tree = openstack(f"resource provider list --in-tree {own}")
    assert {one["name"] for one in tree} == {"h1", "h1-gpu"}
    openstack(f"resource provider inventory set {own} --resource VCPU=8 --resource MEMORY_MB=4096")
    openstack(f"resource provider inventory class set {own} VCPU --total 16")
    found = openstack(f"resource provider inventory list {own}")
    totals = {one["resource_class"]: one["total"] for one in found}
    assert totals == {"VCPU": 16, "MEMORY_MB": 4096}
    assert openstack(f"resource provider inventory show {own} VCPU")["total"] == 16
    listed = openstack("resource provider list --resource VCPU=16")
    assert [one["uuid"] for one in listed] == [own]
    aggregate = uuid.uuid4()
    generation = openstack(f"resource provider show {own}")["generation"]
    openstack(
        f"resource provider aggregate set {own} --aggregate {aggregate} --generation {generation}"
    )
    assert openstack(f"resource provider aggregate list {own}") == [{"uuid": str(aggregate)}]
    member = openstack(f"resource provider list --member-of {aggregate}")
    assert [one["uuid"] for one in member] == [own]
    openstack(f"resource provider inventory delete {own} --resource-class VCPU")
    openstack(f"resource provider set {own} --name renamed")
    assert openstack("resource provider list --name renamed")[0]["uuid"] == own
    openstack(f"resource provider delete {child}")
    assert len(openstack(f"resource provider list --in-tree {own}")) == 1


def keep_classes_and_traits(openstack: Openstack) -> None:
    own = openstack("resource provider create h2")["uuid"]
    openstack("trait create CUSTOM_RACK_A")
    assert openstack("trait show CUSTOM_RACK_A") == {"name": "CUSTOM_RACK_A"}
    openstack(f"resource provider trait set {own} --trait CUSTOM_RACK_A --trait HW_CPU_X86_AVX2")
    carried = openstack(f"resource provider trait list {own}")
    assert {one["name"] for one in carried} == {"CUSTOM_RACK_A", "HW_CPU_X86_AVX2"}
    assert openstack("trait list --associated --name startswith:CUSTOM_") == [
        {"name": "CUSTOM_RACK_A"}
    ]
    found = openstack("resource provider list --required CUSTOM_RACK_A --forbidden HW_NUMA_ROOT")
    assert [one["uuid"] for one in found] == [own]
    openstack(f"resource provider trait delete {own}")
    openstack("trait delete CUSTOM_RACK_A")
    assert openstack("trait list --name startswith:CUSTOM_") == []
    openstack("resource class create CUSTOM_SESSIONS")
    openstack("resource class set CUSTOM_MEETINGS")
    assert openstack("resource class show CUSTOM_SESSIONS") == {"name": "CUSTOM_SESSIONS"}
    names = [one["name"] for one in openstack("resource class list")]
    assert (names[0], names[-2:]) == ("VCPU", ["CUSTOM_SESSIONS", "CUSTOM_MEETINGS"])
    openstack("resource class delete CUSTOM_SESSIONS")
    names = [one["name"] for one in openstack("resource class list")]
    assert names[-1] == "CUSTOM_MEETINGS"
    assert "CUSTOM_SESSIONS" not in names


def keep_allocations(openstack: Openstack) -> None:
    own = openstack("resource provider create h3")["uuid"]
    openstack(f"resource provider inventory set {own} --resource VGPU=8")
    consumer, owner = uuid.uuid4(), "--project-id p3 --user-id u3 --consumer-type INSTANCE"
    wanted = f"{consumer} --allocation rp={own},VGPU=3"
    written = openstack(f"resource provider allocation set {wanted} {owner}")
    assert written[0]["resources"] == {"VGPU": 3}
    shown = openstack(f"resource provider allocation show {consumer}")
    assert shown[0]["consumer_type"] == "INSTANCE"
    used = [{"resource_class": "VGPU", "usage": 3}]
    assert openstack(f"resource provider usage show {own}") == used
    assert openstack("resource usage show p3", version="1.37") == used
    found = openstack("allocation candidate list --resource VGPU=5")
    assert [one["resource provider"] for one in found] == [own]
    assert openstack("allocation candidate list --resource VGPU=6") == []
    openstack(f"resource provider allocation unset {consumer}")
    assert openstack(f"resource provider allocation show {consumer}") == []
    openstack(f"resource provider allocation set {wanted} {owner}")
    openstack(f"resource provider allocation delete {consumer}")
    openstack(f"resource provider inventory delete {own}")
    openstack(f"resource provider delete {own}")


@pytest.mark.parametrize("version", ["1.0", "1.7", "1.11", "1.14", "1.20", "1.28"])
def test_older_versions(openstack: Openstack, version: str) -> None:
    made = openstack(f"resource provider create old-{version}", version=version)
    assert made["generation"] == 0
    names = {one["name"] for one in openstack("resource provider list", version=version)}
    assert f"old-{version}" in names
