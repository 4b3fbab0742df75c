"""A cloud whose Nova talks to Placement as Nova does, and tenants who hold and claim."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from moorage.app import create_app
from moorage.settings import configure, read
from moorage.store import Ledger, open_store
from moorage.testing.ledger_copy import new_database
from moorage.testing.service import HandClock

ROOT = Path(__file__).parents[3]
THREE_RACKS = (ROOT / "fleets/three-racks.yaml").read_text(encoding="utf-8")
XLARGE = {"DISK_GB": 160, "MEMORY_MB": 16384, "VCPU": 8}
FLAVORS = {"db": "m1.xlarge", "app": "m1.medium", "web": "m1.small"}
ROOT_REQUIRED = "COMPUTE_NODE,!COMPUTE_STATUS_DISABLED"


@dataclass
class Nova:
    """Nova's scheduler and conductor, as far as Placement sees them."""

    http: httpx.Client

    def call(
        self, method: str, path: str, body: object = None, request_id: str | None = None
    ) -> httpx.Response:
        headers = {
            "x-auth-token": "nova:service",
            "x-roles": "service",
            "openstack-api-version": "placement 1.36",
            "accept": "application/json",
        }
        if request_id is not None:
            headers["x-openstack-request-id"] = request_id
        return self.http.request(method, f"/placement{path}", json=body, headers=headers)

    def candidates(
        self, request_id: str | None = None, amounts: Mapping[str, int] = XLARGE, **more: str
    ) -> list[Any]:
        """The allocation requests for a flavor with a required trait."""
        query = {
            "limit": "1000",
            "required": "HW_CPU_X86_AVX2",
            "resources": ",".join(f"{name}:{amount}" for name, amount in amounts.items()),
            "root_required": ROOT_REQUIRED,
            **more,
        }
        path = f"/allocation_candidates?{httpx.QueryParams(query)}"
        answer = self.call("GET", path, request_id=request_id)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        shown = {uuid for one in body["allocation_requests"] for uuid in one["allocations"]}
        assert shown == body["provider_summaries"].keys(), "hosts without children or sharing"
        found: list[Any] = body["allocation_requests"]
        return found

    def claim_resources(
        self,
        server: str,
        candidate: Mapping[str, Any],
        request_id: str | None = None,
        *,
        project: str = "project-a",
        generation: int | None = None,
    ) -> httpx.Response:
        """Write a candidate as the server's allocations."""
        body = {
            **candidate,
            "project_id": project,
            "user_id": "ann",
            "consumer_generation": generation,
        }
        return self.call("PUT", f"/allocations/{server}", body, request_id)

    def allocations(self, server: str) -> Any:
        return self.call("GET", f"/allocations/{server}").json()

    def generation(self, provider: str) -> int:
        return int(self.call("GET", f"/resource_providers/{provider}").json()["generation"])

    def fill(self, provider: str) -> None:
        """Give all that is free of a host's VCPU to others."""
        for amount in (8, 4, 2, 1):
            while self.claim_resources(new(), at(provider, VCPU=amount), project="q").is_success:
                pass


@dataclass
class Tenant:
    """A member of project-a, who uses the native API."""

    http: httpx.Client

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        sent = {
            "x-auth-token": "ann:project-a",
            "x-roles": "member",
            **({"if-match": "*"} if method == "DELETE" else {}),
            **headers,
        }
        answer = self.http.request(method, f"/v1{path}", json=body, headers=sent)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def hold(self, hold: str = "PT10M") -> Any:
        """The shop, placed and held."""
        shop = yaml.safe_load((ROOT / "examples/shop.yaml").read_text(encoding="utf-8"))
        return self.call("POST", "/ensembles", {"ensemble": {**shop, "decide": {"hold": hold}}})

    def claim(self, held: Any, member: str = "db[0]") -> Any:
        server = {"flavorRef": FLAVORS[member.partition("[")[0]]}
        asked = {"claim": {"member": member, "server": server}}
        path = f"/decisions/{held['decision']['id']}/claims"
        return self.call("POST", path, asked)["claim"]

    def claimed(self, claim: Any) -> tuple[str, str | None]:
        """A claim's status and server now."""
        now = self.call("GET", f"/claims/{claim['id']}")["claim"]
        return now["status"], now["server_id"]

    def member(self, claim: Any) -> Any:
        path = f"/ensembles/{claim['ensemble_id']}/members/{claim['member']}"
        return self.call("GET", path)["member"]

    def host_of(self, claim: Any) -> str:
        """The provider a claim's place is booked on, as an operator sees it."""
        operator = {"x-auth-token": "admin", "x-roles": "admin"}
        path = f"/decisions/{claim['decision_id']}"
        decision = self.call("GET", path, None, **operator)["decision"]
        (place,) = (one for one in decision["assignments"] if one["member"] == claim["member"])
        (provider,) = place["allocations"]
        return str(provider)


@dataclass
class Cloud:
    """Both, over one ledger with a clock that is set."""

    nova: Nova
    tenant: Tenant
    clock: HandClock
    store: Ledger


def new() -> str:
    return str(uuid.uuid4())


def at(provider: str, **amounts: int) -> dict[str, Any]:
    return {"allocations": {provider: {"resources": amounts}}, "mappings": {"": [provider]}}


@contextmanager
def clouded(tmp_path: Path, **settings: str | list[str]) -> Iterator[Cloud]:
    """A cloud over a file, so that every thread has a connection of its own."""
    clock = HandClock()
    database = new_database(tmp_path, clock, THREE_RACKS)
    store = open_store(database, clock=clock)
    configured = configure(read({"database": database, **settings}, {}, files=()))
    application = create_app(configured, store=store, clock=clock)
    with (
        closing(store),
        httpx.Client(
            transport=httpx.WSGITransport(application), base_url="http://moorage.invalid"
        ) as client,
    ):
        yield Cloud(Nova(client), Tenant(client), clock, store)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """With no settings of its own."""
    with clouded(tmp_path) as made:
        yield made
