"""Both servers as processes on free ports, and what their process trees cost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.placement.client import Client
from benchmarks.placement.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.placement.databases import Database

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_START_SECONDS: Final = 180
_STOP_SECONDS: Final = 20
PEER_WORKERS: Final = 2
PEER_DRIVER: Final = "psycopg2"

_CONF: Final = """\
[api]
auth_strategy = noauth2
[placement_database]
connection = {url}
sync_on_startup = True
[placement]
allocation_candidates_generation_strategy = breadth-first
[DEFAULT]
log_file = {log}
"""


@dataclass(frozen=True)
class Server:
    """A running server."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    prefix: str
    database: int | None
    """The process of its database server, if it has one."""

    def client(self) -> Client:
        """A connection of its own."""
        return Client(self.port, self.prefix)

    def cpu(self) -> float:
        """Seconds of user and system time of its processes, ended children included."""
        return sum(one.cpu for one in self._processes()) / _TICKS

    def memory(self) -> dict[str, int]:
        """Resident MiB of the biggest process and of all, without the database's."""
        found = sorted((one.pages for one in tree(self.process.pid)), reverse=True)
        return {"biggest": found[0] * _PAGE >> 20, "tree": sum(found) * _PAGE >> 20}

    def _processes(self) -> list[_Process]:
        of_database = [] if self.database is None else tree(self.database)
        return [*tree(self.process.pid), *of_database]


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    cpu: int
    pages: int


def tree(root: int) -> list[_Process]:
    """A process and all below it, from /proc."""
    everyone = list(_processes())
    found = [one for one in everyone if one.pid == root]
    for one in found:
        found.extend(child for child in everyone if child.parent == one.pid)
    return found


def _processes() -> Iterator[_Process]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # proc(5): after the name come state, ppid; utime is field 14, cstime 17, rss 24.
        yield _Process(
            int(entry.name), int(fields[1]), sum(map(int, fields[11:15])), int(fields[21])
        )


@contextmanager
def ours(database: Database, folder: Path, *settings: str) -> Iterator[Server]:
    """`moorage serve` with one worker, as it is by default; `settings` are further arguments."""
    port = free_port()
    command = [
        str(Path(sys.executable).with_name("moorage")),
        "serve",
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--database", database.url, "--log-level", "warning"),
        *("--max-allocation-candidates", "unlimited"),  # as the reference does by default
        *settings,
    ]
    process = _started("ours", command, folder, dict(os.environ))
    server = Server("ours", process, port, "/placement", database.process)
    # Every process has started: what that takes is none of a request's time.
    yield from _serving(server, folder, Client(port, ""), "/readyz")


@contextmanager
def theirs(database: Database, folder: Path) -> Iterator[Server]:
    """The reference behind gunicorn with two processes."""
    port = free_port()
    conf = folder / "etc"
    conf.mkdir(exist_ok=True)
    url, log = database.driven_by(PEER_DRIVER), folder / "peer.log"
    (conf / "placement.conf").write_text(_CONF.format(url=url, log=log))
    command = [
        str(Path(sys.executable).with_name("gunicorn")),
        *("--workers", str(PEER_WORKERS), "--bind", f"127.0.0.1:{port}"),
        *("--timeout", "600", "--log-level", "warning", "--no-control-socket"),
        "placement.wsgi.api:application",
    ]
    environ = {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(conf)}
    # It makes its tables when it is loaded, which two processes cannot do at once.
    load = [sys.executable, "-c", "import placement.wsgi.api"]
    subprocess.run(load, env=environ, check=True)  # noqa: S603 - a command of our own making
    process = _started("theirs", command, folder, environ)
    server = Server("theirs", process, port, "", database.process)
    yield from _serving(server, folder, server.client(), "/resource_classes")


def _started(
    name: str, command: list[str], folder: Path, environ: dict[str, str]
) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - commands of our own making
            command, stdout=output, stderr=subprocess.STDOUT, env=environ
        )


def _serving(server: Server, folder: Path, probe: Client, path: str) -> Iterator[Server]:
    """The server, as soon as it answers the path; it is ended afterwards."""
    process = server.process
    try:
        _await(server, probe, path, folder / f"{server.name}.log")
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(server: Server, probe: Client, path: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            break
        try:
            if probe.get(path).status == HTTPStatus.OK:
                probe.close()
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"{server.name} did not start:\n{log.read_text()[-2000:]}")
