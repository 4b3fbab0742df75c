"""Servers as processes on a listening socket of ours, and what the system says of them."""

from __future__ import annotations

import contextlib
import http.client
import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from benchmarks.http_servers.hosts import NAMES, OWN_SOCKET

from moorage.http import process_status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATIENCE: Final = 90.0
OWN_WORKERS: Final = frozenset({"gunicorn", "granian"})
"""Those that start their workers themselves."""


@dataclass
class Server:
    """Processes that serve one port."""

    name: str
    listener: socket.socket | None
    port: int
    application: str
    environ: Mapping[str, str]
    status: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, workers: int = 1) -> subprocess.Popen[bytes]:
        """One more process, with so many workers of its own."""
        where = self.port if self.listener is None else self.listener.fileno()
        number = str(len(self.processes) + 1)
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [
                *(sys.executable, "-m", "benchmarks.http_servers.hosts", self.name),
                *(self.application, str(where), str(workers)),
            ],
            pass_fds=[self.status, *([] if self.listener is None else [where])],
            env={
                **os.environ,
                **self.environ,
                "HTTP_SERVERS_STATUS": str(self.status),
                "HTTP_SERVERS_NUMBER": number,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=None if os.environ.get("HTTP_SERVERS_DEBUG") else subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def connect(self, seconds: float = PATIENCE) -> socket.socket:
        """A connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)

    def ask(self, path: str, seconds: float = PATIENCE) -> bytes:
        """One answer over a connection of its own."""
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        with contextlib.closing(wire):
            wire.request("GET", path)
            return wire.getresponse().read()

    def wait(self, count: int = 1) -> None:
        """Until so many workers answer."""
        until = time.monotonic() + PATIENCE
        path = "/who" if self.application == "small" else "/healthz"
        seen: set[bytes] = set()
        while len(seen) < count:
            if time.monotonic() > until:
                raise TimeoutError(f"{self.name}: {len(seen)} of {count} workers answer")
            try:
                found = self.ask(path, 2)
                seen.add(found.split(b",")[0])
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)

    def workers(self) -> list[int]:
        """Process ids of all below, which serve."""
        found = [one.pid for one in self.processes if one.poll() is None]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    found.extend(map(int, (task / "children").read_text().split()))
        return found

    def memory(self) -> int:
        """Kilobytes that are theirs alone, and of their unlinked files."""
        return sum(_private(pid) + _unlinked(pid) for pid in self.workers())


def _private(pid: int) -> int:
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(one.split()[1]) for one in lines if one.startswith("Private_"))
    return 0


def _unlinked(pid: int) -> int:
    """Kilobytes of temporary files that have no name."""
    found = 0
    with contextlib.suppress(OSError):
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if "(deleted)" in str(one.readlink()) and "memfd" not in str(one.readlink()):
                    found += one.stat().st_size
    return found // 1024


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@contextlib.contextmanager
def serving(
    name: str,
    application: str = "small",
    workers: int = 1,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Server]:
    """A server that answers; gone afterwards."""
    listener = None
    if name in OWN_SOCKET:
        port = _free_port()
    else:
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setblocking(False)  # noqa: FBT003 - the standard library's signature
        port = int(listener.getsockname()[1])
    server = Server(name, listener, port, application, dict(environ), process_status.make())
    try:
        if name in OWN_WORKERS:
            server.start(workers)
        else:
            for _ in range(workers):
                server.start()
        if "HTTP_SERVERS_CERTIFICATE" not in environ:
            server.wait(workers)
        yield server
    finally:
        everyone = server.workers()
        for one in server.processes:
            one.send_signal(signal.SIGTERM)
        until = time.monotonic() + 8
        for one in server.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(max(until - time.monotonic(), 0.1))
        for pid in everyone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for one in server.processes:
            one.wait(5)
        if listener is not None:
            listener.close()
        os.close(server.status)


def tls_client(certificate: Path) -> ssl.SSLContext:
    """What a client needs to trust it."""
    return ssl.create_default_context(cafile=str(certificate))


def raise_limits() -> None:
    """Let this process and its children have thousands of connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


__all__ = ["NAMES", "Server", "raise_limits", "serving", "tls_client"]
