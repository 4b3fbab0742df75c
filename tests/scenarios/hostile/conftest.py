"""A service in a mount namespace of its own, whose disk can be filled, frozen and spoilt."""

import contextlib
import http.client
import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.processes.conftest import environment, eventually, start

__all__ = ["start"]

VERSION = {"openstack-api-version": "placement 1.39", "x-auth-token": "admin"}


def call(port: int, method: str, path: str, body: object = None) -> tuple[int, dict[str, str], Any]:
    """One request on a connection of its own: status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=150)
    try:
        headers = dict(VERSION)
        sent = None
        if body is not None:
            sent, headers["content-type"] = json.dumps(body), "application/json"
        connection.request(method, path, sent, headers)
        answer = connection.getresponse()
        raw = answer.read()
        found = {name.lower(): text for name, text in answer.getheaders()}
        return answer.status, found, json.loads(raw) if raw else None
    finally:
        connection.close()


PROVIDERS = "/placement/resource_providers"


def create(port: int, name: str = "") -> tuple[int, Any]:
    """Make a provider."""
    status, _, body = call(port, "POST", PROVIDERS, {"name": name or str(uuid.uuid4())})
    return (201 if status == 200 else status), body  # with the body, from microversion 1.20 on


def names(port: int) -> set[str]:
    """The providers there are."""
    status, _, body = call(port, "GET", PROVIDERS)
    assert status == 200, body
    return {one["name"] for one in body["resource_providers"]}


@dataclass
class Isolated:
    """A service whose database lies on a small disk that only it sees."""

    process: "subprocess.Popen[str]"
    port: int
    log: Path
    disk: Path

    def inside(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command where its disk is."""
        return subprocess.run(
            ["nsenter", "--mount", "--target", str(self.process.pid), *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment(self.disk.parent),
        )

    def sql(self, file: Path, *statements: str) -> None:
        """Run statements on a file of its disk."""
        script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        script += "[c.execute(one).fetchall() for one in sys.argv[2:]]"
        done = self.inside(sys.executable, "-c", script, str(file), *statements)
        assert done.returncode == 0, done.stderr

    def logged(self, words: str) -> None:
        """Wait until the log has the words, and has no traceback."""
        eventually(lambda: words in self.log.read_text())
        assert "Traceback" not in self.log.read_text()


@pytest.fixture
def isolated(tmp_path: Path) -> Iterator[Callable[[], Isolated]]:
    """Start `moorage serve` on a disk of a few megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=3m moorage {disk}"
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"a mount namespace is not allowed here: {tried.stderr.strip()}")
    running: list[subprocess.Popen[str]] = []

    def start() -> Isolated:
        serve = f"{sys.executable} -m moorage.cli.main serve --port 0 --planners 0"
        serve += " --log-level warning"
        command = f"{mount} && exec {serve} --database sqlite:///{disk}/ledger.db"
        log = tmp_path / "log"
        with log.open("w") as stderr:
            process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", command],
                cwd=tmp_path,
                env=environment(tmp_path),
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        running.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "serving on" in line, log.read_text()
        port = int(line.partition("://")[2].partition(" ")[0].rpartition(":")[2])
        return Isolated(process, port, log, disk)

    yield start
    for process in running:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
