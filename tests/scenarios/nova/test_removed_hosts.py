"""A host that Nova removes while places on it are held or promised: only allocations keep it."""

import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.scenarios.nova.conftest import Cloud
from tests.scenarios.nova.leased import grant

from moorage.domain.effects import EffectState
from moorage.domain.leases import LeaseState
from moorage.domain.period import HOUR, format_instant
from moorage.service_environment import RandomIds, with_strategies
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.service import OPERATOR
from moorage.usecases.decide.writes import current_decision
from moorage.usecases.effect_dispatch import OutwardActions, carry_out
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.leases.lease_sweeper import LeaseSweeper
from moorage.usecases.ledger.audit import audit
from moorage.usecases.shared.environment import Environment
from moorage.usecases.shared.limits import Limits


def env(cloud: Cloud) -> UseCaseEnvironment:
    ids, solver = RandomIds(), Portfolio(CpSat())
    return with_strategies(
        Environment(cloud.store, solver, ids, Limits(), time.monotonic, time.sleep)
    )


def hold(cloud: Cloud, count: int = 2) -> Any:
    """Members that are held on hosts which nobody else is on."""
    body = {
        "name": f"shop {uuid.uuid4()}",
        "members": [{"name": "db", "count": count, "flavor": "m1.xlarge"}],
        "policies": [{"type": "anti-affinity", "members": ["db"], "level": "host"}],
        "decide": {"hold": "PT30M", "objective": "balance"},
    }
    return cloud.tenant.call("POST", "/ensembles", {"ensemble": body})


def work(cloud: Cloud) -> list[str]:
    """Carry out what is due, and what came of it."""
    found = []
    for effect in cloud.store.due_effects(100):
        carry_out(env(cloud), OutwardActions(), effect)
        (after,) = (one for one in cloud.store.effects(effect.subject) if one.id == effect.id)
        assert after.state is EffectState.DONE
        found.append(after.outcome)
    return found


def hosts(cloud: Cloud, held: Any) -> dict[str, str]:
    """Member -> host of what is booked for it."""
    ensemble = cloud.store.ensemble(held["ensemble"]["id"])
    return {
        str(member.name): booking.provider
        for member in ensemble.members
        for _, booking in cloud.store.bookings(consumer=member.uuid)
    }


def events(cloud: Cloud, type_: str) -> list[Any]:
    found = cloud.tenant.call("GET", "/events")["events"]
    return [one for one in found if one["type"] == type_]


def removed(cloud: Cloud, host: str) -> Any:
    """As Nova removes a compute node, when its service is deleted."""
    return cloud.nova.call("DELETE", f"/resource_providers/{host}")


def emptied(cloud: Cloud, host: str) -> Any:
    return cloud.nova.call("DELETE", f"/resource_providers/{host}/inventories")


def without_one(cloud: Cloud, host: str) -> Any:
    return cloud.nova.call("DELETE", f"/resource_providers/{host}/inventories/VCPU")


def rewritten(cloud: Cloud, host: str) -> Any:
    path = f"/resource_providers/{host}/inventories"
    body = cloud.nova.call("GET", path).json()
    del body["inventories"]["VCPU"]
    return cloud.nova.call("PUT", path, body)


def reshaped(cloud: Cloud, host: str) -> Any:
    path = f"/resource_providers/{host}/inventories"
    body = cloud.nova.call("GET", path).json()
    del body["inventories"]["VCPU"]
    asked = {"inventories": {host: body}, "allocations": {}}
    return cloud.nova.call("POST", "/reshaper", asked)


WAYS: list[Callable[[Cloud, str], Any]] = [removed, emptied, without_one, rewritten, reshaped]


@pytest.mark.parametrize("way", WAYS, ids=lambda one: one.__name__)
def test_held_members_are_placed_elsewhere(cloud: Cloud, way: Callable[[Cloud, str], Any]) -> None:
    held = hold(cloud)
    before = hosts(cloud, held)
    lapses_at = held["decision"]["expires_at"]
    answer = way(cloud, before["db[0]"])
    assert answer.is_success, answer.text
    assert hosts(cloud, held) == {"db[1]": before["db[1]"]}
    shown = cloud.tenant.call("GET", f"/decisions/{held['decision']['id']}")["decision"]
    assert [one["member"] for one in shown["assignments"]] == ["db[1]"]
    assert shown["withdrawn"] == ["db[0]"]
    (event,) = events(cloud, "decision.unplaced")
    assert (event["subject"], event["body"]["members"]) == (held["decision"]["id"], ["db[0]"])
    assert work(cloud) == ["placed anew"]
    after = hosts(cloud, held)
    assert after["db[1]"] == before["db[1]"]
    assert after["db[0]"] not in before.values()
    current = current_decision(cloud.store, cloud.store.ensemble(held["ensemble"]["id"]))
    assert current is not None
    assert format_instant(current.expires_at) == lapses_at


