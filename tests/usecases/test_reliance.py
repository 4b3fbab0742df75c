"""What a decision depends on besides its hosts: strangers' hosts, topology, exclusive ensembles."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from moorage.domain.changes import Changeset, PutEnsemble
from moorage.domain.describe import read_ensemble
from moorage.domain.topology import DEFAULT_TREE
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.compliance.judgement import broken_policies
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import EnsembleResult, create_ensemble
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.ports import Caller

# Operators, of two projects: they may name hosts in policies.
MINE = Caller("ann", "project-a", frozenset({"admin"}))
OTHER = Caller("bob", "project-b", frozenset({"admin"}))

Overtaken = Callable[[Callable[[], object]], UseCaseEnvironment]


def one(name: str, host: str, *policies: dict[str, Any]) -> dict[str, Any]:
    fence = {"name": "here", "type": "fence", "members": ["vm"], "domains": [host]}
    member = {"name": "vm", "count": 1, "resources": {"VCPU": 1}}
    return {"name": name, "members": [member], "policies": [fence, *policies]}


def exclusive(level: str) -> dict[str, Any]:
    return {"name": "alone", "type": "exclusive", "members": ["vm"], "level": level}


def create(env: UseCaseEnvironment, caller: Caller, body: dict[str, Any]) -> EnsembleResult:
    return create_ensemble(
        env, caller, read_ensemble(body), DecisionOptions(), RequestIdentity(env.ids.uuid())
    )


def refused(service: Service, caller: Caller, body: dict[str, Any]) -> bool:
    answer = service.call("POST", "/ensembles", {"ensemble": {**body, "decide": {}}}, caller=caller)
    assert answer.status_code in {201, 409}, answer.text
    return bool(answer.status_code == 409)


RACK_OWNER = one("owner", "h1", exclusive("rack"))
NEIGHBOUR = one("neighbour", "h2")


@pytest.mark.parametrize(
    ("slow", "quick"), [(RACK_OWNER, NEIGHBOUR), (NEIGHBOUR, RACK_OWNER)], ids=["owner", "other"]
)
def test_a_rack_is_kept_from_strangers_that_come_at_the_same_time(
    service: Service, overtaken: Overtaken, slow: dict[str, Any], quick: dict[str, Any]
) -> None:
    made: list[EnsembleResult] = []
    env = overtaken(lambda: made.append(create(service.env, OTHER, quick)))
    with pytest.raises(Exception, match="no placement meets the request"):
        create(env, MINE, slow)
    (first,) = made
    assert broken_policies(service.store.snapshot(), first.ensemble) == ()


def test_a_policy_put_meanwhile_counts(service: Service, overtaken: Overtaken) -> None:
    standing = create(service.env, OTHER, one("owner", "h1")).ensemble
    path = f"/ensembles/{standing.id}/policies/alone"
    answers: list[int] = []

    def put() -> None:
        said = service.call(
            "PUT", path, {"policy": exclusive("rack")}, caller=OTHER, headers={"If-Match": "*"}
        )
        answers.append(said.status_code)

    with pytest.raises(Exception, match="no placement meets the request"):
        create(overtaken(put), MINE, NEIGHBOUR)
    assert answers == [200]


def test_topology_that_moves_is_looked_at_again(service: Service, overtaken: Overtaken) -> None:
    told = service.call("GET", "/topology/domains", caller=OPERATOR).json["topology"]
    moved = {name: told[name] for name in ("levels", "domains")} | {
        "attachments": [{**one, "domain": "r1"} for one in told["attachments"]]
    }
    apart = {
        "name": "e",
        "members": [{"name": "vm", "count": 2, "resources": {"VCPU": 1}}],
        "policies": [{"name": "far", "type": "separation", "members": ["vm"], "level": "rack"}],
    }
    answers: list[int] = []

    def put() -> None:
        body = {"topology": moved}
        said = service.call(
            "PUT", "/topology/domains", body, caller=OPERATOR, headers={"If-Match": "*"}
        )
        answers.append(said.status_code)

    with pytest.raises(Exception, match="no placement meets the request"):
        create(overtaken(put), MINE, apart)
    assert answers == [200]
    attached = service.store.snapshot().topology.attachments
    assert {attached[DEFAULT_TREE, f"h{i}"] for i in range(1, 10)} == {"r1"}


def test_other_racks_may_change_meanwhile(service: Service, overtaken: Overtaken) -> None:
    made: list[EnsembleResult] = []
    env = overtaken(lambda: made.append(create(service.env, OTHER, one("far", "h4"))))
    snapshot = service.store.snapshot()
    owner = create(env, MINE, RACK_OWNER)
    assert made
    assert owner.decision is not None
    assert owner.decision.revision == snapshot.revision, "it was not decided again"


def test_no_exclusive_ensemble_is_beyond_a_page(service: Service) -> None:
    body = one("k", "h1", exclusive("host"))
    body["members"][0]["count"] = 0
    naming = RequestIdentity(service.env.ids.uuid())
    first = create_ensemble(service.env, OTHER, read_ensemble(body), None, naming).ensemble
    more = (replace(first, id=service.env.ids.uuid()) for _ in range(1_000))
    service.store.commit(Changeset(tuple(PutEnsemble(ensemble, None) for ensemble in more)))
    create(service.env, MINE, one("owner", "h1", exclusive("host")))
    assert len(service.store.exclusive_ensembles(service.store.snapshot()).ensembles) == 1_002
    assert refused(service, OTHER, one("stranger", "h1"))


def test_who_no_longer_keeps_others_out_is_forgotten(service: Service) -> None:
    owner = create(service.env, MINE, one("owner", "h1", exclusive("host"))).ensemble
    assert refused(service, OTHER, one("stranger", "h1"))
    path = f"/ensembles/{owner.id}/policies/alone"
    assert service.call("DELETE", path, caller=MINE, headers={"If-Match": "*"}).status_code == 204
    assert service.store.exclusive_ensembles(service.store.snapshot()).ensembles == ()
    assert not refused(service, OTHER, one("stranger", "h1"))
