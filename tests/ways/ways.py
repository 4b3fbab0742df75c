"""The main ways through the program: one warm request of each, on SQLite, in this process."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from falcon.testing import TestClient
from tests.ways.trace import Trace, traced

from moorage.app import create_app
from moorage.settings import configure, read
from moorage.store import open_store
from moorage.testing.service import Service

FLEET = Path(__file__).parents[2] / "fleets/three-racks.yaml"
WARM = 3
"""Requests before the one that is counted: caches are filled by then."""
_ADMIN = {
    "X-Auth-Token": "admin",
    "X-Roles": "admin",
    "OpenStack-API-Version": "placement 1.39",
}
_SERVER = {"resources": {"VCPU": 1, "MEMORY_MB": 1024}}


def every_way() -> Mapping[str, Trace]:
    """Each way's name -> what its request enters."""
    found: dict[str, Trace] = {}
    for ways in (_of_placement, _of_moorage):
        with ways() as requests:
            for name, request in requests.items():
                for _ in range(WARM):
                    request()
                found[name] = traced(request)
    return found


@contextmanager
def _of_placement() -> Iterator[Mapping[str, Callable[[], object]]]:
    settings = configure(read({"database": "sqlite://"}, {}, files=()))
    with closing(open_store("sqlite://")) as store:
        client = TestClient(create_app(settings, store=store))

        def call(status: int, method: str, path: str, body: object = None) -> Any:
            answer = client.simulate_request(
                method, f"/placement/{path}", json=body, headers=_ADMIN
            )
            assert answer.status_code == status, answer.text
            return answer

        host = str(uuid.uuid4())
        call(200, "POST", "resource_providers", {"name": "h1", "uuid": host})
        stock = {"VCPU": {"total": 1000}}
        given = {"resource_provider_generation": 0, "inventories": stock}
        call(200, "PUT", f"resource_providers/{host}/inventories", given)
        taken = {
            "allocations": {host: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        yield {
            "PUT /allocations/{consumer}": lambda: call(
                204, "PUT", f"allocations/{uuid.uuid4()}", taken
            ),
            "GET /allocation_candidates": lambda: call(
                200, "GET", "allocation_candidates?resources=VCPU:1&limit=5"
            ),
        }


@contextmanager
def _of_moorage() -> Iterator[Mapping[str, Callable[[], object]]]:
    with closing(Service(FLEET.read_text(encoding="utf-8"))) as service:

        def made(path: str, body: object) -> Any:
            answer = service.call("POST", path, body)
            assert answer.status_code == 201, answer.text
            return answer.json

        numbers = iter(range(1000))

        def describe() -> str:
            members = [{"name": "web", "count": 3, **_SERVER}]
            apart = {"name": "apart", "type": "anti-affinity", "members": ["web"], "level": "host"}
            name = f"e{next(numbers)}"
            body = {"name": name, "members": members, "policies": [apart]}
            return str(made("/ensembles", {"ensemble": body})["ensemble"]["id"])

        described = [describe() for _ in range(3 * (WARM + 1))]
        decided: list[Any] = []

        def decide() -> None:
            body = {"decision": {"ensemble_id": described.pop()}}
            decided.append(made("/decisions", body)["decision"])

        places = ((one["id"], place["member"]) for one in decided for place in one["assignments"])

        def claim() -> None:
            decision, member = next(places)
            body = {"claim": {"member": member, "server": _SERVER}}
            made(f"/decisions/{decision}/claims", body)

        def lease() -> None:
            number = len(described)
            made(
                "/leases",
                {
                    "lease": {
                        "ensemble_id": described.pop(),
                        "name": f"l{number}",
                        "start": "2026-11-22T09:00:00Z",
                        "end": "2026-11-23T09:00:00Z",
                    }
                },
            )

        yield {
            "POST /v1/ensembles": describe,
            "POST /v1/decisions": decide,
            "POST /v1/decisions/{id}/claims": claim,
            "POST /v1/leases": lease,
        }