def test_without_room_they_stay_unplaced(cloud: Cloud) -> None:
    held = hold(cloud)
    before = hosts(cloud, held)
    for one in cloud.nova.call("GET", "/resource_providers").json()["resource_providers"]:
        cloud.nova.fill(one["uuid"])
    assert removed(cloud, before["db[0]"]).status_code == 409, "others are on it"
    assert hosts(cloud, held) == before
    for consumer in cloud.nova.call(
        "GET", f"/resource_providers/{before['db[0]']}/allocations"
    ).json()["allocations"]:
        assert cloud.nova.call("DELETE", f"/allocations/{consumer}").status_code == 204
    assert removed(cloud, before["db[0]"]).status_code == 204
    (outcome,) = work(cloud)
    assert outcome.startswith("there are no other places")
    assert hosts(cloud, held) == {"db[1]": before["db[1]"]}
    shown = cloud.tenant.call("GET", f"/ensembles/{held['ensemble']['id']}/members/db[0]")
    assert shown["member"]["status"] == "unplaced"


def test_a_building_claim_there_fails(cloud: Cloud) -> None:
    held = hold(cloud)
    claim = cloud.tenant.claim(held)
    host = cloud.tenant.host_of(claim)
    assert removed(cloud, host).status_code == 204
    assert cloud.tenant.claimed(claim) == ("failed", None)
    assert work(cloud) == ["placed anew"]
    assert set(hosts(cloud, held)) == {"db[0]", "db[1]"}


def test_a_release_before_the_effect_leaves_nothing_to_do(cloud: Cloud) -> None:
    held = hold(cloud)
    assert removed(cloud, hosts(cloud, held)["db[0]"]).status_code == 204
    cloud.tenant.call("DELETE", f"/decisions/{held['decision']['id']}")
    assert work(cloud) == ["the decision is released"]


@pytest.mark.parametrize("start", [0, 5 * HOUR], ids=["begun", "ahead"])
def test_a_lease_is_degraded_and_healed(cloud: Cloud, start: int) -> None:
    state = LeaseState.PENDING if start else LeaseState.ACTIVE
    leased = grant(cloud, start=start, state=state, emptiest=True)
    host = next(iter(leased.hosts()))
    assert removed(cloud, host).status_code == 204
    assert (leased.lease.degraded, leased.lease.missing) == (True, 1)
    assert len(leased.hosts()) == 2
    look = LeaseSweeper(env(cloud))
    look.run_round()
    look.run_round()
    assert (leased.lease.degraded, leased.lease.missing) == (False, 0)
    assert len(leased.hosts()) == 3
    assert host not in leased.hosts()
    told = [one["type"] for one in cloud.tenant.call("GET", "/events")["events"]]
    assert told.index("lease.degraded") < told.index("lease.whole")


def test_a_lease_without_room_says_so_until_there_is_some(cloud: Cloud) -> None:
    leased = grant(cloud, emptiest=True)
    host = next(iter(leased.hosts()))
    every = [
        one["uuid"]
        for one in cloud.nova.call("GET", "/resource_providers").json()["resource_providers"]
    ]
    for one in every:
        if one not in leased.hosts():
            cloud.nova.fill(one)
    assert removed(cloud, host).status_code == 204
    look = LeaseSweeper(env(cloud))
    look.run_round()
    look.run_round()
    assert (leased.lease.degraded, leased.lease.missing) == (True, 1)
    sound_but_for_the_topology(cloud)


def sound_but_for_the_topology(cloud: Cloud) -> None:
    """A host that is gone is named in the topology still, which is the operator's."""
    found = audit(cloud.store, OPERATOR, None).findings
    assert [one for one in found if "a place in tree" not in one.detail] == []


def test_a_server_there_keeps_the_host(cloud: Cloud) -> None:
    held = hold(cloud)
    host = hosts(cloud, held)["db[0]"]
    server = str(uuid.uuid4())
    candidate = {"allocations": {host: {"resources": {"VCPU": 1}}}, "mappings": {"": [host]}}
    assert cloud.nova.claim_resources(server, candidate).status_code == 204
    for way in WAYS:
        answer = way(cloud, host)
        assert answer.status_code == 409, answer.text
    assert hosts(cloud, held)["db[0]"] == host
