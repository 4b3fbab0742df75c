"""Pools that others borrow from: kept to a volume, kept to servers, and joined by references."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.testing.service import OPERATOR, OTHER, TENANT, Service

FLEET = """\
fleet: store
topology:
  location: {levels: [rack], domains: [{name: r1, level: rack}, {name: r2, level: rack}]}
hosts:
  - {name: "n{n}", count: 4, inventories: {VCPU: 8}, aggregates: [all], place: {location: [r1, r2]}}
sharing:
  - {name: fast, inventories: {DISK_GB: 300}, aggregates: [all], traits: [CUSTOM_SSD],
     place: {location: r1}}
  - {name: slow, inventories: {DISK_GB: 100}, aggregates: [all], place: {location: r2}}
"""
WEB: dict[str, Any] = {"name": "web", "count": 2, "resources": {"VCPU": 1, "DISK_GB": 50}}
DATA: dict[str, Any] = {
    "name": "data",
    "kind": "volume",
    "resources": {"DISK_GB": 100},
    "required": ["CUSTOM_SSD"],
}
NUMBERS = count()


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service(FLEET)
    yield found
    found.close()


def ask(service: Service, *roles: Any, policies: Any = (), **more: Any) -> Any:
    name = f"p{next(NUMBERS)}"
    body = {"name": name, "members": list(roles), "policies": list(policies), "decide": {}}
    return service.call("POST", "/ensembles", {"ensemble": body}, **more)


def made(service: Service, *roles: Any, **more: Any) -> Any:
    answer = ask(service, *roles, **more)
    assert answer.status_code == 201, answer.text
    return answer.json


def givers(service: Service, found: Any) -> set[str]:
    """Names of all that members take from, without their hosts."""
    path = f"/decisions/{found['decision']['id']}"
    shown = service.call("GET", path, caller=OPERATOR).json["decision"]["assignments"]
    snapshot = service.store.snapshot()
    taken = {snapshot.names[snapshot.row_of[uuid]] for one in shown for uuid in one["allocations"]}
    return taken & {"fast", "slow"}


@pytest.mark.parametrize("level", ["host", "rack"])
def test_nobody_borrows_from_a_pool_that_a_volume_keeps(service: Service, level: str) -> None:
    alone = {"name": "alone", "type": "exclusive", "members": ["data"], "level": level}
    made(service, DATA, policies=[alone])
    assert givers(service, made(service, WEB, caller=OTHER)) == {"slow"}
    # The slow pool is full now.
    error = refused(ask(service, WEB, caller=OTHER), 409, "infeasible")["explanation"]
    assert error["counts"]["rejected"] == {"exclusive": "4+"}
    assert givers(service, made(service, WEB)) == {"fast"}, "the project's own are no others"


def test_the_refusal_says_that_the_pool_is_kept(service: Service) -> None:
    alone = {"name": "alone", "type": "exclusive", "members": ["data"]}
    made(service, DATA, policies=[alone])
    wide = {**WEB, "resources": {"VCPU": 1, "DISK_GB": 101}, "count": 1}
    error = refused(ask(service, wide, caller=OTHER), 409, "infeasible")["explanation"]
    assert error["counts"] == {"considered": "4+", "rejected": {"exclusive": "4+"}}
    kept = "pools that other ensembles keep to themselves"
    assert [one for one in error["conflict"] if "resources" not in one] == [
        {"closed": kept, "needs": ""},
        {"topology": kept, "have": "1+"},
        {"topology": "hosts with room for one web", "have": "4+"},
        {"topology": "hosts usable for web", "have": "0", "needed": 1},
    ]
    assert error["minimal"]


def test_a_rack_that_is_kept_has_hosts_and_pools(service: Service) -> None:
    alone = {"name": "alone", "type": "exclusive", "members": ["data"], "level": "rack"}
    made(service, DATA, policies=[alone])
    wide = {**WEB, "resources": {"VCPU": 1, "DISK_GB": 101}, "count": 1}
    error = refused(ask(service, wide, caller=OTHER), 409, "infeasible")["explanation"]
    kept = "hosts and pools that other ensembles keep to themselves"
    assert {"topology": kept, "have": "3+"} in error["conflict"]


def test_a_volume_is_not_alone_where_somebody_borrows(service: Service) -> None:
    made(service, {**WEB, "resources": {"VCPU": 1, "DISK_GB": 110}}, caller=OTHER)
    alone = {"name": "alone", "type": "exclusive", "members": ["data"]}
    refused(ask(service, DATA, policies=[alone]), 409, "infeasible")


@pytest.mark.parametrize("level", ["host", "rack"])
def test_servers_that_keep_others_out_may_borrow(service: Service, level: str) -> None:
    """Their domains are those of their hosts; the pools are rows of the problem then."""
    alone = {"name": "alone", "type": "exclusive", "members": ["web"], "level": level}
    assert givers(service, made(service, WEB, policies=[alone])) <= {"fast", "slow"}


def test_a_reference_to_a_volume_is_to_the_place_of_its_pool(service: Service) -> None:
    path = f"ensemble:{made(service, DATA)['ensemble']['name']}"
    near = {"name": "near", "type": "proximity", "level": "rack", "between": [["web"], [path]]}
    plain = {**WEB, "resources": {"VCPU": 1}}
    answer = ask(service, plain, policies=[near], caller=TENANT)
    assert answer.status_code == 201, answer.text
    shown = f"/decisions/{answer.json['decision']['id']}"
    seen = service.call("GET", shown, caller=OPERATOR).json["decision"]["assignments"]
    assert {one["domains"]["rack"] for one in seen} == {"r1"}
