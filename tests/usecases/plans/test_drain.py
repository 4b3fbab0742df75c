"""A host is drained end to end: made by the API, and carried out by the simulator's mover."""

from dataclasses import replace
from typing import Any

from tests.usecases.plans.conftest import SERVERS, Fleet

from moorage.domain.plans import PlanState
from moorage.testing.service import OPERATOR


def call(fleet: Fleet, method: str, path: str, body: object = None, status: int = 200) -> Any:
    fleet.service.env = replace(fleet.service.env, moves_servers=True)
    answer = fleet.service.call(method, path, body, caller=OPERATOR)
    assert answer.status_code == status, answer.text
    return answer.json


def test_a_group_that_moves_one_by_one_is_not_refused_by_its_own_policy(fleet: Fleet) -> None:
    """The policy `together` is broken meanwhile, and holds at the end: the plan has judged that."""
    body = {
        "ensemble": {
            "name": "shop",
            "members": [{"name": "web", "count": 1, "resources": {"VCPU": 2, "MEMORY_MB": 2048}}],
            "policies": [
                {"name": "together", "type": "affinity", "members": ["web"], "phase": "steady"}
            ],
        }
    }
    ensemble = call(fleet, "POST", "/ensembles", body, 201)["ensemble"]["id"]
    for number in (1, 2):
        fleet.server(number, "h1")
        member = {"member": {"server_id": SERVERS[number], "name": "web"}}
        call(fleet, "POST", f"/ensembles/{ensemble}/members", member, 201)
    made = call(fleet, "POST", "/plans", {"plan": {"kind": "drain", "hosts": ["h1"]}}, 201)["plan"]
    assert (len(made["moves"]), made["unmoved"]) == (2, [])
    call(fleet, "POST", f"/plans/{made['id']}/apply")
    done = fleet.finish(fleet.env.store.plans.plan(made["id"]))
    assert (done.state, done.note) == (PlanState.DONE, "")
    assert [one.error for one in done.moves] == ["", ""]
    assert fleet.where(1) == fleet.where(2) != "h1"
    shown = call(fleet, "GET", f"/plans/{made['id']}")["plan"]
    assert (shown["state"], shown["done"], shown["failed"]) == ("done", 2, 0)
    assert call(fleet, "GET", "/events?type=member.misplaced")["events"] == []
