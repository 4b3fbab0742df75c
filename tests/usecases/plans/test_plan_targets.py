"""Places that a plan holds, as Nova's requests to Placement find them."""

from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient
from tests.usecases.plans.conftest import FLEET, MOVES, SERVERS, Fleet

from moorage.api import placement
from moorage.domain.plans import Plan, PlanState
from moorage.store import open_store
from moorage.testing.ledger_copy import new_database
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.plans.lifecycle import cancel_plan

HEADERS = {"OpenStack-API-Version": "placement 1.39", "Content-Type": "application/json"}
FULL = {"VCPU": 8, "MEMORY_MB": 8192}
HALF = {"VCPU": 4, "MEMORY_MB": 4096}


class Nova:
    """Nova's requests to Placement, which pass on the id of the request that it serves."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        app = placement.create_app(fleet.env.store, fleet.env.ids, access=lambda *_: True)
        self.client = TestClient(app)

    def _extras(self, server: str | None) -> dict[str, Any]:
        return {
            "moorage.caller": OPERATOR,
            "moorage.request_id": "req-1",
            "moorage.global_request_id": f"req-{server or MOVES[7]}",
        }

    def hosts(self, server: str | None, size: dict[str, int], query: str = "") -> set[str]:
        """The hosts of the candidates in a request that names a server, or none."""
        resources = ",".join(f"{name}:{amount}" for name, amount in size.items())
        answer = self.client.simulate_get(
            f"/allocation_candidates?resources={resources}{query}",
            headers=HEADERS,
            extras=self._extras(server),
        )
        assert answer.status_code == 200, answer.text
        found = {next(iter(one["allocations"])) for one in answer.json["allocation_requests"]}
        snapshot = self.fleet.env.store.snapshot()
        return {snapshot.names[snapshot.row_of[uuid]] for uuid in found}

    def put(self, server: str, host: str, size: dict[str, int]) -> int:
        """Write a server's allocations; the status."""
        path = f"/allocations/{server}"
        extras = self._extras(None)
        found = self.client.simulate_get(path, headers=HEADERS, extras=extras).json
        body = {
            "allocations": {self.fleet.uuid(host): {"resources": size}},
            "project_id": "project-a",
            "user_id": "ann",
            "consumer_generation": found.get("consumer_generation"),
            "consumer_type": "INSTANCE",
        }
        answer = self.client.simulate_put(path, json=body, headers=HEADERS, extras=extras)
        return answer.status_code


@pytest.fixture
def nova(fleet: Fleet) -> Nova:
    return Nova(fleet)


def applied(fleet: Fleet) -> Plan:
    """A plan that holds the whole of h2 for a server of h1; h3 and h4 have half left."""
    fleet.server(1, "h1", FULL)
    fleet.server(3, "h3", HALF)
    fleet.server(4, "h4", HALF)
    target = {fleet.uuid("h2"): FULL}
    return fleet.apply(fleet.plan(fleet.move(1, "h1", "h2", allocations=target)))


def test_what_is_held_is_free_for_its_server_alone(fleet: Fleet, nova: Nova) -> None:
    applied(fleet)
    assert nova.hosts(None, FULL) == set()
    assert nova.hosts(SERVERS[3], FULL) == set()
    assert nova.hosts(SERVERS[1], FULL) == {"h2"}
    assert nova.hosts(None, HALF) == {"h3", "h4"}


def test_its_server_is_led_to_its_target_where_that_fits(fleet: Fleet, nova: Nova) -> None:
    applied(fleet)
    # It would fit on the others as well.
    assert nova.hosts(SERVERS[1], HALF) == {"h2"}
    # Its owner resizes it to more than that host has, and Nova looks for another one.
    assert nova.hosts(SERVERS[1], {"VCPU": 9}) == set()
    # An operator names another host.
    assert nova.hosts(SERVERS[1], HALF, f"&in_tree={fleet.uuid('h3')}") == {"h3"}


def test_the_write_of_its_allocations_there_takes_the_hold(fleet: Fleet, nova: Nova) -> None:
    plan = applied(fleet)
    assert nova.put(SERVERS[5], "h2", HALF) == 409, "others find it full"
    # Whatever the request's id: the server is the one that it is held for.
    assert nova.put(SERVERS[1], "h2", FULL) == 204
    assert fleet.held() == {}
    assert nova.put(SERVERS[5], "h1", HALF) == 204
    after = fleet.finish(plan)
    assert after.state is PlanState.DONE
    assert after.moves[0].error == "the server is on h2 by now"


def test_a_write_elsewhere_leaves_the_hold(fleet: Fleet, nova: Nova) -> None:
    plan = applied(fleet)
    assert nova.put(SERVERS[1], "h3", HALF) == 204
    assert fleet.held() == {MOVES[1]: {"h2"}}
    assert fleet.finish(plan).state is PlanState.DONE
    assert fleet.held() == {}, "the server is elsewhere: it has no use for it"


def test_after_the_plan_the_server_is_as_any_other(fleet: Fleet, nova: Nova) -> None:
    plan = applied(fleet)
    cancel_plan(fleet.env, OPERATOR, plan.id)
    assert nova.hosts(SERVERS[1], HALF) == {"h2", "h3", "h4"}
    assert nova.hosts(None, FULL) == {"h2"}


def test_another_process_knows_of_it_at_once(fleet: Fleet, tmp_path: Path) -> None:
    url = new_database(tmp_path, fleet.service.clock, FLEET)
    here, other = Fleet(Service(database=url)), open_store(url, clock=fleet.service.clock)
    try:
        assert other.exclusive_ensembles(other.snapshot()).targets == {}
        plan = applied(here)
        known = other.exclusive_ensembles(other.snapshot()).targets
        assert [one.id for one in known[SERVERS[1]]] == [MOVES[1]]
        cancel_plan(here.env, OPERATOR, plan.id)
        assert other.exclusive_ensembles(other.snapshot()).targets == {}
    finally:
        other.close()
        here.service.close()
