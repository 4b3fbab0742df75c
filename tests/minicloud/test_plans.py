"""Plans that Nova carries out: drained, evacuated and repaired, with Moorage killed in between."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from openstack.compute.v2.service import Service
from tests.minicloud.cloud import Cloud
from tests.minicloud.tenant import Operator, Tenant, eventually
from tests.minicloud.test_crashes import audit, killed_after, let_nova_api_find_placement
from tests.minicloud.test_ticket_flavors import flavor_of

APART = {"name": "apart", "type": "anti-affinity", "members": ["a"], "level": "host"}
SMALL = {"VCPU": 1, "MEMORY_MB": 2_048, "DISK_GB": 20}
SECONDS = 600.0


class Plans:
    """Plans as an operator makes and applies them."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def call(self, method: str, path: str, body: Any = None) -> Any:
        url = self.operator.cloud.layout.url("moorage", f"/v1{path}")
        session = self.operator.connection.session
        answer = session.request(url, method, json=body, raise_exc=False)
        assert answer.status_code < 400, answer.text
        return answer.json() if answer.content else None

    def made(self, kind: str, **more: Any) -> Any:
        return self.call("POST", "/plans", {"plan": {"kind": kind, **more}})["plan"]

    def apply(self, plan: Any) -> None:
        self.call("POST", f"/plans/{plan['id']}/apply")

    def shown(self, plan: Any) -> Any:
        return self.call("GET", f"/plans/{plan['id']}")["plan"]

    def done(self, plan: Any) -> Any:
        """The plan once it is over; it must be done."""

        def over() -> bool:
            try:
                now = self.shown(plan)
            except Exception:  # noqa: BLE001 - the service is killed in between
                return False
            assert now["state"] != "paused", now
            return str(now["state"]) == "done"

        eventually(over, f"plan {plan['id']} is done", SECONDS)
        found = self.shown(plan)
        assert {one["state"] for one in found["moves"]} <= {"done"}, found
        return found


@pytest.fixture
def plans(operator: Operator) -> Plans:
    return Plans(operator)


@contextmanager
def kept_apart(operator: Operator, *groups: tuple[str, ...]) -> Iterator[None]:
    """Look from outside, all the while, that no two servers of a group are on one host."""
    over, broken = threading.Event(), list[str]()

    def look() -> None:
        while not over.is_set():
            for group in groups:
                hosts = [operator.host(one) for one in group]
                if len(set(hosts)) < len(hosts):
                    broken.append(f"{group} on {hosts}")
            time.sleep(0.2)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()
    assert not broken, broken[:3]


def members(demo: Tenant, count: int) -> tuple[str, tuple[str, ...]]:
    """An ensemble of servers that are to be on different hosts, and its servers."""
    held = demo.hold({"name": "a", "count": count, "flavor": "m1.small"}, policies=[APART])
    servers = demo.boot(flavor_of(demo, held), min_count=count, max_count=count)
    demo.built(*servers)
    demo.native("POST", f"/decisions/{held['id']}/confirm", {})
    return held["ensemble"], tuple(servers)


def settled(operator: Operator, *servers: str) -> None:
    """Each server has just its own allocations, on the host where it is; Nova agrees."""
    for one in servers:
        eventually(
            lambda one=one: operator.allocations(one) == {operator.host(one): SMALL},  # type: ignore[misc]
            f"{one} has its own allocations only",
        )
    audit(operator)


