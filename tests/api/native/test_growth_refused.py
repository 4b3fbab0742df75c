"""Why an ensemble cannot grow: its own placed members are in the way on an empty fleet, too."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.ports import Caller

FLEET = """
fleet: eighteen
hosts:
  - name: "h{n}"
    count: 9
    inventories: {MEMORY_MB: 4096}
    children:
      - {name: gpu, inventories: {VGPU: 2}}
"""
SERVERS = {"name": "server", "resources": {"MEMORY_MB": 2048}}
WITH_DEVICES = {"name": "server", "resources": {"VGPU": 1}}
"""Of either the fleet has room for eighteen."""


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service(FLEET)
    yield made
    made.close()


def placed(
    service: Service,
    name: str,
    count: int,
    caller: Caller = OPERATOR,
    role: Mapping[str, object] = SERVERS,
) -> str:
    """An ensemble of so many servers, held; its path."""
    members = [{**role, "count": count}]
    body = {"ensemble": {"name": name, "members": members, "decide": {"hold": "10m"}}}
    made = service.call("POST", "/ensembles", body, caller=caller)
    assert made.status_code == 201, made.text
    return f"/ensembles/{made.json['ensemble']['id']}"


def grown(service: Service, path: str, count: int, caller: Caller = OPERATOR) -> Any:
    """The answer to the question whether it may have so many."""
    body = {"ensemble": {"members": [{"name": "server", "count": count}], "decide": {}}}
    query = {"dry_run": "true"}
    return service.call("PATCH", path, body, caller=caller, query=query, headers={"If-Match": "*"})


def told(why: dict[str, Any]) -> list[tuple[int, str]]:
    return [(one["change"]["count"][1], one["result"]) for one in why["relaxations"]]


@pytest.mark.parametrize("role", [SERVERS, WITH_DEVICES], ids=["hosts", "devices"])
def test_placed_members_take_their_places_of_the_empty_fleet(
    service: Service, role: Mapping[str, object]
) -> None:
    """Without the others there is room for eighteen, and four of them are its own."""
    placed(service, "others", 5, role=role)
    path = placed(service, "own", 4, role=role)
    why = refused(grown(service, path, 20), 409, "infeasible")["explanation"]
    assert why["stage"] == "static"
    assert told(why) == [(13, "fits now"), (18, "fits the fleet when empty")]
    assert grown(service, path, 13).status_code == 200
    why = refused(grown(service, path, 18), 409, "infeasible")["explanation"]
    assert (why["stage"], told(why)) == ("capacity", [(13, "fits now")])


@pytest.mark.parametrize(("caller", "most"), [(OPERATOR, 13), (TENANT, 10)])
def test_operators_are_told_the_exact_size_and_tenants_a_rounded_one(
    service: Service, caller: Caller, most: int
) -> None:
    placed(service, "others", 5, caller)
    path = placed(service, "own", 4, caller)
    why = refused(grown(service, path, 40, caller), 409, "infeasible")["explanation"]
    assert (most, "fits now") in told(why)


def test_the_present_size_is_no_relaxation(service: Service) -> None:
    placed(service, "others", 14)
    path = placed(service, "own", 4)
    why = refused(grown(service, path, 6), 409, "infeasible")["explanation"]
    assert told(why) == []


def test_a_quota_is_told_before_what_the_fleet_lacks(service: Service) -> None:
    """A smaller size that fits would be no help."""
    quota = {"quota": {"held_units": 4}}
    path = f"/quotas/{TENANT.project_id}"
    answer = service.call("PATCH", path, quota, caller=OPERATOR, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text
    members = [{**SERVERS, "count": 40}]
    body = {"ensemble": {"name": "q", "members": members, "decide": {"hold": "10m"}}}
    for dry in ("false", "true"):
        answer = service.call("POST", "/ensembles", body, query={"dry_run": dry})
        error = refused(answer, 403, "quota_exceeded")
        assert "limit 4 used 0 requested 40" in error["detail"]
