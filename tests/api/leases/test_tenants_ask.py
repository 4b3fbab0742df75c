"""What a tenant may ask of hosts at Blazar's door, and what it is told of others there."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.api.leases.conftest import TWO, Door, granted, instances, whole

from moorage.api.leases import create_app
from moorage.domain.disclosure import Disclosure
from moorage.testing.service import OPERATOR, OTHER, TENANT

OURS = {"OpenStack-API-Version": "reservation 1.1"}
NAMES = ("rackhost-7f3a", "rackhost-91bc")
FLEET = "".join(
    f"\n  - {{name: {name}, inventories: {{VCPU: 64, MEMORY_MB: 65536, DISK_GB: 1000}}}}"
    for name in NAMES
)


@pytest.fixture
def two() -> Iterator[Door]:
    door = Door("fleet: two\nhosts:" + FLEET + TWO[TWO.index("\nflavors") :])
    door.offer(NAMES[0], gpu="a100", owner="ann-at-works")
    door.offer(NAMES[1], gpu="h100", owner="bob-at-works")
    marked = door.call("PATCH", "/os-hosts/properties/owner", {"private": True}, caller=OPERATOR)
    assert marked.status_code == 200, marked.text
    yield door
    door.service.close()


def asked(door: Door, wish: str, kind: str, caller: Any = TENANT) -> Any:
    part = whole(resource_properties=wish)
    if kind == "hypervisor":
        part = whole(hypervisor_properties=wish)
    if kind == "instances":
        part = instances(1, 1, resource_properties=wish)
    body = {
        "name": "l",
        "start_date": "2026-12-07 10:00",
        "end_date": "2026-12-07 12:00",
        "reservations": [part],
    }
    return door.call("POST", "/leases", body, caller=caller)


KINDS = ("resource", "hypervisor", "instances")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", ["hypervisor_hostname", "service_name", "id"])
def test_no_single_host_is_to_be_named_or_confirmed(two: Door, key: str, kind: str) -> None:
    answers = []
    for value in (NAMES[0], "1", "nobody"):
        refused = asked(two, f'["==", "${key}", "{value}"]', kind)
        assert refused.status_code == 403, refused.text
        answers.append(refused.text)
    assert len(set(answers)) == 1, "whether there is such a host makes no difference"
    assert "tenant_host_properties" in answers[0]
    mixed = f'["and", [">=", "$vcpus", "1"], ["!=", "${key}", "x"]]'
    assert asked(two, mixed, kind).status_code == 403
    value = {"id": "1"}.get(key, NAMES[0])
    assert granted(asked(two, f'["==", "${key}", "{value}"]', kind, OPERATOR))


@pytest.mark.parametrize("kind", KINDS)
def test_a_private_property_is_as_one_that_is_not_there(two: Door, kind: str) -> None:
    answers = set()
    for key in ("owner", "no_such_key"):
        for sign, value in (("==", "ann-at-works"), ("!=", "x"), (">=", "a")):
            refused = asked(two, f'["{sign}", "${key}", "{value}"]', kind)
            assert not granted(refused)
            answers.add(refused.text)
    assert len(answers) == 1
    assert granted(asked(two, '["==", "$owner", "ann-at-works"]', kind, OPERATOR))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "wish", ['[">=", "$memory_mb", "2048"]', '["==", "$gpu", "a100"]', '["<", "$vcpus", "65"]']
)
def test_what_hosts_are_like_is_for_everybody_to_ask(two: Door, wish: str, kind: str) -> None:
    assert granted(asked(two, wish, kind))


def test_an_operator_may_let_tenants_name_hosts(two: Door) -> None:
    parts = two.service.env
    wide = Disclosure(host_properties=frozenset({"hypervisor_hostname"}))
    two.service.env = replace(parts, limits=replace(parts.limits, disclosure=wide))
    door = two.over(create_app(two.service.env))
    assert granted(asked(door, f'["==", "$hypervisor_hostname", "{NAMES[0]}"]', "resource"))
    assert asked(door, '[">=", "$vcpus", "1"]', "resource").status_code == 403


def test_a_lease_tells_its_tenant_no_host(two: Door) -> None:
    made = asked(two, '["==", "$gpu", "a100"]', "resource").json["lease"]
    refused = two.call(
        "POST",
        "/leases",
        {
            "name": "again",
            "start_date": "2026-12-07 11:00",
            "end_date": "2026-12-07 13:00",
            "reservations": [whole(resource_properties='["==", "$gpu", "a100"]')],
        },
        caller=OTHER,
        headers=OURS,
    )
    assert refused.status_code == 409, refused.text
    explained = two.service.call(
        "GET", f"/explanations/{refused.json['explanation_id']}", caller=OTHER
    )
    assert explained.status_code == 200, explained.text
    for text in (refused.text, explained.text):
        assert made["id"] not in text
        assert TENANT.project_id not in text
    lease = two.service.call("GET", f"/leases/{made['id']}").json["lease"]
    ensemble = f"/ensembles/{lease['ensemble_id']}"
    for path in (f"/leases/{made['id']}", ensemble, f"{ensemble}/policies", f"{ensemble}/members"):
        told = two.service.call("GET", path)
        assert told.status_code == 200, told.text
        assert not any(name in told.text for name in NAMES), path
    policies = two.service.call("GET", f"{ensemble}/policies", caller=OPERATOR)
    assert NAMES[0] in json.dumps(policies.json)
