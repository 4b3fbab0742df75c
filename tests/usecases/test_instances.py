"""What is stored of the problems of refusals: little, and enough to replay them for a while."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from moorage.domain.errors import InstanceOutdated
from moorage.engine.joint.instance import loads_request
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.shared.instances import MOST_BYTES, MOST_ROWS, replayable_instance

BIG = {"name": "e", "members": [{"name": "big", "resources": {"VCPU": 99}}]}


def fleet(hosts: int) -> str:
    return f"""
fleet: many
hosts:
  - name: "h{{n}}"
    count: {hosts}
    inventories: {{VCPU: 8, MEMORY_MB: 16384, DISK_GB: 100}}
"""


@pytest.fixture(params=[MOST_ROWS, MOST_ROWS + 1, 3_000])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    made = Service(fleet(request.param))
    yield made
    made.close()


def refused(service: Service) -> str:
    answer = service.call("POST", "/ensembles", {"ensemble": BIG})
    assert answer.status_code == 409, answer.text
    found: str = answer.json["errors"][0]["explanation"]["id"]
    return found


def instance(service: Service, explanation: str) -> Any:
    query = {"instance": "true"}
    return service.call("GET", f"/explanations/{explanation}", caller=OPERATOR, query=query)


def test_little_is_stored_whatever_the_size_of_the_fleet(service: Service) -> None:
    explanation = refused(service)
    _, stored = service.store.explanation(explanation)
    assert 0 < len(stored) <= MOST_BYTES


@pytest.mark.parametrize("service", [MOST_ROWS + 1], indirect=True)
def test_nothing_is_stored_of_a_request_that_is_large_however_it_is_packed(
    service: Service,
) -> None:
    dice = random.Random(1)
    members = [
        {"name": f"{dice.getrandbits(400):0100x}", "resources": {"VCPU": 99}} for _ in range(600)
    ]
    made = {"name": "e", "members": members, "decide": {"time_limit": "PT1S"}}
    answer = service.call("POST", "/ensembles", {"ensemble": made})
    assert answer.status_code == 409, answer.text[:500]
    _, stored = service.store.explanation(answer.json["errors"][0]["explanation"]["id"])
    assert stored == ""


def test_a_refusal_can_be_replayed_while_its_hosts_are_unchanged(service: Service) -> None:
    answer = instance(service, refused(service))
    assert answer.status_code == 200, answer.text
    built = loads_request(json.dumps(answer.json["explanation"]["instance"]))
    assert built.terrain.host_count == len(service.store.snapshot().hosts)
    assert [str(one) for one in built.request.members] == ["big[0]"]
    assert not built.problem.allowed.any()


def test_of_a_large_fleet_no_problem_is_made_after_a_change(service: Service) -> None:
    explanation = refused(service)
    members = [{"name": "small", "resources": {"VCPU": 1}}]
    small = {"name": "s", "members": members, "decide": {}}
    assert service.call("POST", "/ensembles", {"ensemble": small}).status_code == 201
    answer = instance(service, explanation)
    if len(service.store.snapshot().hosts) <= MOST_ROWS:
        assert answer.status_code == 200
        return
    assert answer.status_code == 410
    (error,) = answer.json["errors"]
    assert error["code"] == "ensemble.instance_outdated"
    assert "revision" in error["detail"]
    plain = service.call("GET", f"/explanations/{explanation}", caller=OPERATOR)
    assert plain.status_code == 200


def test_an_instance_that_an_older_version_stored_is_given_as_it_is(service: Service) -> None:
    explanation = service.store.explanation(refused(service))[0].explanation
    old = json.dumps({"format": "moorage-instance", "version": 1, "kind": "request", "request": {}})
    assert replayable_instance(service.env, explanation, old) == old


def test_of_a_request_too_large_to_be_kept_no_problem_is_made(service: Service) -> None:
    explanation = service.store.explanation(refused(service))[0].explanation
    with pytest.raises(InstanceOutdated, match="too large"):
        replayable_instance(service.env, explanation, "")