def test_a_compute_is_drained_with_members_a_server_group_and_strangers(
    cloud: Cloud, operator: Operator, demo: Tenant, plans: Plans
) -> None:
    _, pair = members(demo, 2)
    group = demo.nova.create_server_group(name="g", policy="anti-affinity")
    try:
        hint = {"group": group.id}
        grouped = tuple(demo.boot("m1.small", hints=hint)[0] for _ in range(2))
        strangers = tuple(demo.boot("m1.small", min_count=2, max_count=2))
        demo.built(*grouped, *strangers)
        host = operator.host(pair[0])
        plan = plans.made("drain", hosts=[host])
        there = {one for one in (*pair, *grouped, *strangers) if operator.host(one) == host}
        assert {one["server"] for one in plan["moves"]} == there
        assert not plan["unmoved"]
        let_nova_api_find_placement(operator)
        with kept_apart(operator, pair, grouped), killed_after(cloud, 1.0):
            plans.apply(plan)
            time.sleep(4)
            plans.done(plan)
        servers = (*pair, *grouped, *strangers)
        demo.built(*servers)
        assert host not in {operator.host(one) for one in servers}
        planned = {one["server"]: one["target_name"] for one in plan["moves"]}
        assert {one: operator.host(one) for one in planned} == planned
        settled(operator, *servers)
        assert operator.usages()[host] == {}
    finally:
        demo.nova.delete_server_group(group.id)


def test_a_failed_compute_is_evacuated_into_places_that_are_held(
    cloud: Cloud, operator: Operator, demo: Tenant, plans: Plans
) -> None:
    _, pair = members(demo, 2)
    [stranger] = demo.boot("m1.small")
    demo.built(stranger)
    host = operator.host(pair[0])
    lost = {one for one in (*pair, stranger) if operator.host(one) == host}
    cloud.program(host).kill()
    [service] = operator.nova.services(host=host, binary="nova-compute")
    operator.nova.update_service_forced_down(service, forced=True)
    try:
        eventually(lambda: _is_down(plans, host), f"{host} is down")
        plan = plans.made("evacuate", hosts=[host])
        assert {one["server"] for one in plan["moves"]} == lost
        let_nova_api_find_placement(operator)
        with kept_apart(operator, pair), killed_after(cloud, 1.0):
            plans.apply(plan)
            time.sleep(4)
            plans.done(plan)
        planned = {one["server"]: one["target_name"] for one in plan["moves"]}
        assert {one: operator.host(one) for one in planned} == planned
    finally:
        cloud.start(host)
        eventually(lambda: _is_up(operator, service), f"{host} is up")
    settled(operator, *pair, stranger)


def _is_down(plans: Plans, host: str) -> bool:
    hosts = plans.call("GET", "/hosts")["hosts"]
    return any(one["name"] == host and one["state"] == "down" for one in hosts)


def _is_up(operator: Operator, service: Service) -> bool:
    answer = operator.nova.put(
        f"/os-services/{service.id}", json={"forced_down": False}, microversion="2.96"
    )
    if answer.status_code != 200:
        return False
    [found] = operator.nova.services(host=service.host, binary=service.binary)
    return str(found.state) == "up"


def test_what_a_forced_migration_broke_is_repaired(
    cloud: Cloud, operator: Operator, demo: Tenant, plans: Plans
) -> None:
    ensemble, (first, second) = members(demo, 2)
    policy = {"ensemble": {"policies": [{**APART, "on_violation": "report"}]}}
    demo.native("PATCH", f"/ensembles/{ensemble}", policy, generation="*")
    other = operator.host(second)
    forced = {"host": other, "block_migration": "auto", "force": True}
    answer = operator.nova.post(
        f"/servers/{first}/action", json={"os-migrateLive": forced}, microversion="2.60"
    )
    assert answer.status_code == 202, answer.text
    demo.built(first)
    assert operator.host(first) == other
    plan = plans.made("repair", ensemble=ensemble)
    assert (len(plan["moves"]), plan["lower_bound"]) == (1, 1)
    let_nova_api_find_placement(operator)
    with killed_after(cloud, 0.6):
        plans.apply(plan)
        time.sleep(3)
        plans.done(plan)
    assert operator.host(first) != operator.host(second)
    settled(operator, first, second)


def test_a_cold_migration_is_confirmed(operator: Operator, demo: Tenant, plans: Plans) -> None:
    [server] = demo.boot("m1.small")
    demo.built(server)
    host = operator.host(server)
    plan = plans.made("drain", hosts=[host], cold=True)
    plans.apply(plan)
    plans.done(plan)
    demo.built(server)
    assert operator.host(server) != host
    settled(operator, server)
