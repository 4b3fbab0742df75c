"""`moorage serve` with the settings that each access profile of the reference's tests needs."""

import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from tests.servers.replica import Replica

from moorage.api.placement.routes import TABLE

OPEN_POLICY: Final = yaml.safe_dump({rule: "@" for *_, rule in TABLE if rule})
"""A policy file that lets everybody with a token do everything."""

PROFILES: Final[Mapping[str, tuple[str, ...]]] = {
    "default": (),
    "secure-rbac": ("--enforce-new-defaults",),
    "open-policy": ("--policy-file", "policy.yaml"),
    "cors": (
        *("--cors-allowed-origin", "http://valid.example.com"),
        *("--cors-allow-header", "openstack-api-version"),
    ),
}
"""What tells the profiles apart. All serve Placement at the root, as the tests expect."""


class Served:
    """The servers of one kind of database, by profile, each started when first asked for."""

    def __init__(self, folder: Path, new_database: Callable[[str], str]) -> None:
        self._folder, self._new_database = folder, new_database
        self._running: dict[str, Replica] = {}

    def port(self, profile: str) -> int:
        """Where the profile is served."""
        if profile not in self._running:
            home = self._folder / profile
            home.mkdir()
            (home / "policy.yaml").write_text(OPEN_POLICY)
            database, options = self._new_database(profile), PROFILES[profile]
            server = Replica(home, database, "--mount", "placement=/", *options)
            self._running[profile] = server
            server.start()
            server.up()
        return self._running[profile].port

    def down(self) -> None:
        """Nobody of them runs any more."""
        for server in self._running.values():
            server.down()


@dataclass(frozen=True)
class Rest:
    """The REST API as an admin's script would use it: one connection, every answer a good one."""

    connection: http.client.HTTPConnection

    def __call__(
        self, method: str, path: str, body: object = None, version: str = "1.39"
    ) -> dict[str, Any]:
        """The body of the answer, empty if it has none."""
        headers = {"x-auth-token": "admin", "openstack-api-version": f"placement {version}"}
        if body is not None:
            headers["content-type"] = "application/json"
        sent = None if body is None else json.dumps(body)
        self.connection.request(method, path, sent, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status < 300, (method, path, content)
        return dict(json.loads(content)) if content else {}

    def empty(self) -> None:
        """Delete all that a client can make, so that the next one meets a fresh ledger."""
        providers = self("GET", "/resource_providers")["resource_providers"]
        paths = [f"/resource_providers/{one['uuid']}" for one in providers]
        for consumer in {c for path in paths for c in self._consumers(path)}:
            self("DELETE", f"/allocations/{consumer}")
        above = {one["uuid"]: one["parent_provider_uuid"] for one in providers}
        for own in sorted(above, key=lambda own: _depth(own, above), reverse=True):
            self("DELETE", f"/resource_providers/{own}")
        for one in self("GET", "/resource_classes")["resource_classes"]:
            if one["name"].startswith("CUSTOM_"):
                self("DELETE", f"/resource_classes/{one['name']}")
        for name in self("GET", "/traits?name=startswith:CUSTOM_")["traits"]:
            self("DELETE", f"/traits/{name}")

    def _consumers(self, provider: str) -> list[str]:
        return list(self("GET", f"{provider}/allocations")["allocations"])


def _depth(provider: str, above: Mapping[str, str | None]) -> int:
    parent = above[provider]
    return 0 if parent is None else 1 + _depth(parent, above)
