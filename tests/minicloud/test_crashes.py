"""Crashes of Moorage and of hosts while Nova works: nothing is lost, nothing leaks."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

import pytest
from tests.minicloud.cloud import Cloud
from tests.minicloud.moves import (
    cold_migrate,
    evacuate,
    live_migrate,
    rebuild,
    resize_and_revert,
    shelve,
)
from tests.minicloud.tenant import Operator, Refused, Tenant, eventually
from tests.minicloud.test_ticket_flavors import flavor_of, places

SMALL = {"VCPU": 1, "MEMORY_MB": 2048, "DISK_GB": 20}
TINY = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
DOWN = 2.0
"""Seconds between a kill and the next start: Nova tries each call for longer."""
Move = Callable[[Operator, Tenant, str], None]


@contextmanager
def killed_after(cloud: Cloud, delay: float) -> Iterator[None]:
    """Kill Moorage so many seconds after the block began, and start it again."""

    def crash() -> None:
        time.sleep(delay)
        cloud.program("moorage").kill()
        time.sleep(DOWN)
        cloud.start("moorage")

    crashing = threading.Thread(target=crash)
    crashing.start()
    try:
        yield
    finally:
        crashing.join()


def let_nova_api_find_placement(operator: Operator) -> None:
    """Make nova-api ask Placement something.

    It looks up the endpoint's versions at its first need of Placement, once: its settings about
    retries do not count there, and the request that met the kill would be answered by 500.
    """
    made = operator.nova.create_aggregate(name=f"asked-{uuid4().hex[:6]}")
    try:
        operator.nova.add_host_to_aggregate(made, "compute1")
        operator.nova.remove_host_from_aggregate(made, "compute1")
    finally:
        operator.nova.delete_aggregate(made)


def audit(operator: Operator, *more: str) -> None:
    """Raises RuntimeError with what `nova-manage placement audit` finds."""
    operator.cloud.manage("nova-manage", "nova", "placement", "audit", "--verbose", *more)


@pytest.mark.parametrize("delay", [0.1, 0.6])
@pytest.mark.parametrize(
    "move", [live_migrate, cold_migrate, resize_and_revert, shelve, evacuate, rebuild]
)
def test_killed_in_the_middle_of_a_move(
    operator: Operator, demo: Tenant, move: Move, delay: float
) -> None:
    held = demo.hold({"name": "a", "count": 1, "flavor": "m1.small"})
    [server] = demo.boot(flavor_of(demo, held))
    demo.built(server)
    demo.native("POST", f"/decisions/{held['id']}/confirm")
    let_nova_api_find_placement(operator)
    with killed_after(operator.cloud, delay):
        move(operator, demo, server)
    eventually(
        lambda: operator.allocations(server) == {operator.host(server): SMALL},
        "the server has its place and nothing else",
    )
    assert demo.members(held["ensemble"])["a[0]"]["server_id"] == server
    audit(operator)


@pytest.mark.parametrize("delay", [0.1, 0.5, 1.0])
def test_killed_in_the_middle_of_builds_and_deletions(
    operator: Operator, demo: Tenant, delay: float
) -> None:
    held = demo.hold({"name": "web", "count": 6, "flavor": "m1.tiny"})
    hint = {"moorage": f"{held['name']}/web"}
    ticket = flavor_of(demo, held)
    with killed_after(operator.cloud, delay), ThreadPoolExecutor(4) as pool:
        half = pool.submit(demo.boot, ticket, "web", min_count=3, max_count=3)
        servers = half.result()
    servers += [one for _ in range(3) for one in demo.boot("m1.tiny", hints=hint)]
    demo.built(*servers)
    assert sorted(map(operator.host, servers)) == sorted(places(operator, held["id"]).values())
    with killed_after(operator.cloud, delay):
        for one in servers:
            demo.nova.delete_server(one)
    eventually(lambda: not list(demo.nova.servers(details=False)), "the servers are deleted")
    eventually(
        lambda: not any(operator.allocations(one) for one in servers), "nothing is allocated"
    )
    audit(operator)


def test_sixty_creates_at_once(operator: Operator, demo: Tenant) -> None:
    held = demo.hold({"name": "web", "count": 60, "flavor": "m1.tiny"})
    hint = {"moorage": f"{held['name']}/web"}

    def create(number: int) -> str:
        """Again, where a busy machine made Moorage or Keystone answer too late."""
        while True:
            try:
                [server] = demo.boot("m1.tiny", f"web{number}", hints=hint)
            except Refused as refused:
                if refused.status != 503:
                    raise
            else:
                return server

    with ThreadPoolExecutor(60) as pool:
        servers = list(pool.map(create, range(60)))
    demo.built(*servers, seconds=600)
    assert sorted(map(operator.host, servers)) == sorted(places(operator, held["id"]).values())
    assert {one["server_id"] for one in demo.members(held["ensemble"]).values()} == set(servers)


def test_nova_heals_what_an_operator_broke_and_finds_what_has_no_server(
    operator: Operator, demo: Tenant
) -> None:
    held = demo.hold({"name": "a", "count": 1, "flavor": "m1.small"})
    [server] = demo.boot(flavor_of(demo, held))
    demo.built(server)
    demo.native("POST", f"/decisions/{held['id']}/confirm")
    placement = operator.connection.placement
    placement.delete(f"/allocations/{server}").raise_for_status()
    operator.cloud.manage(
        "nova-manage", "nova", "placement", "heal_allocations", "--instance", server
    )
    assert operator.allocations(server) == {operator.host(server): SMALL}
    assert demo.members(held["ensemble"])["a[0]"]["server_id"] == server

    orphan = "11111111-2222-4333-8444-555555555555"
    host = next(one for one in placement.resource_providers() if one.name == operator.host(server))
    body = {
        "allocations": {host.id: {"resources": TINY}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    path = f"/allocations/{orphan}"
    placement.put(path, json=body, microversion="1.38").raise_for_status()
    with pytest.raises(RuntimeError, match=orphan):
        audit(operator)
    with pytest.raises(RuntimeError, match="Processed 1 allocation"):
        audit(operator, "--delete")
    assert operator.allocations(orphan) == {}
    audit(operator)
    assert operator.allocations(server) == {operator.host(server): SMALL}


def test_a_host_is_deleted_under_a_hold(operator: Operator, demo: Tenant) -> None:
    """Nova deletes its service and provider; the places there are decided anew on other hosts."""
    apart = {"name": "apart", "type": "anti-affinity", "members": ["a"], "level": "host"}
    held = demo.hold({"name": "a", "count": 2, "flavor": "m1.small"}, policies=[apart])
    host, other = places(operator, held["id"]).values()
    [service] = operator.nova.services(host=host, binary="nova-compute")
    operator.cloud.program(host).kill()
    try:
        operator.nova.delete_service(service)
        (third,) = {*operator.cloud.layout.computes} - {host, other}
        eventually(lambda: _hosts(operator, demo, held) == {third, other}, "decided anew")
        hint = {"moorage": f"{held['name']}/a"}
        servers = [one for _ in range(2) for one in demo.boot("m1.small", hints=hint)]
        demo.built(*servers)
        assert {operator.host(one) for one in servers} == {third, other}
    finally:
        operator.cloud.start(host)
        eventually(lambda: _is_up(operator, host), f"{host} is up", 180)
    eventually(lambda: host in operator.usages(), f"{host} is in Placement again")


def _hosts(operator: Operator, demo: Tenant, held: dict[str, str]) -> set[str]:
    """The hosts of the ensemble's decision in force."""
    shown = demo.native("GET", f"/ensembles/{held['ensemble']}")["ensemble"]["decision"]
    return set(places(operator, shown["id"]).values())


def _is_up(operator: Operator, host: str) -> bool:
    found = list(operator.nova.services(host=host, binary="nova-compute"))
    return [one.state for one in found] == ["up"]
