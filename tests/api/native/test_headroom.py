"""Headroom: places held for members that an ensemble does not have yet."""

from collections import Counter
from typing import Any

import pytest
from tests.api.native.conftest import refused
from tests.api.native.test_growth import (
    FLEET,
    ask,
    claimed,
    counts,
    done,
    hadoop,
    members,
    racks,
)
from tests.api.native.test_stacks import deleted

from moorage.domain.changes import Changeset, DeleteProvider
from moorage.domain.period import MINUTE
from moorage.domain.topology import DEFAULT_TREE, Level
from moorage.testing.service import OPERATOR, OTHER, Service
from moorage.usecases.claims.outcome import expire
from moorage.usecases.ledger.withdrawal import commit_with_withdrawal
from moorage.usecases.shared.host_labels import domains_of

__all__ = ["FLEET", "hadoop"]

RACK = Level(DEFAULT_TREE, "rack")


def expired(service: Service) -> None:
    """What is due has been expired."""
    while any(expire(service.env, one) for one in service.store.due(10)):
        pass


def set_headroom(service: Service, path: str, count: int, role: str = "worker") -> Any:
    return service.call("PUT", f"{path}/headroom", {"headroom": {"role": role, "count": count}})


def headroom(service: Service, path: str) -> Any:
    return service.call("GET", path).json["ensemble"]["headroom"]


def spare_hosts(service: Service, path: str) -> Counter[str]:
    """Hosts of the headroom of the ensemble."""
    ensemble = service.store.ensemble(path.rpartition("/")[2])
    found = [b for _, b in service.store.bookings() if b.consumer in ensemble.spares]
    snapshot = service.store.snapshot()
    return Counter(snapshot.names[snapshot.row_of[one.provider]] for one in found)


def test_headroom_is_held_until_it_is_set_otherwise(service: Service, hadoop: str) -> None:
    made = set_headroom(service, hadoop, 4)
    assert made.status_code == 200, made.text
    assert made.json["headroom"]["ensemble"]["headroom"] == {"worker": 4}
    assert (headroom(service, hadoop), counts(service, hadoop)["worker"]) == ({"worker": 4}, 12)
    assert len(members(service, hadoop)) == 14, "spares are no members"
    used = {one["host"] for one in members(service, hadoop).values() if one["role"] == "worker"}
    assert len(spare_hosts(service, hadoop)) == 4
    assert not used & set(spare_hosts(service, hadoop)), "they would keep the policies"
    claimed(service, hadoop, ["worker[0]"])
    service.clock.pass_by(3000 * MINUTE)
    expired(service)
    assert len(spare_hosts(service, hadoop)) == 4, "a server is left"
    set_headroom(service, hadoop, 1)
    assert (headroom(service, hadoop), len(spare_hosts(service, hadoop))) == ({"worker": 1}, 1)
    set_headroom(service, hadoop, 0)
    assert (headroom(service, hadoop), len(spare_hosts(service, hadoop))) == ({}, 0)


def test_headroom_ends_with_a_hold_that_no_server_took(service: Service, hadoop: str) -> None:
    set_headroom(service, hadoop, 4)
    service.clock.pass_by(3000 * MINUTE)
    expired(service)
    assert (headroom(service, hadoop), spare_hosts(service, hadoop)) == ({}, Counter())
    refused(set_headroom(service, hadoop, 1), 409, "wrong_state")


def test_headroom_ends_with_its_decisions_release(service: Service, hadoop: str) -> None:
    set_headroom(service, hadoop, 4)
    servers = claimed(service, hadoop, ["worker[0]"])
    decision = service.call("GET", hadoop).json["ensemble"]["decision"]["id"]
    path, anything = f"/decisions/{decision}", {"If-Match": "*"}
    service.call("DELETE", path, headers=anything, query={"dry_run": "true"})
    assert headroom(service, hadoop) == {"worker": 4}
    assert service.call("DELETE", path, headers=anything).status_code < 300
    assert (headroom(service, hadoop), spare_hosts(service, hadoop)) == ({}, Counter())
    assert set_headroom(service, hadoop, 1).status_code == 200, "beside a server"
    deleted(service, servers["worker[0]"])
    assert headroom(service, hadoop) == {}


def test_headroom_ends_with_the_last_server(service: Service, hadoop: str) -> None:
    set_headroom(service, hadoop, 4)
    servers = claimed(service, hadoop, ["worker[0]", "worker[1]"])
    decision = service.call("GET", hadoop).json["ensemble"]["decision"]["id"]
    assert service.call("POST", f"/decisions/{decision}/confirm").status_code == 200
    deleted(service, servers["worker[0]"])
    assert headroom(service, hadoop) == {"worker": 4}
    deleted(service, servers["worker[1]"])
    assert (headroom(service, hadoop), spare_hosts(service, hadoop)) == ({}, Counter())


@pytest.mark.parametrize("how", ["failed", "lapsed"])
def test_headroom_ends_with_the_last_build(service: Service, hadoop: str, how: str) -> None:
    set_headroom(service, hadoop, 4)
    decision = service.call("GET", hadoop).json["ensemble"]["decision"]["id"]
    claim = {"claim": {"member": "worker[0]", "server": {"resources": {"VCPU": 8}}}}
    made = service.call("POST", f"/decisions/{decision}/claims", claim).json["claim"]
    assert service.call("POST", f"/decisions/{decision}/confirm").status_code == 200
    assert headroom(service, hadoop) == {"worker": 4}
    if how == "failed":
        service.call("PATCH", f"/claims/{made['id']}", {"claim": {"status": "failed"}})
    else:
        service.clock.pass_by(3000 * MINUTE)
        expired(service)
    assert (headroom(service, hadoop), spare_hosts(service, hadoop)) == ({}, Counter())


