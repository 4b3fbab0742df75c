"""The reference Placement as a server, and a cloud written into it through its API."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("reference_server.py")
_CONF = """\
[api]
auth_strategy = noauth2
[placement_database]
connection = {url}
sync_on_startup = True
[DEFAULT]
log_file = {log}
"""


@dataclass(frozen=True)
class Placement:
    """Any Placement service, by its API."""

    url: str

    def ask(
        self, method: str, path: str, body: object = None, version: str = "1.39"
    ) -> tuple[int, Any]:
        """Status and body."""
        headers = {
            "X-Auth-Token": "admin",
            "OpenStack-API-Version": f"placement {version}",
            "Content-Type": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, content = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, content = error.code, error.read()
        return status, json.loads(content) if content else None

    def done(self, method: str, path: str, body: object = None, version: str = "1.39") -> Any:
        """The body of a good answer; any other fails the test."""
        status, content = self.ask(method, path, body, version)
        assert status < 300, (method, path, content)
        return content


@contextmanager
def reference(
    folder: Path, database: str, conf: str = _CONF, at: tuple[int, str] = (0, "")
) -> Iterator[Placement]:
    """The reference over a database, with its tables made, at a port and below a path."""
    folder.mkdir(exist_ok=True)
    log = folder / "placement.log"
    (folder / "placement.conf").write_text(conf.format(url=database, log=log))
    with (folder / "err").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder), *map(str, at)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().decode().strip()
        assert port, (folder / "err").read_text()[-3000:]
        yield Placement(f"http://127.0.0.1:{port}{at[1]}")
    finally:
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def named(name: str) -> str:
    """A UUID that follows from a name."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


ZONE = named("aggregate zone-1")
POOL = named("aggregate pool")


class Cloud:
    """Writes a small cloud with everything that is hard about one."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self._do = placement.done

    def write(self) -> None:
        self._do("PUT", "/resource_classes/CUSTOM_FPGA")
        self._do("PUT", "/resource_classes/CUSTOM_AT_REST")
        for name in ("CUSTOM_FAST", "CUSTOM_RACK_R2", "CUSTOM_UNUSED"):
            self._do("PUT", f"/traits/{name}")
        for number in range(1, 5):
            self.host(number)
        pool = self.provider("pool")
        self.stock(pool, {"DISK_GB": {"total": 5000}})
        self.wear(pool, "MISC_SHARES_VIA_AGGREGATE")
        self.join(pool, POOL)
        self.servers()
        self.overfill()

    def provider(self, name: str, parent: str | None = None) -> str:
        body = {"name": name, "uuid": named(name), "parent_provider_uuid": parent}
        self._do("POST", "/resource_providers", body)
        return named(name)

    def generation(self, provider: str) -> int:
        return int(self._do("GET", f"/resource_providers/{provider}")["generation"])

    def stock(self, provider: str, inventories: Mapping[str, Mapping[str, Any]]) -> None:
        body = {
            "inventories": inventories,
            "resource_provider_generation": self.generation(provider),
        }
        self._do("PUT", f"/resource_providers/{provider}/inventories", body)

    def wear(self, provider: str, *traits: str) -> None:
        body = {"traits": traits, "resource_provider_generation": self.generation(provider)}
        self._do("PUT", f"/resource_providers/{provider}/traits", body)

    def join(self, provider: str, *aggregates: str) -> None:
        body = {"aggregates": aggregates, "resource_provider_generation": self.generation(provider)}
        self._do("PUT", f"/resource_providers/{provider}/aggregates", body)

    def host(self, number: int) -> None:
        name = f"az1-r{(number + 1) // 2}-n{number}"
        root = self.provider(name)
        self.stock(
            root,
            {
                "VCPU": {"total": 16, "allocation_ratio": 4.0, "reserved": 1, "max_unit": 16},
                "MEMORY_MB": {"total": 65536, "reserved": 512, "step_size": 256, "min_unit": 256},
            },
        )
        self.wear(root, "HW_CPU_X86_AVX2", *(["CUSTOM_RACK_R2"] if number > 2 else []))
        self.join(root, POOL, *([ZONE] if number != 4 else []))
        card = self.provider(f"{name}-card", root)
        self.stock(card, {"CUSTOM_FPGA": {"total": 2}, "SRIOV_NET_VF": {"total": 8}})
        self.wear(card, "CUSTOM_FAST")

    def allocate(
        self, server: str, allocations: Mapping[str, Mapping[str, int]], **more: Any
    ) -> str:
        consumer = named(server)
        found = self._do("GET", f"/allocations/{consumer}")
        body = {
            "allocations": {
                named(provider): {"resources": amounts} for provider, amounts in allocations.items()
            },
            "project_id": named(f"project of {server[0]}").replace("-", ""),
            "user_id": named(f"user of {server[0]}").replace("-", ""),
            "consumer_generation": found.get("consumer_generation"),
            "consumer_type": "INSTANCE",
            **more,
        }
        self._do("PUT", f"/allocations/{consumer}", body)
        return consumer

    def servers(self) -> None:
        self.allocate(
            "web-1",
            {
                "az1-r1-n1": {"VCPU": 4, "MEMORY_MB": 4096},
                "az1-r1-n1-card": {"CUSTOM_FPGA": 1, "SRIOV_NET_VF": 2},
                "pool": {"DISK_GB": 40},
            },
        )
        self.allocate("web-2", {"az1-r2-n3": {"VCPU": 2, "MEMORY_MB": 2048}})
        # Moved twice: consumer and provider generations that no fresh write would have.
        self.allocate("web-2", {"az1-r2-n4": {"VCPU": 2, "MEMORY_MB": 2048}})
        self.allocate("web-2", {"az1-r1-n2": {"VCPU": 8, "MEMORY_MB": 2048}})
        self.allocate("db-1", {"az1-r2-n3": {"VCPU": 1}}, consumer_type="MIGRATION")
        old = {
            "allocations": {named("az1-r2-n4"): {"resources": {"VCPU": 3}}},
            "project_id": "old-project",
            "user_id": "old-user",
        }
        self._do("PUT", f"/allocations/{named('untyped')}", old, "1.12")

    def overfill(self) -> None:
        """More memory is taken from a host than it has since a module broke."""
        small = {"total": 2048, "reserved": 512, "step_size": 256, "min_unit": 512}
        root = named("az1-r1-n1")
        body = {**small, "resource_provider_generation": self.generation(root)}
        self._do("PUT", f"/resource_providers/{root}/inventories/MEMORY_MB", body)
