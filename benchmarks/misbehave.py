"""One tenant misbehaves, another one works: what the other one waits, and the memory it takes.

    python -m benchmarks.misbehave [bodies | large-bodies | listings | connections | templates]
        [--clients 128] [--hosts 2000] [--workers 1] [--seconds 20] [--source DIRECTORY]

- `bodies`: clients send heads and the first byte of a body, and then nothing.
- `large-bodies`: the same, but they send a megabyte less than the longest body there may be.
- `listings`: clients ask for the list of all resource providers four times and read nothing. Each
  finds a ledger that was written since the one before, so no two get the same bytes from a cache.
- `connections`: clients connect and say nothing; prints how many each worker has.
- `templates`: clients place Heat templates of a thousand groups of five servers, with a time limit
  of 5 s, again and again; prints how long each took, and what was answered. Meant for few clients.

Starts a service of its own on SQLite, fills it, and lets one client do a GET and a PUT in turns
over one connection, half as long alone and then for so long beside the others. Prints per verb the
median and the worst latency and the statuses, and the memory of the HTTP workers: before, and at
its highest. `--source` is the `src` of another checkout to be measured by the same script.
"""

import argparse
import contextlib
import http.client
import json
import re
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.service import serving

LIST = "/placement/resource_providers"
HEADERS = {
    "x-auth-token": "admin",
    "openstack-api-version": "placement 1.39",
    "content-type": "application/json",
}
BODY_LIMIT = 16 * 1024 * 1024
PATIENCE = 120.0


@dataclass
class Service:
    """A running service."""

    pid: int
    port: int

    def workers(self) -> list[int]:
        """The process ids of its HTTP workers."""
        task = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        pids = [int(pid) for pid in task.read_text().split()]
        return [
            pid for pid in pids if "http.worker_process" in Path(f"/proc/{pid}/cmdline").read_text()
        ]

    def started(self) -> int:
        """How many HTTP workers have started."""
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(wire):
            wire.request("GET", "/metrics")
            page = wire.getresponse().read().decode()
        return len(re.findall(r'\nmoorage_worker_starts_total\{worker="\d', page))

    def memory(self, key: str) -> int:
        """Megabytes of all HTTP workers: `VmRSS` now, `VmHWM` at the highest."""
        found = 0
        for pid in self.workers():
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            found += next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))
        return found // 1024

    def sockets(self) -> dict[int, int]:
        """How many each worker has open."""
        return {
            pid: sum(
                str(one.readlink()).startswith("socket:")
                for one in Path(f"/proc/{pid}/fd").iterdir()
            )
            for pid in self.workers()
        }

    def connect(self) -> socket.socket:
        """A connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)


@contextlib.contextmanager
def started(source: str | None, workers: int) -> Iterator[Service]:
    """A service of so many workers, all of which have started."""
    with serving(source, "--workers", str(workers)) as (pid, port):
        service = Service(pid, port)
        while service.started() < workers:
            time.sleep(0.1)
        time.sleep(5)
        yield service


@dataclass
class Tenant:
    """A client that works; what it found."""

    service: Service
    latencies: dict[str, list[float]] = field(default_factory=lambda: {"GET": [], "PUT": []})
    statuses: Counter[str] = field(default_factory=Counter)
    _wire: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: object = None) -> bytes:
        """One request; a new connection if there is none."""
        if self._wire is None:
            self._wire = http.client.HTTPConnection(
                "127.0.0.1", self.service.port, timeout=PATIENCE
            )
        started = time.perf_counter()
        try:
            headers = HEADERS | ({"if-match": "*"} if method == "DELETE" else {})
            self._wire.request(method, path, json.dumps(body) if body else None, headers)
            answer = self._wire.getresponse()
            found = answer.read()
            outcome = str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            self._wire.close()
            self._wire, found, outcome = None, b"", type(error).__name__
        self.latencies.setdefault(method, []).append(time.perf_counter() - started)
        self.statuses[f"{method} {outcome}"] += 1
        return found

    def work(self, seconds: float) -> None:
        """A GET and a PUT in turns."""
        until = time.monotonic() + seconds
        number = 0
        while time.monotonic() < until:
            self.ask("GET", f"{LIST}?name=host-0")
            self.ask("PUT", f"{LIST}/{uuid(0)}", {"name": f"host-0-{number % 2}"})
            number += 1
            time.sleep(0.01)

    def told(self) -> str:
        """Latencies in milliseconds, and statuses."""
        parts = []
        for method in ("GET", "PUT"):
            found = [1000 * one for one in self.latencies[method]]
            parts.append(
                f"{method} median {statistics.median(found):.1f} ms, worst {max(found):.0f} ms"
            )
        return f"{'; '.join(parts)}; {dict(sorted(self.statuses.items()))}"


def uuid(number: int) -> str:
    """A provider's."""
    return f"00000000-0000-4000-8000-{number:012d}"


