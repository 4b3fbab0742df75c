"""Offers of roles are bounded on both sides, and told in one event for many."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.api.native.conftest import refused
from tests.api.native.shops import SIZE, STRANGER

from moorage.domain.period import HOUR, MINUTE
from moorage.domain.quotas import QuotaDefaults, QuotaName
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.ports import Caller
from moorage.usecases.shared.limits import Limits

Serving = Callable[[Limits], Service]


@pytest.fixture
def serving(three_racks: str) -> Iterator[Serving]:
    """Makes services with other limits, and closes them."""
    made: list[Service] = []

    def make(limits: Limits) -> Service:
        made.append(Service(three_racks, limits=limits))
        return made[-1]

    yield make
    for one in made:
        one.close()


def limits(given: int, received: int) -> Limits:
    names = {QuotaName.SHARES_GIVEN: given, QuotaName.SHARES_RECEIVED: received}
    return Limits(quotas=QuotaDefaults(names))


def role(name: str, project: str = "project-b") -> dict[str, Any]:
    return {"name": name, "count": 1, "resources": SIZE, "project": project}


def offer(service: Service, name: str, *roles: Any, caller: Caller = TENANT) -> Any:
    body = {"ensemble": {"name": name, "members": list(roles)}}
    return service.call("POST", "/ensembles", body, caller=caller)


def told(service: Service, caller: Caller, type_: str) -> list[Any]:
    answer = service.call("GET", "/events", caller=caller, query={"type": type_})
    return [one["body"] for one in answer.json["events"]]


def shares(service: Service, caller: Caller = OTHER) -> list[Any]:
    found: list[Any] = service.call("GET", "/shares", caller=caller).json["shares"]
    return found


def used(service: Service, caller: Caller) -> tuple[int, int]:
    path = f"/quotas/{caller.project_id}"
    quota = service.call("GET", path, caller=OPERATOR).json["quota"]
    return quota["shares_given"]["used"], quota["shares_received"]["used"]


def test_one_event_tells_of_many_roles(serving: Serving) -> None:
    service = serving(Limits())
    many = [role(f"db{number}") for number in range(20)]
    made = offer(service, "shop", *many, role("cache", "project-c"))
    assert made.status_code == 201, made.text
    (event,) = told(service, OTHER, "share.offered")
    assert event["roles"] == [one["name"] for one in many]
    assert sorted(event["shares"]) == sorted(one["id"] for one in shares(service))
    assert event["projects"] == ["project-b"]
    (event,) = told(service, STRANGER, "share.offered")
    assert event["roles"] == ["cache"]
    path = f"/ensembles/{made.json['ensemble']['id']}"
    gone = service.call("DELETE", path, headers={"If-Match": "*"})
    assert gone.status_code == 204
    (event,) = told(service, OTHER, "share.revoked")
    assert len(event["roles"]) == 20
    assert event["projects"] == ["project-b"]
    (event,) = told(service, TENANT, "share.revoked")
    assert (len(event["roles"]), event["projects"]) == (21, ["project-b", "project-c"])


def test_a_project_offers_so_many_roles(serving: Serving) -> None:
    service = serving(limits(given=2, received=100))
    assert offer(service, "one", role("a"), role("b")).status_code == 201
    error = refused(offer(service, "two", role("a"), role("b")), 403, "quota_exceeded")
    assert (error["quota"], error["limit"]) == ("shares-given", 2)
    assert (error["used"], error["requested"]) == (2, 2)
    refused(offer(service, "many", *(role(f"r{n}") for n in range(50))), 403, "quota_exceeded")
    # Accepting one does not make room for the one who offers; a new role of an old ensemble counts.
    done = service.call("POST", f"/shares/{shares(service)[0]['id']}/accept", caller=OTHER)
    assert done.status_code == 200
    one = service.call("GET", "/ensembles").json["ensembles"][0]["id"]
    body = {"ensemble": {"members": [role("c")]}}
    anything = {"If-Match": "*"}
    changed = service.call("PATCH", f"/ensembles/{one}", body, headers=anything)
    refused(changed, 403, "quota_exceeded")
    assert used(service, TENANT) == (2, 0)
    assert len(told(service, OTHER, "share.offered")) == 1
    # Another project has its own; an operator's quota goes before.
    assert offer(service, "one", role("a"), role("b"), caller=STRANGER).status_code == 201
    raised = {"quota": {"shares_given": 3}}
    service.call("PATCH", "/quotas/project-a", raised, caller=OPERATOR)
    assert service.call("PATCH", f"/ensembles/{one}", body, headers=anything).status_code == 200
    assert service.call("DELETE", f"/ensembles/{one}", headers=anything).status_code == 204
    assert used(service, TENANT) == (0, 0)


def test_a_project_has_so_many_to_answer(serving: Serving) -> None:
    service = serving(limits(given=100, received=3))
    assert offer(service, "one", role("a"), role("b")).status_code == 201
    error = refused(
        offer(service, "two", role("c"), role("d"), caller=STRANGER), 409, "other_quota_exceeded"
    )
    assert not {"limit", "used"} & error.keys()
    assert "project-b" in error["detail"]
    assert offer(service, "two", role("c"), caller=STRANGER).status_code == 201
    refused(offer(service, "more", role("e")), 409, "other_quota_exceeded")
    assert used(service, OTHER) == (0, 3)
    accepted, revoked, _ = (one["id"] for one in shares(service))
    service.call("POST", f"/shares/{accepted}/accept", caller=OTHER)
    service.call("POST", f"/shares/{revoked}/revoke", caller=OTHER)
    assert used(service, OTHER) == (0, 1)
    assert offer(service, "more", role("e"), role("f")).status_code == 201
    # What has changed is offered anew, and is to be answered again.
    ensemble = service.call("GET", "/ensembles").json["ensembles"][0]["id"]
    body = {"ensemble": {"members": [{"name": "a", "count": 2}]}}
    changed = service.call("PATCH", f"/ensembles/{ensemble}", body, headers={"If-Match": "*"})
    refused(changed, 409, "other_quota_exceeded")


def test_offers_and_revocations_in_a_loop_do_not_fill_the_others_events(serving: Serving) -> None:
    service = serving(Limits(share_offers=5))
    answers = []
    for number in range(8):
        made = offer(service, f"loop{number}", role("db"))
        answers.append(made)
        if made.status_code == 201:
            service.call("DELETE", f"/ensembles/{made.json['ensemble']['id']}")
        service.clock.pass_by(MINUTE)
    assert [one.status_code for one in answers] == [201] * 5 + [429] * 3
    assert [one.headers["Retry-After"] for one in answers[5:]] == ["3300", "3240", "3180"]
    refused(answers[5], 429, "too_many_requests")
    assert len(told(service, OTHER, "share.offered")) == 5
    # Others offer it roles, and it offers roles to others.
    assert offer(service, "another", role("db"), caller=STRANGER).status_code == 201
    assert offer(service, "elsewhere", role("db", "project-c")).status_code == 201
    service.clock.pass_by(HOUR)
    assert offer(service, "later", role("db")).status_code == 201
