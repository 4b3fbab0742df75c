"""A member whose server differs from its description: what it asks for is asked for, all of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.domain.changes import Changeset, PutTraits
from moorage.testing.service import OPERATOR, Service

AVX2 = "HW_CPU_X86_AVX2"


@pytest.fixture
def service(three_racks: str) -> Iterator[Service]:
    """The three racks, the third of them in an availability zone of its own."""
    made = Service(three_racks)
    path = "/topology/domains"
    found = made.call("GET", path, caller=OPERATOR).json["topology"]
    domains = [{**one, "parent": "az2"} if one["name"] == "r3" else one for one in found["domains"]]
    body = {
        "levels": found["levels"],
        "domains": [{"name": "az2", "level": "zone"}, *domains],
        "attachments": found["attachments"],
    }
    answer = made.call("PUT", path, {"topology": body}, caller=OPERATOR, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text
    yield made
    made.close()


def place(service: Service, **more: object) -> Any:
    role = {"name": "vm", "count": 2, "resources": {"VCPU": 2}, **more}
    policies = [{"name": "f", "type": "fence", "members": ["vm[0]"], "domains": ["az1"]}]
    body = {"name": "one", "members": [role], "policies": policies, "decide": {}}
    answer = service.call("POST", "/ensembles", {"ensemble": body})
    assert answer.status_code == 201, answer.text
    return answer.json["decision"]


def redecide(service: Service, decision: Any, member: str, **server: object) -> Any:
    path = f"/decisions/{decision['id']}/claims"
    asked = {"member": member, "server": server, "on_mismatch": "redecide_member"}
    return service.call("POST", path, {"claim": asked}, caller=OPERATOR)


def where(answer: Any, member: str) -> Any:
    assert answer.status_code == 201, answer.text
    return next(
        one["domains"] for one in answer.json["decision"]["assignments"] if one["member"] == member
    )


def test_a_server_goes_to_the_zone_it_names(service: Service) -> None:
    decision = place(service)
    for zone in ("az2", "az1"):
        size = {"resources": {"VCPU": 3 if zone == "az2" else 4}}
        found = redecide(service, decision, "vm[1]", availability_zone=zone, **size)
        assert where(found, "vm[1]")["zone"] == zone
        assert where(found, "vm[0]")["zone"] == "az1", "the others stay where they are"
        claim = found.json["claim"]["id"]
        ended = service.call(
            "PATCH", f"/claims/{claim}", {"claim": {"status": "failed", "on_failure": "redecide"}}
        )
        decision = ended.json["decision"]


def test_a_zone_against_a_policy_is_refused(service: Service) -> None:
    decision = place(service)
    found = redecide(service, decision, "vm[0]", availability_zone="az2", resources={"VCPU": 3})
    assert found.status_code == 409
    assert found.json["errors"][0]["code"] == "ensemble.infeasible"
    shown = service.call("GET", f"/decisions/{decision['id']}").json["decision"]
    assert shown["status"] == "held"


def test_a_zone_that_is_not_there_is_refused_by_name(service: Service) -> None:
    found = redecide(
        service, place(service), "vm[0]", availability_zone="az9", resources={"VCPU": 3}
    )
    assert found.status_code == 400
    assert found.json["errors"][0]["detail"] == "no such availability zone: az9"


def test_what_the_role_requires_stays_required(service: Service) -> None:
    snapshot = service.store.snapshot()
    for row in snapshot.roots.tolist():
        if snapshot.names[row] != "h1":
            service.store.commit(
                Changeset((PutTraits(snapshot.uuids[row], frozenset({"COMPUTE_NODE"}), None),))
            )
    decision = place(service, required=[AVX2])
    found = redecide(service, decision, "vm[1]", resources={"VCPU": 15})
    assert found.json["errors"][0]["code"] == "ensemble.infeasible", "other hosts lack the trait"
    found = redecide(service, decision, "vm[1]", resources={"VCPU": 14})
    assert where(found, "vm[1]")["host"] == "h1"


def test_a_dry_run_claims_nothing_whether_or_not_the_server_is_as_described(
    service: Service,
) -> None:
    decision = place(service)
    path, before = f"/decisions/{decision['id']}/claims", service.store.snapshot().revision
    for size, verdict in ((2, "matches"), (3, "redecided")):
        server = {"resources": {"VCPU": size}}
        asked = {"member": "vm[1]", "server": server, "on_mismatch": "redecide_member"}
        answer = service.call("POST", path, {"claim": asked}, query={"dry_run": "true"})
        assert (answer.status_code, answer.json["claim"]["dry_run"]) == (200, True)
        assert answer.json["claim"]["comparison"]["verdict"] == verdict
        assert service.call("GET", path).json["claims"] == []
    assert service.store.snapshot().revision == before