def test_headroom_is_not_set_beside_members_without_places(service: Service) -> None:
    role = {"name": "worker", "count": 2, "resources": {"VCPU": 1}}
    body = {"ensemble": {"name": "plan", "members": [role]}}
    made = service.call("POST", "/ensembles", body).json["ensemble"]
    error = refused(set_headroom(service, f"/ensembles/{made['id']}", 1), 409, "wrong_state")
    assert "moorage" in error["detail"]


def test_an_extension_takes_from_the_headroom_first(service: Service, hadoop: str) -> None:
    set_headroom(service, hadoop, 4)
    neighbours = {
        "name": "neighbours",
        "members": [{"name": "n", "count": 4, "resources": {"VCPU": 16}}],
        "decide": {},
    }
    taken = service.call("POST", "/ensembles", {"ensemble": neighbours}, caller=OTHER)
    refused(taken, 409, "infeasible")
    before = set(spare_hosts(service, hadoop))
    made = done(ask(service, hadoop, "extend", role="worker", count=3), "extend")
    assert (made["from_headroom"], headroom(service, hadoop)) == (3, {"worker": 1})
    hosts = {members(service, hadoop)[name]["host"] for name in made["members"]}
    assert hosts < before
    assert made["decision"]["status"] == "held"
    rest = done(ask(service, hadoop, "extend", role="worker", count=2), "extend")
    assert (rest["from_headroom"], headroom(service, hadoop)) == (1, {})
    assert racks(service, hadoop) == [5, 4, 4, 4]
    service.clock.pass_by(90 * MINUTE)
    assert service.store.held("project-a") == 0, "what became members lapses with them"


def test_the_largest_step_counts_the_headroom(service: Service, hadoop: str) -> None:
    set_headroom(service, hadoop, 4)
    made = done(ask(service, hadoop, "extend", role="worker", count=30, least=1), "extend")
    assert (len(made["members"]), made["from_headroom"]) == (8, 4)


def test_headroom_that_does_not_fit_is_refused(service: Service, hadoop: str) -> None:
    set_headroom(service, hadoop, 2)
    before = service.call("GET", hadoop).json
    error = refused(set_headroom(service, hadoop, 9), 409, "infeasible")
    assert "one-per-host" in str(error["explanation"])
    assert error["links"], "the refusal is kept"
    assert service.call("GET", hadoop).json == before
    dry = service.call(
        "PUT",
        f"{hadoop}/headroom",
        {"headroom": {"role": "worker", "count": 3}},
        query={"dry_run": "true"},
    )
    assert dry.json["headroom"]["ensemble"]["headroom"] == {"worker": 3}
    assert service.call("GET", hadoop).json == before
    refused(set_headroom(service, hadoop, 1, "absent"), 400, "invalid_description")


def test_headroom_counts_for_the_quota_of_held_places(service: Service, hadoop: str) -> None:
    quota = {"quota": {"held_units": 15}}
    changed = service.call("PATCH", "/quotas/project-a", quota, caller=OPERATOR)
    assert changed.status_code == 200, changed.text
    assert set_headroom(service, hadoop, 1).status_code == 200
    refused(set_headroom(service, hadoop, 2), 403, "quota_exceeded")


def test_headroom_ends_with_its_ensemble(service: Service, hadoop: str) -> None:
    set_headroom(service, hadoop, 4)
    gone = service.call("DELETE", hadoop, headers={"If-Match": "*"})
    assert gone.status_code == 204, gone.text
    assert service.store.held("project-a") == 0


def test_headroom_that_breaks_a_policy_by_now_gets_other_places(
    service: Service, hadoop: str
) -> None:
    set_headroom(service, hadoop, 4)
    away = min(spare_hosts(service, hadoop))
    snapshot = service.store.snapshot()
    rack = domains_of(snapshot, snapshot.names.index(away))[RACK]
    fence = {"name": "no-rack", "type": "ban", "members": ["worker"], "domains": [rack]}
    even: dict[str, Any] = {"headers": {"If-Match": "*"}, "caller": OPERATOR}
    service.call("DELETE", f"{hadoop}/policies/racks", **even)
    answer = service.call("PUT", f"{hadoop}/policies/no-rack", {"policy": fence}, **even)
    assert answer.status_code == 200, answer.text
    made = done(ask(service, hadoop, "extend", role="worker", count=4), "extend")
    hosts = [members(service, hadoop)[name]["domains"]["rack"] for name in made["members"]]
    assert rack not in hosts


def test_headroom_on_a_host_that_goes_is_given_up(service: Service, hadoop: str) -> None:
    set_headroom(service, hadoop, 4)
    host = min(spare_hosts(service, hadoop))
    snapshot = service.store.snapshot()
    uuid = snapshot.uuids[snapshot.names.index(host)]
    commit_with_withdrawal(service.store, Changeset((DeleteProvider(uuid),)))
    assert headroom(service, hadoop) == {"worker": 3}
    assert len(spare_hosts(service, hadoop)) == 3
