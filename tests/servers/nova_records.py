"""A server with the compute API's lists, as an operator reads them: only what is read of one."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]


@dataclass
class NovaRecords:
    """What it knows. `bad` answers some paths otherwise: status and body."""

    url: str = ""
    lists: dict[str, list[Json]] = field(
        default_factory=lambda: {
            name: []
            for name in (
                "server_groups",
                "servers",
                "flavors",
                "aggregates",
                "hypervisors",
                "services",
            )
        }
    )
    bad: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    creations: dict[str, tuple[int, Json]] = field(default_factory=dict)
    """Path -> the answer to every request that creates a server, which it refuses."""
    most: int = 1000
    """The longest page."""

    def group(self, id_: str, name: str, policy: str | None, *members: str, **more: Any) -> Json:
        group = {
            "id": id_,
            "name": name,
            "policy": policy,
            "rules": {},
            "members": list(members),
            "project_id": "project-a",
            "user_id": "ann",
            **more,
        }
        self.lists["server_groups"].append(group)
        return group

    def server(self, id_: str, host: str | None, flavor: str = "small", **more: Any) -> Json:
        server = {
            "id": id_,
            "name": f"server-{id_[:4]}",
            "status": "ACTIVE",
            "tenant_id": "project-a",
            "flavor": {"original_name": flavor, "vcpus": 2, "ram": 0, "disk": 0},
            "OS-EXT-SRV-ATTR:hypervisor_hostname": host,
            "OS-EXT-STS:task_state": None,
            **more,
        }
        self.lists["servers"].append(server)
        return server

    def flavor(self, id_: str, name: str, vcpus: int, **specs: str) -> Json:
        flavor = {
            "id": id_,
            "name": name,
            "vcpus": vcpus,
            "ram": 1024,
            "disk": 10,
            "OS-FLV-EXT-DATA:ephemeral": 0,
            "swap": 0,
            "extra_specs": {key.replace("__", ":"): value for key, value in specs.items()},
        }
        self.lists["flavors"].append(flavor)
        return flavor

    def aggregate(self, name: str, *hosts: str, **metadata: str) -> Json:
        number = len(self.lists["aggregates"]) + 1
        aggregate = {"id": number, "name": name, "hosts": list(hosts), "metadata": metadata}
        self.lists["aggregates"].append(aggregate)
        return aggregate

    def hypervisor(self, name: str, host: str | None = None, **more: Any) -> Json:
        service = {"host": host or name, "id": "s", "disabled_reason": None}
        hypervisor = {"id": name, "hypervisor_hostname": name, "state": "up", "service": service}
        hypervisor |= {"status": "enabled", **more}
        self.lists["hypervisors"].append(hypervisor)
        return hypervisor

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        """Status and body."""
        if path in self.bad:
            return self.bad[path]
        name = path.removeprefix("/v2.1/").removesuffix("/detail").removeprefix("os-")
        name = {"server-groups": "server_groups"}.get(name, name)
        if name not in self.lists:
            return 404, {"itemNotFound": {"code": 404, "message": "Not Found"}}
        found = self.lists[name]
        if "marker" in query:
            ids = [one["id"] for one in found]
            found = found[ids.index(query["marker"]) + 1 :]
        first = int(query.get("offset", "0"))
        limit = min(int(query.get("limit", self.most)), self.most)
        page = {name: found[first : first + limit]}
        if len(found) > first + limit and name != "server_groups":
            page[f"{name}_links"] = [{"rel": "next", "href": "..."}]
        return 200, page


@contextmanager
def serving() -> Iterator[NovaRecords]:
    """A Nova that knows nothing yet, at a loopback port of its own."""
    nova = NovaRecords()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            nova.asked[url.path] += 1
            query = {name: values[-1] for name, values in parse_qs(url.query).items()}
            status, body = nova.answer(url.path, query)
            if self.headers.get("X-Auth-Token") != "admin":
                status, body = 401, {"error": {"code": 401, "message": "who are you"}}
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = nova.creations.get(self.path, (404, {}))
            data = json.dumps(body).encode()
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
    nova.url = f"http://127.0.0.1:{server.server_port}/v2.1"
    try:
        yield nova
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
