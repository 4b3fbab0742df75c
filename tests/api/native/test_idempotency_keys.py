"""An idempotency key is its project's own: what others have sent makes no difference."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from falcon.testing import Result

from moorage.api.native.openapi import document
from moorage.api.native.routes import ROUTES
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.ports import Caller

SENT: Final = "11111111-2222-4333-8444-555555555555"
FRESH: Final = "99999999-2222-4333-8444-555555555555"
UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ROLE: Final = {"name": "web", "count": 1, "resources": {"VCPU": 1}}
AMOUNT: Final = {"amount": {"count": 1, "resources": {"VCPU": 1}}}
FLEET: Final = """
fleet: edge
hosts:
  - {name: "n{n}", count: 8, inventories: {VCPU: 32, MEMORY_MB: 65536, DISK_GB: 1000}}
flavors:
  - {name: m1.small, resources: {VCPU: 1, MEMORY_MB: 2048, DISK_GB: 20}}
"""
MUCH: Final = {"amount": {"count": 8, "resources": {"VCPU": 32}}}
"""Of an empty fleet."""
ABSENT: Final = {"start": "2026-12-20T08:00:00Z", "end": "2026-12-20T09:00:00Z"}
PERIOD: Final = {"start": "2026-12-05T08:00:00Z", "end": "2026-12-05T12:00:00Z"}
HOT: Final = """
heat_template_version: 2021-04-16
resources:
  web: {type: "OS::Nova::Server", properties: {flavor: m1.small}}
"""


@dataclass(frozen=True)
class Creation:
    """A request that creates something, in any project."""

    path: str
    body: dict[str, Any]
    """The wrapper and what is in it."""
    other: dict[str, Any]
    """What another request with the same id has instead."""
    caller: Caller = TENANT
    record: Callable[[Any], Any] = lambda answer: next(iter(answer.values()))
    """What has the id, in an answer."""


def _series(**more: Any) -> dict[str, Any]:
    body = {"name": "s", "every": "daily", "times": 2, "duration": "PT3H", **AMOUNT, **more}
    return {"series": {**body, "start": "2026-12-14T08:00"}}


CREATIONS: Final = {
    "/ensembles": Creation(
        "/ensembles",
        {"ensemble": {"name": "e", "members": [ROLE], "decide": {}}},
        {"metadata": {"a": "b"}},
    ),
    "/ensembles/{id}/extend": Creation(
        "/ensembles/{ensemble}/extend", {"extend": {"role": "web", "count": 1}}, {"count": 2}
    ),
    "/ensembles/{id}/shrink": Creation(
        "/ensembles/{ensemble}/shrink", {"shrink": {"role": "web", "count": 1}}, {"count": 2}
    ),
    "/ensembles/{id}/members": Creation(
        "/ensembles/{ensemble}/members",
        {"member": {"role": {**ROLE, "name": "db"}}},
        {"role": {**ROLE, "name": "db", "count": 2}},
    ),
    "/decisions": Creation(
        "/decisions", {"decision": {"ensemble_id": "{ensemble}", "hold": "PT1H"}}, {"hold": "PT2H"}
    ),
    "/decisions/{id}/claims": Creation(
        "/decisions/{decision}/claims",
        {"claim": {"member": "web[0]", "server": {"resources": {"VCPU": 1}}}},
        {"lifetime": "PT1H"},
    ),
    "/leases": Creation("/leases", {"lease": {"name": "l", **PERIOD, **AMOUNT}}, {"name": "m"}),
    "/leases that wait": Creation(
        "/leases",
        {"lease": {"name": "l", **PERIOD, **MUCH, "wait": {}}},
        {"name": "m"},
    ),
    "/series": Creation("/series", _series(), {"name": "m"}),
    "/offers": Creation(
        "/offers",
        {"offer_request": {"name": "o", "duration": "PT2H", **AMOUNT}},
        {"name": "m"},
        record=lambda answer: answer["offers"][0],
    ),
    "/hot": Creation(
        "/hot",
        {"hot": {"template": HOT, "emit": False}},
        {"name": "m"},
        record=lambda answer: answer["ensemble"],
    ),
    "/templates": Creation(
        "/templates",
        {"template": {"name": "t", "source": {"name": "t", "members": [ROLE]}}},
        {"name": "m"},
    ),
    "/templates/{id}/instances": Creation(
        "/templates/{template}/instances", {"instance": {"name": "i"}}, {"name": "m"}
    ),
    "/plans": Creation(
        "/plans",
        {"plan": {"kind": "drain", "hosts": ["{host}"]}},
        {"cold": True},
        caller=OPERATOR,
        record=lambda answer: answer["plan"],
    ),
    "/capacity/planned": Creation(
        "/capacity/planned",
        {"window": {"kind": "maintenance", "hosts": ["{host}"], **ABSENT}},
        {"reason": "power"},
        caller=OPERATOR,
        record=lambda answer: answer["window"],
    ),
}
"""By the route in the table of routes."""


def _by_id(kind: str, sent: str | None) -> tuple[str, dict[str, Any]]:
    creation = CREATIONS[kind]
    ((wrapper, inside),) = creation.body.items()
    return creation.path, {wrapper: inside | ({} if sent is None else {"id": sent})}


def _own(service: Service, caller: Caller) -> dict[str, str]:
    """What a project refers to: an ensemble that is placed, and a template."""
    roles = [{**ROLE, "count": 4}]
    body = {"ensemble": {"name": "shop", "members": roles, "decide": {"hold": "PT4H"}}}
    made = service.call("POST", "/ensembles", body, caller=caller)
    assert made.status_code == 201, made.text
    kept = {"template": {"name": "kept", "source": {"name": "t", "members": [ROLE]}}}
    template = service.call("POST", "/templates", kept, caller=caller)
    assert template.status_code == 201, template.text
    return {
        "ensemble": made.json["ensemble"]["id"],
        "decision": made.json["decision"]["id"],
        "template": template.json["template"]["id"],
        "host": service.store.snapshot().names[0],
    }


def _filled(value: Any, own: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one, own) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, own) for one in value]
    return own.get(value[1:-1], value) if isinstance(value, str) else value


def _asked(
    service: Service,
    caller: Caller,
    own: dict[str, str],
    path: str,
    body: Any,
    *,
    dry: bool = False,
) -> Result:
    where = re.sub(r"\{(\w+)\}", lambda found: own[found[1]], path)
    query = {"dry_run": "true"} if dry else {}
    return service.call("POST", where, _filled(body, own), caller=caller, query=query)


def _shape(answer: Result) -> tuple[int, set[str], Any]:
    """Status, headers and body, but for the values of ids and of what depends on the room."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        if isinstance(value, list):
            return [plain(one) for one in value[:1]]
        return type(value).__name__

    return answer.status_code, {name.lower() for name in answer.headers}, plain(answer.json)


