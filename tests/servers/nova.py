"""Nova, Glance and Neutron as one small real server, which uses Moorage as its Placement."""

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from tests.servers.neutron import Neutron
from tests.servers.nova_answers import Lost, Reply

__all__ = ["Lost", "Reply"]
SIZES = {
    "m1.small": {"DISK_GB": 20, "MEMORY_MB": 2048, "VCPU": 1},
    "m1.medium": {"DISK_GB": 40, "MEMORY_MB": 4096, "VCPU": 2},
    "m1.xlarge": {"DISK_GB": 160, "MEMORY_MB": 16384, "VCPU": 8},
}
IMAGE = "10000000-0000-4000-8000-000000000001"
NETWORK = "20000000-0000-4000-8000-000000000001"


@dataclass
class Instance:
    """A server that was asked for."""

    id: str
    project: str
    request: dict[str, Any]
    request_id: str | None
    status: str = "BUILD"
    fault: str = ""
    looks: int = 0
    hosts: list[str] = field(default_factory=list)
    ran: bool = False

    @property
    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "id": self.id,
            "name": self.request["name"],
            "status": self.status,
            "metadata": self.request.get("metadata", {}),
            "OS-SRV-USG:launched_at": "2026-11-21T09:00:00" if self.ran else None,
        }
        if self.fault:
            found["fault"] = {"code": 500, "message": self.fault}
        return found


Fault = Callable[["Nova", dict[str, Any]], None]
"""Called with a request to create a server, before it is carried out; it may raise."""