def fill(service: Service, hosts: int) -> int:
    """Make so many providers; the bytes of their list."""
    tenant = Tenant(service)
    for number in range(hosts):
        tenant.ask("POST", LIST, {"name": f"host-{number}", "uuid": uuid(number)})
    assert tenant.statuses == {"POST 200": hosts}, tenant.statuses
    return len(tenant.ask("GET", LIST))


def misbehave(way: str, client: socket.socket) -> None:
    """What one client does; it may be refused on the way."""
    head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    sent = BODY_LIMIT - 1024 * 1024
    put = f"PUT {LIST}/{uuid(1)} HTTP/1.1\r\nHost: h\r\n{head}Content-Length: {BODY_LIMIT}\r\n\r\n"
    get = f"GET {LIST} HTTP/1.1\r\nHost: h\r\n{head}\r\n"
    data = {
        "bodies": put.encode() + b"{",
        "large-bodies": put.encode() + b" " * sent,
        "listings": get.encode() * 4,
        "connections": b"",
    }[way]
    with contextlib.suppress(OSError):
        client.sendall(data)


def template(name: str) -> dict[str, object]:
    """A request to place five thousand servers in a thousand groups."""
    groups = {
        f"g{number}": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {
                "count": 5,
                "resource_def": {"type": "OS::Nova::Server", "properties": {"flavor": "small"}},
            },
        }
        for number in range(1000)
    }
    text = json.dumps({"heat_template_version": "2018-08-31", "resources": groups})
    return {"hot": {"name": name, "template": text, "decide": {"time_limit": "5s"}}}


@contextlib.contextmanager
def placing(service: Service, clients: int, hosts: int) -> Iterator[Tenant]:
    """Clients that place templates until it is over; what they found."""
    operator, over = Tenant(service), threading.Event()
    operator.ask("POST", "/v1/flavors", {"flavor": {"name": "small", "resources": {"VCPU": 1}}})
    for number in range(hosts):
        room = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1000}}}
        operator.ask("PUT", f"{LIST}/{uuid(number)}/inventories", room)
    found = Tenant(service)

    def place(number: int) -> None:
        body = template(f"many-{number}")
        while not over.is_set():
            one = Tenant(service)
            answer = json.loads(one.ask("POST", "/v1/hot", body) or b"{}")
            if "ensemble" in answer:
                made = answer["ensemble"]["id"]
                one.ask("DELETE", f"/v1/ensembles/{made}")
            found.statuses += one.statuses
            found.latencies.setdefault("POST", []).extend(one.latencies["POST"])

    threads = [threading.Thread(target=place, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        over.set()
        for thread in threads:
            thread.join()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    ways = ("bodies", "large-bodies", "listings", "connections", "templates")
    parser.add_argument("way", choices=ways)
    parser.add_argument("--clients", type=int, default=128)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--source")
    asked = parser.parse_args()
    with started(asked.source, asked.workers) as service, contextlib.ExitStack() as opened:
        size = fill(service, asked.hosts)
        print(f"{asked.hosts} resource providers, a list of {size / 1e6:.1f} MB")
        alone = Tenant(service)
        alone.work(asked.seconds / 2)
        print(f"alone:  {alone.told()}")
        before, sockets = service.memory("VmRSS"), service.sockets()
        placed = None
        if asked.way == "templates":
            placed = opened.enter_context(placing(service, asked.clients, asked.hosts))
        for number in range(0 if placed else asked.clients):
            misbehave(asked.way, opened.enter_context(service.connect()))
            if asked.way == "listings":
                alone.ask("PUT", f"{LIST}/{uuid(0)}", {"name": f"host-0-{number}"})
        beside = Tenant(service)
        beside.work(asked.seconds)
        print(f"beside: {beside.told()}")
        print(f"memory: {before} MB before, {service.memory('VmHWM')} MB at the highest")
        if placed is not None:
            took = [round(one, 1) for one in placed.latencies.get("POST", [])]
            print(f"templates: {took} s; {dict(sorted(placed.statuses.items()))}")
        now = service.sockets()
        print(f"connections: {sorted(now[pid] - sockets.get(pid, 0) for pid in now)}")


if __name__ == "__main__":
    main()
