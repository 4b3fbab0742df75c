"""What a tenant is told of the fleet: no provider, no host's name, no exact number."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.usecases.conftest import ROOT

from moorage.domain import errors
from moorage.domain.changes import Changeset, PutInventories
from moorage.domain.disclosure import Disclosure
from moorage.domain.providers import Inventory
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.shared.limits import Limits

PROVIDER = "99999999-9999-4999-8999-999999999999"


def ensemble(*policies: dict[str, Any], count: int = 1) -> dict[str, Any]:
    return {
        "members": [{"name": "web", "count": count, "resources": {"VCPU": 1}}],
        "policies": list(policies),
    }


def rule(kind: str, *names: str) -> dict[str, Any]:
    return {"name": kind, "type": kind, "members": ["web"], "domains": list(names)}


def why(service: Service, body: dict[str, Any]) -> Any:
    answer = service.call("POST", "/explanations", {"explanation": body})
    assert answer.status_code == 200, answer.text
    return answer.json


@pytest.fixture
def racks() -> Iterator[Service]:
    """A service whose tenants may name racks."""
    limits = Limits(disclosure=Disclosure(levels=frozenset({"zone", "rack"})))
    made = Service((ROOT / "fleets/three-racks.yaml").read_text(encoding="utf-8"), limits=limits)
    yield made
    made.close()


@pytest.mark.parametrize(
    "policies",
    [
        (rule("ban", "r1", "r2", "r3"),),
        (rule("ban", "az1"), rule("fence", "r1")),
        (
            rule("fence", "r1"),
            {
                "name": "two",
                "type": "spread",
                "members": ["web"],
                "level": "rack",
                "min_domains": 2,
            },
        ),
    ],
)
def test_an_explanation_counts_roughly(racks: Service, policies: tuple[Any, ...]) -> None:
    told = why(racks, ensemble(*policies, count=2))["explanation"]
    for part in told["conflict"]:
        if "have" in part:
            assert part["have"] in {"0", "1+", "2+", "3+", "5+", "8+"}
        else:
            # What it needs is about the request: its own two members, and its own limits.
            assert set(re.findall(r"(?<![\w-])\d+", part["needs"])) <= {"0", "1", "2"}, part


@pytest.mark.parametrize("kind", ["fence", "ban"])
def test_hosts_are_not_to_be_named(service: Service, kind: str) -> None:
    uuid = service.store.snapshot().uuids[0]
    answers = []
    for name in ("h3", "h33", uuid, PROVIDER):
        asked = {"explanation": ensemble(rule(kind, name))}
        refused = service.call("POST", "/explanations", asked)
        assert refused.status_code == 400
        assert refused.json["errors"][0]["path"] == "policies[0].domains"
        answers.append(refused.text.replace(name, "?"))
        made = {"ensemble": {"name": "e", **ensemble(rule(kind, name))}}
        assert service.call("POST", "/ensembles", made).status_code == 400
    assert len(set(answers)) == 1, "whether there is such a host makes no difference"
    asked = {"explanation": ensemble(rule(kind, "h3"))}
    assert service.call("POST", "/explanations", asked, caller=OPERATOR).status_code == 200


@pytest.mark.parametrize("kind", ["fence", "ban"])
def test_racks_are_to_be_named_where_a_setting_says_so(
    service: Service, racks: Service, kind: str
) -> None:
    asked = {"explanation": ensemble(rule(kind, "r1"))}
    refused = service.call("POST", "/explanations", asked)
    assert refused.json["errors"][0]["detail"] == "no such zone or aggregate: r1"
    unknown = service.call("POST", "/explanations", {"explanation": ensemble(rule(kind, "r77"))})
    assert unknown.text == refused.text.replace("r1", "r77"), "no rack is confirmed"
    assert racks.call("POST", "/explanations", asked).status_code == 200
    zone = {"explanation": ensemble(rule(kind, "az1"))}
    assert service.call("POST", "/explanations", zone).status_code == 200


def test_what_an_operator_named_is_read_as_labels(service: Service) -> None:
    body = {"ensemble": {"name": "e", **ensemble(rule("fence", "az1", "r1", "h3"))}}
    made = service.call(
        "POST", "/ensembles", body, caller=replace(OPERATOR, project_id="project-a")
    )
    assert made.status_code == 201, made.text
    path = f"/ensembles/{made.json['ensemble']['id']}"
    texts = []
    for where in (path, f"{path}/policies", f"{path}/policies/fence"):
        texts.append(service.call("GET", where).text)
        assert '"h3"' in service.call("GET", where, caller=OPERATOR).text
    for text in texts:
        assert '"az1"' in text
        assert not {'"h3"', '"r1"'} & set(re.findall(r'"[^"]*"', text))
    told = service.call("GET", f"{path}/policies/fence").json["policy"]["domains"]
    assert [re.sub("-.*", "", name) for name in told] == ["az1", "h", "r"]
    body = {"ensemble": {"name": "f", **ensemble(rule("fence", "r1", "h3"), count=80)}}
    made = service.call(
        "POST", "/ensembles", body, caller=replace(OPERATOR, project_id="project-a")
    )
    assert made.status_code == 409, made.text
    id_ = made.json["errors"][0]["explanation"]["id"]
    refused = service.call("GET", f"/explanations/{id_}")
    assert "the places it names" in refused.text
    assert not {"h3", "r1"} & set(re.findall(r"\w+", refused.text))


def test_a_host_is_named_in_no_later_policy_either(service: Service) -> None:
    body = {"ensemble": {"name": "e", **ensemble(rule("fence", "az1"))}}
    made = service.call("POST", "/ensembles", body).json["ensemble"]
    path, match = f"/ensembles/{made['id']}", {"If-Match": "*"}
    put = service.call(
        "PUT",
        f"{path}/policies/off",
        {"policy": rule("ban", "h3") | {"name": "off"}},
        headers=match,
    )
    assert put.status_code == 400
    patch = {"ensemble": {"policies": [rule("ban", "h3")]}}
    assert service.call("PATCH", path, patch, headers=match).status_code == 400
    as_operator = service.call("PATCH", path, patch, headers=match, caller=OPERATOR)
    assert as_operator.status_code == 200
    renamed = service.call("PATCH", path, {"ensemble": {"name": "f"}}, headers=match)
    assert renamed.status_code == 200, "what an operator wrote does not stand in the way"


@pytest.mark.parametrize(
    "error",
    [
        errors.CapacityExceeded(PROVIDER, "VCPU", free=7, requested=9),
        errors.ConstraintViolated(PROVIDER, "VCPU", requested=9, rule="max_unit 7"),
        errors.ProviderConflict(f"provider {PROVIDER}: revision 7", subject=PROVIDER),
        errors.NotFound("resource provider", PROVIDER),
        errors.UnknownName("resource provider", PROVIDER),
        errors.ProviderInUse(PROVIDER),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_name_providers_to_operators_only(
    service: Service, monkeypatch: pytest.MonkeyPatch, error: errors.MoorageError
) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(service.store, "commit", fail)
    body = {"ensemble": {"name": "e", **ensemble()}}
    told = service.call("POST", "/ensembles", body, caller=TENANT)
    assert PROVIDER not in told.text
    assert "7" not in told.json["errors"][0]["detail"]
    told = service.call("POST", "/ensembles", body, caller=OPERATOR)
    assert PROVIDER in told.text


def test_nothing_a_tenant_reads_names_a_host(service: Service) -> None:
    body = {"name": "e", **ensemble(rule("fence", "az1"), count=3), "decide": {"hold": "PT10M"}}
    made = service.call("POST", "/ensembles", {"ensemble": body}).json
    own, decision = made["ensemble"]["id"], made["decision"]["id"]
    claim = {"claim": {"member": "web[0]", "server": {"resources": {"VCPU": 1}}}}
    claimed = service.call("POST", f"/decisions/{decision}/claims", claim)
    assert claimed.status_code == 201, claimed.text
    snapshot = service.store.snapshot()
    hidden = {*snapshot.uuids, *snapshot.names}
    for path in (
        f"/ensembles/{own}",
        f"/ensembles/{own}?compliance=true",
        f"/ensembles/{own}/members",
        f"/ensembles/{own}/members/web[0]",
        f"/ensembles/{own}/survivability",
        f"/decisions/{decision}",
        f"/decisions/{decision}/claims",
        f"/claims/{claimed.json['claim']['id']}",
        "/ensembles",
        "/decisions",
        "/flavors",
    ):
        where, _, query = path.partition("?")
        told = service.call("GET", where, query=dict([query.split("=")]) if query else None)
        assert told.status_code == 200, told.text
        assert not hidden & set(_words(json.loads(told.text))), path
        assert service.call("GET", where, caller=OTHER).status_code in {200, 404}


def test_a_unit_rule_that_changed_is_told_without_the_host(service: Service) -> None:
    wide = {"VCPU": 8}
    body = {"name": "e", "members": [{"name": "db", "count": 1, "resources": wide}]}
    held = service.call(
        "POST", "/ensembles", {"ensemble": {**body, "decide": {"hold": "PT10M"}}}
    ).json
    snapshot = service.store.snapshot()
    smaller = tuple(
        PutInventories(uuid, (Inventory("VCPU", 16, max_unit=4),), None) for uuid in snapshot.uuids
    )
    service.store.commit(Changeset(smaller))
    decision = held["decision"]["id"]
    for method, path, asked in (
        ("PATCH", f"/decisions/{decision}", {"decision": {"hold": "PT1H"}}),
        (
            "POST",
            f"/decisions/{decision}/claims",
            {"claim": {"member": "db[0]", "server": {"resources": wide}}},
        ),
    ):
        told = service.call(method, path, asked, headers={"If-Match": "*"})
        assert not [uuid for uuid in snapshot.uuids if uuid in told.text]


def _words(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for one in value.items() for part in one for word in _words(part)]
    if isinstance(value, list):
        return [word for one in value for word in _words(one)]
    return [value] if isinstance(value, str) else []