@dataclass
class Nova:
    """What it has, how it fails, and what was done."""

    placement: str
    """The URL of Moorage's Placement API."""
    looks: int = 1
    """How often a server is looked at until it is built; 0: it never is."""
    faults: list[Fault] = field(default_factory=list)
    """Of the next requests to create servers, one each; the first is used up first."""
    lose_answers: int = 0
    """Of so many servers the connection breaks after they were created."""
    broken: dict[str, int] = field(default_factory=dict)
    """Name of a server -> how many builds of it fail."""
    broken_hosts: set[str] = field(default_factory=set)
    """UUIDs of hosts on which every build fails."""
    elsewhere: bool = False
    """Whether another service is its Placement."""
    presents: bool = True
    """Whether it passes the id of the request on to Placement."""
    servers: dict[str, Instance] = field(default_factory=dict)
    created: list[Instance] = field(default_factory=list)
    """All servers there ever were."""
    network: Neutron = field(default_factory=Neutron)
    busy: bool = False
    """Whether no server may be changed just now."""
    url: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)

    # --- the APIs ---

    def answer(self, method: str, url: str, headers: Any, body: Any) -> tuple[int, Any]:
        parts = urlsplit(url)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        token = headers.get("X-Auth-Token") or ""
        project = token if token == "admin" else token.partition(":")[2]  # as Moorage's noauth2
        if not project:
            raise Reply(401)
        match = re.fullmatch(r"/compute/v2\.1/servers/([^/]+)", parts.path)
        with self.lock:
            attached = re.fullmatch(
                r"/compute/v2\.1/servers/([^/]+)/os-interface(?:/(.+))?", parts.path
            )
            if attached:
                return self._interface(method, attached[1], attached[2], body)
            network = parts.path.removeprefix("/network/v2.0/")
            if network.partition("/")[0] in {"ports", "trunks"}:
                return self.network.answer(method, network, query, body)
            if match and match[1] != "detail":
                return self._server(method, match[1])
            if (method, parts.path) == ("POST", "/compute/v2.1/servers"):
                assert headers.get("OpenStack-API-Version") == "compute 2.37"
                return self._create(body["server"], project, headers.get("X-Openstack-Request-Id"))
            return 200, self._listing(parts.path, query, project)

    def _listing(self, path: str, query: dict[str, str], project: str) -> Any:
        match path:
            case "/compute/v2.1/flavors/detail":
                sizes = {name: amounts["DISK_GB"] for name, amounts in SIZES.items()}
                flavors = [
                    {"id": f"id-of-{name}", "name": name, "disk": disk}
                    for name, disk in sizes.items()
                ]
                return {"flavors": flavors}
            case "/compute/v2.1/servers/detail":
                own = [one for one in self.servers.values() if one.project == project]
                return {"servers": [one.shown for one in own]}
            case "/image/v2/images":
                every = [{"id": IMAGE, "name": "debian"}]
                return {"images": [one for one in every if one["name"] == query.get("name")]}
            case path if path == f"/network/v2.0/networks/{NETWORK}":
                return {"network": {"id": NETWORK}}
            case "/network/v2.0/networks":
                every = [{"id": NETWORK, "name": "shop-net"}]
                return {"networks": [one for one in every if one["name"] == query.get("name")]}
        raise Reply(404)

    def _create(
        self, request: dict[str, Any], project: str, request_id: str | None
    ) -> tuple[int, Any]:
        if self.faults:
            self.faults.pop(0)(self, request)
        volumes = request.get("block_device_mapping_v2", [])
        assert [request.get("imageRef"), *(one["uuid"] for one in volumes)].count(IMAGE) == 1
        made = Instance(str(uuid.uuid4()), project, request, request_id)
        self.servers[made.id] = made
        self.created.append(made)
        if self.lose_answers:
            self.lose_answers -= 1
            raise Lost
        return 202, {"server": {"id": made.id, "adminPass": "x"}}

    def _server(self, method: str, server_id: str) -> tuple[int, Any]:
        found = self.servers.get(server_id)
        if found is None:
            raise Reply(404, "Instance could not be found.")
        if method == "DELETE":
            self._forget(server_id)
            del self.servers[server_id]
            return 204, None
        found.looks += 1
        if found.status == "BUILD" and self.looks and found.looks >= self.looks:
            self._build(found)
        return 200, {"server": found.shown}

    def _interface(
        self, method: str, server_id: str, port_id: str | None, body: Any
    ) -> tuple[int, Any]:
        if server_id not in self.servers:
            raise Reply(404, f"Instance {server_id} could not be found.")
        if self.busy:
            raise Reply(409, "Cannot 'attach_interface' instance while it is in task_state x")
        port = self.network.ports[port_id or body["interfaceAttachment"]["port_id"]]
        if method == "DELETE":
            port["device_id"] = ""
            return 202, None
        assert not port["device_id"]
        port["device_id"] = server_id
        return 200, {"interfaceAttachment": {"port_id": port["id"]}}

    # --- scheduler, conductor and compute ---

    def _build(self, server: Instance) -> None:
        flavor = server.request["flavorRef"].removeprefix("id-of-")
        booked = dict(SIZES[flavor])
        if "block_device_mapping_v2" in server.request:
            del booked["DISK_GB"]
        amounts = ",".join(f"{name}:{amount}" for name, amount in booked.items())
        if self.elsewhere:
            self._finish(server, refused=False)
            return
        presented = server.request_id if self.presents else None
        path = f"/allocation_candidates?limit=1000&resources={amounts}"
        found = self._placement("GET", path, presented=presented).json()["allocation_requests"]
        if not found:
            server.status, server.fault = "ERROR", "No valid host was found."
            return
        body = {**found[0], "project_id": server.project, "user_id": "ann"}
        body["consumer_generation"] = None
        written = self._placement("PUT", f"/allocations/{server.id}", body, presented)
        server.hosts = list(found[0]["allocations"])
        self._finish(server, refused=written.status_code != 204)

    def _finish(self, server: Instance, *, refused: bool) -> None:
        name = server.request["name"]
        left = self.broken.get(name, 0)
        if refused or left or self.broken_hosts & set(server.hosts):
            self.broken[name] = max(left - 1, 0)
            self._forget(server.id)
            server.status, server.fault = "ERROR", "Build of instance aborted: disk is broken"
            return
        server.status, server.ran = "ACTIVE", True

    def _forget(self, server_id: str) -> None:
        if not self.elsewhere:
            self._placement("DELETE", f"/allocations/{server_id}")

    def _placement(
        self, method: str, path: str, body: object = None, presented: str | None = None
    ) -> httpx.Response:
        headers = {
            "x-auth-token": "nova:service",
            "x-roles": "service",
            "openstack-api-version": "placement 1.36",
            **({} if presented is None else {"x-openstack-request-id": presented}),
        }
        return httpx.request(method, self.placement + path, json=body, headers=headers)

    # --- for tests ---

    def named(self, name: str) -> list[Instance]:
        """Every server that was created under a name."""
        return [one for one in self.created if one.request["name"] == name]


@contextmanager
def running(nova: Nova) -> Iterator[Nova]:
    """Serve it on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length)
            try:
                status, body = nova.answer(
                    self.command, self.path, self.headers, json.loads(raw) if raw else None
                )
            except Lost:
                self.close_connection = True
                return
            except Reply as reply:
                status, body = reply.status, {"fault": {"message": reply.message}}
            text = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_DELETE = _do  # noqa: N815 - named by the library

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    nova.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield nova
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def environment(nova: Nova) -> dict[str, str]:
    """The variables by which clients find it."""
    return {
        "OS_COMPUTE_ENDPOINT_OVERRIDE": f"{nova.url}/compute/v2.1",
        "OS_IMAGE_ENDPOINT_OVERRIDE": f"{nova.url}/image",
        "OS_NETWORK_ENDPOINT_OVERRIDE": f"{nova.url}/network",
    }
