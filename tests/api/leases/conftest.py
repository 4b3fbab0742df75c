"""The lease API over a fleet of one host or two, and reservations of its words."""

from collections.abc import Iterator
from typing import Any

import pytest
from falcon.testing import TestClient

from moorage.api.leases import create_app
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.ports import Caller

ONE = """
fleet: one
hosts:
  - {name: "n{n}", count: 1, inventories: {VCPU: 64, MEMORY_MB: 65536, DISK_GB: 1000}}
flavors:
  - {name: small, resources: {VCPU: 2}}
"""
TWO = ONE.replace("count: 1", "count: 2")
FLAVOR = {"resource_type": "flavor:instance", "flavor_id": "small", "affinity": "None"}


class Door:
    """The lease API over a fleet."""

    def __init__(self, fleet: str, *, database: str | None = None) -> None:
        self.service = Service(fleet, database=database)
        self._client = TestClient(create_app(self.service.env))

    def over(self, app: Any) -> "Door":
        """The same through another application."""
        door = object.__new__(Door)
        door.service, door._client = self.service, TestClient(app)
        return door

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        caller: Caller = TENANT,
        headers: dict[str, str] | None = None,
    ) -> Any:
        return self._client.simulate_request(
            method,
            f"/v1{path}",
            json=body,
            headers=headers,
            extras={"moorage.caller": caller, "moorage.request_id": "req-door"},
        )

    def offer(self, *names: str, **properties: str) -> None:
        for name in names:
            made = self.call("POST", "/os-hosts", {"name": name, **properties}, caller=OPERATOR)
            assert made.status_code == 201, made.text

    def lease(self, start: str, end: str, *reservations: dict[str, Any]) -> Any:
        dates = {"start_date": f"2026-12-07 {start}", "end_date": f"2026-12-07 {end}"}
        return self.call(
            "POST", "/leases", {"name": "l", **dates, "reservations": list(reservations)}
        )


def instances(amount: int, vcpus: int, **more: Any) -> dict[str, Any]:
    return {
        "resource_type": "virtual:instance",
        "amount": amount,
        "vcpus": vcpus,
        "memory_mb": 0,
        "disk_gb": 0,
        "affinity": "None",
        "resource_properties": "",
        **more,
    }


def whole(least: int = 1, most: int = 1, **more: Any) -> dict[str, Any]:
    return {"resource_type": "physical:host", "min": least, "max": most, **more}


def granted(answer: Any) -> bool:
    assert answer.status_code in {201, 500}, answer.text
    if answer.status_code == 500:
        assert answer.json == {
            "error_code": 500,
            "error_message": "Not enough hosts available",
            "error_name": 500,
        }
    return bool(answer.status_code == 201)


@pytest.fixture
def one() -> Iterator[Door]:
    door = Door(ONE)
    yield door
    door.service.close()


@pytest.fixture
def two() -> Iterator[Door]:
    door = Door(TWO)
    yield door
    door.service.close()
