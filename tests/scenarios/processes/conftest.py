"""`moorage serve` as a user starts it: a real process with real children, on a free port."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 200.0


@dataclass
class Served:
    """A running service."""

    process: subprocess.Popen[str]
    line: str
    port: int
    log: Path
    children_seen: set[int] = field(default_factory=set)

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET", path, headers=names)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def raw(self, data: bytes) -> socket.socket:
        """A connection on which these bytes were sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        connection.sendall(data)
        return connection

    def answers(self) -> bool:
        """Whether anybody listens on the port."""
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        return False

    def ended(self) -> int:
        """The exit status, once it has ended."""
        return self.process.wait(PATIENCE)

    def alive(self, pid: int) -> bool:
        """Whether the process runs."""
        return alive(pid)

    def eventually(self, condition: Callable[[], object], seconds: float = PATIENCE) -> Any:
        """The first true value of the condition; fails after so many seconds."""
        return eventually(condition, seconds)

    def children(self, word: str) -> list[int]:
        """Process ids of the children whose command has the word."""
        found = [pid for pid in child_pids(self.process.pid) if word in command_of(pid)]
        self.children_seen.update(found)
        return found


def child_pids(parent: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except FileNotFoundError:
        return []


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def none_alive(pids: list[int]) -> bool:
    return not any(alive(pid) for pid in pids)


def eventually(condition: Callable[[], object], seconds: float = PATIENCE) -> Any:
    """The first true value of the condition; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def without_planners(options: tuple[str, ...]) -> tuple[str, ...]:
    """A process less for each service, unless the test says how many planners it has."""
    return options if "--planners" in options else (*options, "--planners", "0")


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "moorage.cli.main", "serve", *options]


def environment(home: Path) -> dict[str, str]:
    # Compiled modules are kept, as for a user: most of a start is otherwise spent compiling.
    dropped = ("MOORAGE_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "XDG_DATA_HOME": str(home / "data"), "HOME": str(home)}


StartService = Callable[..., Served]


@contextlib.contextmanager
def starter(home: Path) -> Iterator[StartService]:
    """Start services below a directory; end all of them afterwards."""
    running: list[Served] = []

    def start(*options: str, **variables: str) -> Served:
        log = home / f"log{len(running)}"
        with log.open("w") as stderr:
            process = subprocess.Popen(
                command("--port", "0", *without_planners(options)),
                cwd=home,
                env={**environment(home), **variables},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "serving on" in line, log.read_text()
        port = int(line.partition("://")[2].partition(" ")[0].rpartition(":")[2])
        served = Served(process, line, port, log)
        running.append(served)
        served.children("")
        return served

    try:
        yield start
    finally:
        for served in running:
            left = [served.process.pid, *served.children(""), *served.children_seen]
            served.process.kill()
            served.ended()
            assert served.process.stdout is not None
            served.process.stdout.close()
            eventually(partial(none_alive, left))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartService]:
    with starter(tmp_path) as make:
        yield make


@pytest.fixture(scope="session")
def serve() -> Callable[[Path], contextlib.AbstractContextManager[StartService]]:
    """Starts services below a directory, for tests that share one."""
    return starter


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for the tests that leave it running."""
    with starter(tmp_path_factory.mktemp("shared")) as make:
        yield make("--body-limit", "64K", "--log-level", "info")


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `moorage serve` that is expected to end by itself."""

    def run(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*without_planners(options)),
            cwd=tmp_path,
            env={**environment(tmp_path), **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    return run
