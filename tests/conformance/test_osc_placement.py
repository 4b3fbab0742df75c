"""The unmodified `openstack` client with osc-placement from PyPI, against a real server process.

Its commands run inside this process (`OpenStackShell`), which spares a second each.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.process,
    # The client's own deprecations are not ours to repair.
    pytest.mark.filterwarnings("ignore"),
]

Openstack = Callable[..., Any]


def ready_line(log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        text = log.read_text()
        found = [line for line in text.splitlines() if line.startswith("moorage: serving on ")]
        if found:
            return found[0]
        assert process.poll() is None, text
        time.sleep(0.05)
    pytest.fail(f"no server after a minute: {log.read_text()}")


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where Placement is served, by `moorage serve` on a database of its own."""
    home = tmp_path_factory.mktemp("served")
    log = home / "log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
    command = [sys.executable, "-m", "moorage.cli.main", "serve", "--port", "0"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--database", f"sqlite:///{home}/ledger.db"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**kept, "HOME": str(home)},
        )
    try:
        yield ready_line(log, process).split()[3] + "/placement"
    finally:
        process.terminate()
        process.wait(30)


def forget_clients() -> None:
    """The client keeps its session, with its version, for the life of a process: one command."""
    from osc_lib.clientmanager import ClientCache, ClientManager

    for one in vars(ClientManager).values():
        if isinstance(one, ClientCache):
            one._handle = None


@pytest.fixture
def openstack(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Openstack:
    """Run one command at a microversion; its output, read as JSON if there is any."""
    from openstackclient.shell import OpenStackShell

    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OS_AUTH_TYPE", "admin_token")
    monkeypatch.setenv("OS_TOKEN", "admin")
    monkeypatch.setenv("OS_ENDPOINT", endpoint)

    def run(command: str, *more: str, version: str = "1.39", shows: bool = True) -> Any:
        words = [*command.split(), *more, *(("-f", "json") if shows else ())]
        forget_clients()
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = OpenStackShell().run(["--os-placement-api-version", version, *words])
        assert status == 0, f"{words}: {err.getvalue()}"
        text = out.getvalue()
        return json.loads(text) if shows and text else text

    return run


def test_providers_and_inventories(openstack: Openstack) -> None:
    made = openstack("resource provider create h1")
    own = made["uuid"]
    assert openstack(f"resource provider show {own}")["name"] == "h1"
    openstack(f"resource provider create h1-gpu --parent-provider {own}")
    tree = openstack(f"resource provider list --in-tree {own}")
    assert {one["name"] for one in tree} == {"h1", "h1-gpu"}
    openstack(f"resource provider inventory set {own} --resource VCPU=8 --resource MEMORY_MB=4096")
    openstack(f"resource provider inventory class set {own} VCPU --total 16")
    found = openstack(f"resource provider inventory list {own}")
    assert {one["resource_class"]: one["total"] for one in found} == {
        "VCPU": 16,
        "MEMORY_MB": 4096,
    }
    listed = openstack("resource provider list --resource VCPU=16")
    assert [one["uuid"] for one in listed] == [own]
    openstack(f"resource provider set {own} --name renamed")
    assert openstack("resource provider list --name renamed")[0]["uuid"] == own


def test_traits_classes_and_aggregates(openstack: Openstack) -> None:
    own = openstack("resource provider create h2")["uuid"]
    openstack("trait create CUSTOM_RACK_A", shows=False)
    openstack(f"resource provider trait set {own} --trait CUSTOM_RACK_A --trait HW_CPU_X86_AVX2")
    found = openstack("resource provider list --required CUSTOM_RACK_A --forbidden HW_NUMA_ROOT")
    assert [one["uuid"] for one in found] == [own]
    openstack("resource class create CUSTOM_SESSIONS", shows=False)
    names = [one["name"] for one in openstack("resource class list")]
    assert names[0] == "VCPU"
    assert names[-1] == "CUSTOM_SESSIONS"
    aggregate = str(uuid.uuid4())
    openstack(f"resource provider aggregate set {own} --aggregate {aggregate} --generation 1")
    member = openstack(f"resource provider list --member-of {aggregate}")
    assert [one["uuid"] for one in member] == [own]


def test_allocations_usages_and_candidates(openstack: Openstack) -> None:
    own = openstack("resource provider create h3")["uuid"]
    openstack(f"resource provider inventory set {own} --resource VGPU=8")
    consumer, owner = str(uuid.uuid4()), "--project-id p3 --user-id u3 --consumer-type INSTANCE"
    written = openstack(
        f"resource provider allocation set {consumer} --allocation rp={own},VGPU=3 {owner}"
    )
    assert written[0]["resources"] == {"VGPU": 3}
    shown = openstack(f"resource provider allocation show {consumer}")
    assert shown[0]["consumer_type"] == "INSTANCE"
    used = openstack(f"resource provider usage show {own}")
    assert used == [{"resource_class": "VGPU", "usage": 3}]
    used = openstack("resource usage show p3", version="1.37")
    assert used == [{"resource_class": "VGPU", "usage": 3}]
    found = openstack("allocation candidate list --resource VGPU=5")
    assert [one["resource provider"] for one in found] == [own]
    assert openstack("allocation candidate list --resource VGPU=6") == []
    openstack(f"resource provider allocation unset {consumer}")
    openstack(f"resource provider inventory delete {own}", shows=False)
    openstack(f"resource provider delete {own}", shows=False)


@pytest.mark.parametrize("version", ["1.0", "1.7", "1.11", "1.14", "1.20", "1.28"])
def test_older_versions(openstack: Openstack, version: str) -> None:
    made = openstack(f"resource provider create old-{version}", version=version)
    assert made["generation"] == 0
    names = {one["name"] for one in openstack("resource provider list", version=version)}
    assert f"old-{version}" in names