def test_every_request_with_an_id_is_tried() -> None:
    api = document(ROUTES)
    schemas = api["components"]["schemas"]
    found = set()
    for path, verbs in api["paths"].items():
        for verb in verbs.values():
            for content in verb.get("requestBody", {}).get("content", {}).values():
                name = content["schema"]["$ref"].rpartition("/")[2]
                for field in schemas[name]["properties"].values():
                    inner = schemas.get(field.get("$ref", "").rpartition("/")[2], {})
                    if "Idempotency key" in str(inner.get("properties", {}).get("id", "")):
                        found.add(path)
    assert found == {path for path in CREATIONS if " " not in path}


@pytest.mark.parametrize("kind", list(CREATIONS))
def test_two_projects_may_send_the_same_id(service: Service, kind: str) -> None:
    creation = CREATIONS[kind]
    first, second = creation.caller, Caller("bob", OTHER.project_id, creation.caller.roles)
    theirs, own = _own(service, first), _own(service, second)
    made = _asked(service, first, theirs, *_by_id(kind, SENT))
    assert made.status_code in {200, 201, 202}, made.text
    record = creation.record(made.json)
    assert record.get("id") != SENT

    answer = _asked(service, second, own, *_by_id(kind, SENT))
    assert answer.status_code == made.status_code, answer.text
    assert answer.headers.keys() == made.headers.keys()
    assert answer.json.keys() == made.json.keys()
    fresh = creation.record(answer.json)
    assert fresh.keys() == record.keys()
    assert "id" not in record or fresh["id"] not in {SENT, record["id"]}


@pytest.mark.parametrize("kind", list(CREATIONS))
def test_a_used_id_answers_as_a_fresh_one(service: Service, kind: str) -> None:
    """To a project that did not send it, with the id of the request and with that of the record."""
    creation = CREATIONS[kind]
    first, second = creation.caller, Caller("bob", OTHER.project_id, creation.caller.roles)
    theirs, own = _own(service, first), _own(service, second)
    made = _asked(service, first, theirs, *_by_id(kind, SENT))
    used = creation.record(made.json).get("id", SENT)
    shapes = []
    for sent in (FRESH, SENT, used):
        asked = _asked(service, second, own, *_by_id(kind, sent), dry=True)
        shapes.append(_shape(asked))
    assert shapes[0][0] in {200, 202}
    assert all(one == shapes[0] for one in shapes)


@pytest.mark.parametrize("kind", list(CREATIONS))
def test_a_repeat_gets_its_record_again_and_another_request_a_conflict(
    service: Service, kind: str
) -> None:
    creation = CREATIONS[kind]
    caller = creation.caller
    own = _own(service, caller)
    path, body = _by_id(kind, SENT)
    made = _asked(service, caller, own, path, body)
    before = service.store.ensemble(own["ensemble"]).members
    again = _asked(service, caller, own, path, body)
    assert again.status_code == made.status_code, again.text
    assert creation.record(again.json).get("id") == creation.record(made.json).get("id")
    assert service.store.ensemble(own["ensemble"]).members == before
    ((wrapper, inside),) = body.items()
    differs = _asked(service, caller, own, path, {wrapper: inside | creation.other})
    assert differs.status_code == 409, differs.text
    assert UUID.findall(differs.json["errors"][0]["detail"]) == [SENT]


def test_a_claim_tells_its_idempotency_key(service: Service) -> None:
    own = _own(service, TENANT)
    made = _asked(service, TENANT, own, *_by_id("/decisions/{id}/claims", SENT)).json["claim"]
    assert made["idempotency_key"] == SENT
    shown = service.call("GET", f"/claims/{made['id']}").json["claim"]
    assert shown["idempotency_key"] == SENT
    assert service.call("GET", f"/claims/{SENT}").status_code == 404
