"""A server that speaks Blazar's shapes, release 18, over HTTP: only what is read of one."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

STAMP = "2026-01-02 03:04:05.000000"


def written(when: datetime) -> str:
    """Always with six digits, and without a zone: it is UTC."""
    return when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


@dataclass
class Blazar:
    """What it knows. `bad` answers some paths otherwise: status and body."""

    url: str = ""
    hosts: list[dict[str, Any]] = field(default_factory=list)
    private: set[str] = field(default_factory=set)
    floatingips: list[dict[str, Any]] = field(default_factory=list)
    leases: list[dict[str, Any]] = field(default_factory=list)
    allocations: dict[str, list[str]] = field(default_factory=dict)
    """Host id -> reservations."""
    bad: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    headers: list[dict[str, str]] = field(default_factory=list)

    def host(self, number: int, name: str, **extra: str) -> None:
        """Enrol a host; what was added to it stands beside its columns."""
        columns = {
            "vcpus": 64,
            "cpu_info": '{"arch": "x86_64"}',
            "hypervisor_type": "QEMU",
            "hypervisor_version": 6002000,
            "memory_mb": 65536,
            "local_gb": 1000,
            "status": None,
            "availability_zone": "",
            "trust_id": "0a1b",
            "reservable": True,
            "created_at": STAMP,
            "updated_at": None,
        }
        names = {"id": str(number), "hypervisor_hostname": name, "service_name": name}
        self.hosts.append({**names, **columns, **extra})
        self.allocations[str(number)] = []

    def floatingip(self, id_: str, network: str, address: str) -> None:
        self.floatingips.append(
            {
                "id": id_,
                "floating_network_id": network,
                "subnet_id": "b" * 8,
                "floating_ip_address": address,
                "reservable": True,
                "created_at": STAMP,
                "updated_at": None,
            }
        )

    def lease(
        self,
        id_: str,
        start: datetime,
        end: datetime,
        *reservations: dict[str, Any],
        status: str = "PENDING",
        hosts: tuple[int, ...] = (),
        **more: Any,
    ) -> None:
        """A lease whose reservations have places on these hosts."""
        common = {
            "lease_id": id_,
            "resource_id": "17",
            "status": status.lower(),
            "missing_resources": False,
            "resources_changed": False,
            "created_at": STAMP,
            "updated_at": None,
        }
        for number in hosts:
            self.allocations[str(number)] += [one["id"] for one in reservations]
        kinds = (("start_lease", start), ("end_lease", end), ("before_end_lease", end))
        self.leases.append(
            {
                "id": id_,
                "name": f"lease-{id_[:4]}",
                "user_id": "ann",
                "project_id": "project-a",
                "start_date": written(start),
                "end_date": written(end),
                "trust_id": "0a1b",
                "status": status,
                "degraded": False,
                "created_at": STAMP,
                "updated_at": None,
                "reservations": [{**common, **one} for one in reservations],
                "events": [
                    {"id": f"{id_}-{kind}", "lease_id": id_, "event_type": kind}
                    | {"time": written(at), "status": "UNDONE"}
                    for kind, at in kinds
                ],
                **more,
            }
        )

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        """Status and body."""
        if path in self.bad:
            return self.bad[path]
        bodies: dict[str, Any] = {
            "/v1/os-hosts": {"hosts": self.hosts},
            "/v1/os-hosts/properties": {"resource_properties": self._properties(query)},
            "/v1/os-hosts/allocations": {
                "allocations": [
                    {
                        "resource_id": host,
                        "reservations": [{"id": one, "lease_id": "x"} for one in some],
                    }
                    for host, some in self.allocations.items()
                ]
            },
            "/v1/floatingips": {"floatingips": self.floatingips},
            "/v1/leases": {"leases": self.leases},
        }
        if path not in bodies:
            return 404, {"error": 404, "error_message": "Not Found"}
        return 200, bodies[path]

    def _properties(self, query: dict[str, list[str]]) -> list[dict[str, str]]:
        columns = {"vcpus", "memory_mb", "local_gb", "cpu_info", "status", "service_name"}
        columns |= {"id", "hypervisor_type", "hypervisor_version", "hypervisor_hostname"}
        columns |= {"availability_zone", "trust_id", "reservable", "created_at", "updated_at"}
        added = sorted({key for host in self.hosts for key in host} - columns)
        shown = (
            added if query.get("all") == ["True"] else [k for k in added if k not in self.private]
        )
        return [{"property": key} for key in shown]


@contextmanager
def serving() -> Iterator[Blazar]:
    """A Blazar that knows nothing yet, at a loopback port of its own."""
    blazar = Blazar()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            blazar.asked[url.path] += 1
            blazar.headers.append(dict(self.headers.items()))
            status, body = blazar.answer(url.path, parse_qs(url.query))
            if self.headers.get("X-Auth-Token") != "admin":
                status, body = 401, {"error": {"code": 401}}
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    blazar.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield blazar
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
