"""One tenant leaves the others room: over real connections, to a service with real children."""

import http.client
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.outward.conftest import Answer, Request, receiving
from tests.scenarios.processes.conftest import Served, StartService

from moorage.domain.period import DAY, MINUTE
from moorage.store.settable_clock import SettableClock, create
from moorage.testing.service import NINE

pytestmark = pytest.mark.process

PATIENCE = 200.0
ADMIN = {"X-Auth-Token": "admin"}
ANN = {"X-Auth-Token": "ann:project-a", "X-Roles": "member"}
BOB = {"X-Auth-Token": "bob:project-b", "X-Roles": "member"}
HOST = "00000000-0000-4000-8000-000000000001"


def call(
    service: Served, method: str, path: str, who: Mapping[str, str], body: object = None
) -> tuple[int, Any, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
    try:
        data = None if body is None else json.dumps(body).encode()
        headers = {**who, "Content-Type": "application/json"}
        connection.request(method, path, body=data, headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, answer.headers, json.loads(text) if text else None
    finally:
        connection.close()


def stock(service: Served) -> None:
    """One host with room for every lease of these tests."""
    placement = {**ADMIN, "OpenStack-API-Version": "placement 1.20"}
    made = call(
        service, "POST", "/placement/resource_providers", placement, {"name": "h", "uuid": HOST}
    )
    assert made[0] == 200, made
    amounts = {"VCPU": 64, "MEMORY_MB": 65_536, "DISK_GB": 1_000}
    body = {
        "resource_provider_generation": 0,
        "inventories": {name: {"total": total} for name, total in amounts.items()},
    }
    stored = call(
        service, "PUT", f"/placement/resource_providers/{HOST}/inventories", placement, body
    )
    assert stored[0] == 200, stored


def lease(service: Served, who: Mapping[str, str], day: int) -> tuple[int, Any, Any]:
    """Ask for one by the lease API."""
    reservation = {
        "resource_type": "virtual:instance",
        "amount": 1,
        "vcpus": 1,
        "memory_mb": 1,
        "disk_gb": 0,
        "affinity": "None",
        "resource_properties": "",
    }
    body = {
        "name": "l",
        "start_date": f"2026-12-{day:02} 09:00",
        "end_date": f"2026-12-{day:02} 10:00",
        "reservations": [reservation],
    }
    return call(service, "POST", "/reservation/v1/leases", who, body)


@pytest.fixture
def clock_file(tmp_path: Path) -> Path:
    """A clock that shows the morning before the leases of these tests."""
    path = tmp_path / "clock"
    create(path, NINE)
    return path


def test_the_lease_api_tells_a_project_with_its_number_under_way_when_to_come_again(
    start: StartService, clock_file: Path
) -> None:
    asked_for, go = threading.Semaphore(0), threading.Event()

    def lets_it_be(_: Request) -> Answer:
        asked_for.release()
        go.wait(PATIENCE)
        return Answer(204)

    with receiving(lets_it_be) as check:
        service = start(
            *("--planners", "1", "--expensive-per-project", "1", "--clock-file", str(clock_file)),
            *("--lease-check", check.url, "--lease-check-timeout", "1m"),
        )
        stock(service)
        answers: list[Any] = []
        asked = [
            threading.Thread(target=lambda who=who: answers.append(lease(service, who, 7)))
            for who in (ANN, BOB)
        ]
        asked[0].start()
        assert asked_for.acquire(timeout=PATIENCE)
        status, headers, body = lease(service, ANN, 8)
        assert (status, headers["Retry-After"]) == (429, "1")
        assert (body["error_code"], body["error_name"]) == (429, 429)
        assert "expensive_per_project" in body["error_message"]
        assert call(service, "GET", "/reservation/v1/leases", ANN)[0] == 200, (
            "reads are not counted"
        )
        asked[1].start()
        assert asked_for.acquire(timeout=PATIENCE), "others have turns of their own"
        go.set()
        for thread in asked:
            thread.join(PATIENCE)
        assert [status for status, _, _ in answers] == [201, 201]
        assert lease(service, ANN, 8)[0] == 201, "and then it has one again"


def test_a_project_that_waits_on_every_connection_leaves_threads_for_others(
    start: StartService,
) -> None:
    service = start("--requests-per-project", "2")
    seen = call(service, "GET", "/v1/events?after=now", ANN)[2]["cursor"]
    over = threading.Event()

    def wait() -> None:
        while not over.is_set():
            call(service, "GET", f"/v1/events?after={seen}&wait=5", ANN)
            over.wait(0.05)

    waiting = [threading.Thread(target=wait, daemon=True) for _ in range(20)]
    for thread in waiting:
        thread.start()

    def refused() -> Any:
        status, headers, body = call(service, "GET", "/v1/ensembles", ANN)
        return (
            (status, headers["Retry-After"], body["errors"][0]["code"]) if status != 200 else None
        )

    assert service.eventually(refused) == (429, "1", "http.too_many_requests")
    for _ in range(20):
        assert call(service, "GET", "/v1/ensembles", BOB)[0] == 200
        assert call(service, "GET", "/placement/resource_providers", ADMIN)[0] == 200
    over.set()
    for thread in waiting:
        thread.join(PATIENCE)
    assert call(service, "GET", "/v1/ensembles", ANN)[0] == 200


def test_a_worker_deletes_what_was_over_long_ago(start: StartService, clock_file: Path) -> None:
    options = ("--clock-file", str(clock_file), "--records-kept-for", "30d")
    service = start(*options)
    stock(service)
    status, _, made = lease(service, ANN, 7)
    assert status == 201, made
    path = f"/reservation/v1/leases/{made['lease']['id']}"
    assert call(service, "DELETE", path, ANN)[0] == 204
    assert call(service, "GET", f"/v1/leases/{made['lease']['id']}", ANN)[0] == 200
    service.process.terminate()
    service.ended()
    clock = SettableClock(clock_file)
    clock.set(clock.now() + 30 * DAY + MINUTE)
    later = start(*options)
    later.eventually(lambda: call(later, "GET", path, ANN)[0] == 404)
    # Ensembles go after their leases, in a transaction of their own.
    later.eventually(lambda: call(later, "GET", "/v1/ensembles", ANN)[2]["ensembles"] == [])
