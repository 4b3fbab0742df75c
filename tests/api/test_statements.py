"""How many statements a write sends: of allocations, or of a lease by either door."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient

from moorage.api.leases import create_app
from moorage.testing.in_process import app
from moorage.testing.ledger_copy import new_database
from moorage.testing.service import NINE, OPERATOR, TENANT, Service
from moorage.testing.statements import said

MOST = 30
"""Counted with everything: each BEGIN and COMMIT, and those with many sets of values once."""
PLACEMENT = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
FLEET = """
fleet: some
hosts:
  - name: "h{n}"
    count: 4
    inventories: {VCPU: 16, MEMORY_MB: 65536, DISK_GB: 100}
"""
START, END = "2026-12-01T09:00:00Z", "2026-12-01T10:00:00Z"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    found = Service(FLEET, database=new_database(tmp_path))
    yield found
    found.close()


@pytest.fixture
def sent() -> Iterator[list[str]]:
    with said() as found:
        yield found


@pytest.mark.parametrize("count", [1, 12])
def test_a_post_of_the_native_api(service: Service, sent: list[str], count: int) -> None:
    members = [{"name": "s", "count": count, "resources": {"VCPU": 2, "MEMORY_MB": 512}}]
    lease: dict[str, Any] = {"name": "n", "start": START, "end": END}

    def post(number: int) -> None:
        ensemble = {"name": f"e{number}", "members": members}
        id_ = f"00000000-0000-4000-8000-{number:012}"
        body = {"lease": lease | {"id": id_, "ensemble": ensemble}}
        answer = service.call("POST", "/leases", body)
        assert answer.status_code == 201, answer.text

    post(1)
    sent.clear()
    post(2)
    assert len(sent) <= MOST, sent


@pytest.mark.parametrize("hosts", [1, 4])
def test_a_post_of_blazars_api(service: Service, sent: list[str], hosts: int) -> None:
    client = TestClient(create_app(service.env))

    def call(path: str, body: object, caller: object = TENANT) -> None:
        extras = {"moorage.caller": caller, "moorage.request_id": "req-here"}
        answer = client.simulate_post(f"/v1{path}", body=json.dumps(body), extras=extras)
        assert answer.status_code == 201, answer.text

    for number in range(hosts):
        call("/os-hosts", {"name": f"h{number + 1}"}, OPERATOR)
    slot = {"resource_type": "virtual:instance", "disk_gb": 0, "resource_properties": ""}
    asked = {
        "name": "mine",
        "start_date": "2026-12-01 09:00",
        "end_date": "2026-12-01 10:00",
        "events": [],
        "reservations": [
            slot | {"amount": 4, "vcpus": 1, "memory_mb": 512, "affinity": "None"},
        ],
    }
    call("/leases", asked)
    sent.clear()
    call("/leases", asked)
    assert service.clock.now() == NINE
    assert len(sent) <= MOST, sent
    assert not any("reservables" in one for one in sent), "no host was named"


def test_a_put_of_allocations(tmp_path: Path) -> None:
    with app(new_database(tmp_path)) as placement:
        client, host = TestClient(placement), str(uuid.uuid4())

        def call(method: str, path: str, body: object) -> None:
            path = f"/placement/{path}"
            answer = client.simulate_request(method, path, json=body, headers=PLACEMENT)
            assert answer.status_code in {200, 204}, answer.text

        def put(amount: int) -> None:
            body = {
                "allocations": {host: {"resources": {"VCPU": amount, "MEMORY_MB": 64}}},
                "project_id": "p",
                "user_id": "u",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            }
            call("PUT", f"allocations/{uuid.uuid4()}", body)

        call("POST", "resource_providers", {"name": "h1", "uuid": host})
        stock = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 512}}
        given = {"resource_provider_generation": 0, "inventories": stock}
        call("PUT", f"resource_providers/{host}/inventories", given)
        put(1)
        with said() as sent:
            put(2)
    assert sent[0] == "BEGIN IMMEDIATE", "nothing is asked before the transaction"
    assert sent[-1] == "COMMIT"
    assert len(sent) == 10, "four statements that read, and four that write"
