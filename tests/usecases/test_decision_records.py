"""Records of decisions: who asked, for what, what was considered, and that it can be repeated."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.sim_instance import solved
from moorage.domain.decision_records import places_digest
from moorage.domain.member_names import MemberName
from moorage.solver.cpsat import CpSat
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.shared.instances import MOST_BYTES, MOST_DECIDED

ANN = replace(TENANT, request_id="req-1")
SHOP = {
    "name": "shop",
    "members": [
        {"name": "web", "count": 4, "flavor": "m1.small"},
        {"name": "db", "count": 2, "flavor": "m1.medium"},
    ],
    "policies": [
        {"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "rack"},
        {"name": "even", "type": "spread", "members": ["web"], "level": "rack", "max_skew": 1},
    ],
    "decide": {"hold": "PT10M", "objective": "spread", "seed": 7, "max_additional": ["web"]},
}
FEW = Path("fleets/three-racks.yaml").read_text(encoding="utf-8")


def fleet(hosts: int) -> str:
    return FEW.replace("count: 9", f"count: {hosts}")


@pytest.fixture(params=[9, MOST_DECIDED + 1, 3_000])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    made = Service(fleet(request.param))
    yield made
    made.close()


def decided(service: Service, **changed: object) -> Any:
    answer = service.call("POST", "/ensembles", {"ensemble": SHOP | changed}, caller=ANN)
    assert answer.status_code == 201, answer.text
    return answer.json["decision"]


def record(service: Service, decision: str, **query: object) -> Any:
    caller = OPERATOR if query else ANN
    answer = service.call("GET", f"/decisions/{decision}/record", caller=caller, query=query)
    assert answer.status_code == 200, answer.text
    return answer.json["record"]


def test_a_record_says_who_asked_for_what_and_what_was_considered(service: Service) -> None:
    decision = decided(service)
    told = record(service, decision["id"])
    assert (told["user"], told["request_id"], told["by"]) == ("ann", "req-1", None)
    assert told["revision"] == decision["revision"]
    assert told["inputs"] == {
        "objective": "spread",
        "first_choices": True,
        "seed": 7,
        "time_limit": "PT5S",
        "hold": "PT10M",
        "until": None,
        "preemptible": False,
        "priority": 0,
        "max_additional": ["web"],
    }
    assert [(one["name"], one["count"]) for one in told["roles"]] == [("web", 4), ("db", 2)]
    assert [one["name"] for one in told["policies"]] == ["apart", "even"]
    assert (told["strategy"], told["attempts"], told["placed"]) == ("unaided", 1, 6)
    assert told["solve"] == decision["solve"]


def test_a_tenant_reads_no_host_and_rounded_counts(service: Service) -> None:
    decision = decided(service)["id"]
    told = record(service, decision)
    assert isinstance(told["counts"]["considered"], str)
    assert not {"places", "displaced", "instance", "replayable"} & told.keys()
    hosts = record(service, decision, instance="true")["instance"]["request"]["terrain"]["uuids"]
    assert not any(host in json.dumps(told) for host in hosts)
    path = f"/decisions/{decision}/record"
    assert service.call("GET", path, caller=OTHER).status_code == 404
    assert service.call("GET", path, query={"instance": "true"}).status_code == 403


def test_little_is_stored_whatever_the_size_of_the_fleet(service: Service) -> None:
    found, _ = service.store.decision_record(decided(service)["id"])
    assert found is not None
    assert 0 < len(found.instance) <= MOST_BYTES


def test_a_replay_finds_the_same_places(service: Service) -> None:
    decision = decided(service)["id"]
    told = record(service, decision, instance="true")
    stored = service.store.decision(decision).places
    places = places_digest({name: place.host for name, place in stored.items()})
    assert told["places"] == places
    outcome, found = solved(json.dumps(told["instance"]), "PT5S", told["inputs"]["seed"])
    assert (found, outcome.value) == (places, told["solve"]["value"])
    # It stays so whatever becomes of the decision.
    for method, path in (("POST", "confirm"), ("DELETE", "")):
        service.call(method, f"/decisions/{decision}/{path}".rstrip("/"), headers={"If-Match": "*"})
    assert record(service, decision, instance="true")["places"] == places


@pytest.mark.parametrize("service", [9, MOST_DECIDED + 1], indirect=True)
def test_a_replay_takes_the_number_of_the_planner_that_searched(service: Service) -> None:
    solver = Portfolio(CpSat(), Greedy(scatter=2))
    service.env = replace(service.env, solver=solver)
    told = record(service, decided(service)["id"], instance="true")
    assert told["scatter"] == 2
    found, places = solved(json.dumps(told["instance"]), "5s", told["solve"]["seed"], 2)
    assert (str(found.verdict), places) == ("feasible", told["places"])


def test_the_problem_of_a_small_fleet_is_kept_whatever_changes(service: Service) -> None:
    decision = decided(service)["id"]
    decided(service, name="other")
    path, query = f"/decisions/{decision}/record", {"instance": "true"}
    answer = service.call("GET", path, caller=OPERATOR, query=query)
    if len(service.store.snapshot().uuids) <= MOST_DECIDED:
        assert answer.status_code == 200
    else:
        assert (answer.status_code, answer.json["errors"][0]["code"]) == (
            410,
            "ensemble.instance_outdated",
        )
    assert record(service, decision)["inputs"] is not None


@pytest.mark.parametrize("service", [9], indirect=True)
def test_occupants_that_a_policy_reads_belong_to_the_problem(service: Service) -> None:
    alone = [{"name": "alone", "type": "exclusive", "members": ["db"], "level": "host"}]
    decided(service, name="before")
    told = record(service, decided(service, policies=alone)["id"], instance="true")
    assert told["instance"]["request"]["terrain"]["occupants"]
    _, found = solved(json.dumps(told["instance"]), "PT5S", 7)
    assert found == told["places"]


@pytest.mark.parametrize("service", [9], indirect=True)
def test_a_dry_run_leaves_no_record(service: Service) -> None:
    answer = service.call("POST", "/ensembles", {"ensemble": SHOP}, query={"dry_run": "true"})
    path = f"/decisions/{answer.json['decision']['id']}/record"
    assert service.call("GET", path).status_code == 404


def test_a_digest_is_of_members_and_their_hosts() -> None:
    one, two = MemberName("web", 0), MemberName("web", 1)
    assert places_digest({one: "a", two: "b"}) == places_digest({two: "b", one: "a"})
    assert places_digest({one: "a", two: "b"}) != places_digest({one: "b", two: "a"})
