"""Nova moves servers of an ensemble: only to hosts that keep its policies."""

import re
from collections.abc import Callable

import pytest
from tests.minicloud.moves import cold_migrate, evacuate, live_migrate, resize, shelve
from tests.minicloud.tenant import Operator, Tenant
from tests.minicloud.test_ticket_flavors import flavor_of

APART = {"name": "apart", "type": "anti-affinity", "members": ["a"], "level": "host"}
Move = Callable[[Operator, Tenant, str], None]


def running(demo: Tenant) -> tuple[str, str]:
    """Two servers that are to be on different hosts of the three."""
    held = demo.hold({"name": "a", "count": 2, "flavor": "m1.small"}, policies=[APART])
    servers = demo.boot(flavor_of(demo, held), min_count=2, max_count=2)
    demo.built(*servers)
    demo.native("POST", f"/decisions/{held['id']}/confirm", {})
    first, second = servers
    return first, second


def larger(operator: Operator, tenant: Tenant, server: str) -> None:
    """To another host or a larger place on the same."""
    resize(operator, tenant, server, "r1.xlarge")


@pytest.mark.parametrize("move", [live_migrate, cold_migrate, shelve, evacuate, larger])
def test_whatever_nova_does_the_two_stay_apart(
    operator: Operator, demo: Tenant, move: Move
) -> None:
    first, second = running(demo)
    for server in (first, second):
        move(operator, demo, server)
        assert operator.host(first) != operator.host(second)


def test_servers_of_a_role_of_another_flavor_are_resized_to_it(
    operator: Operator, demo: Tenant
) -> None:
    held = demo.hold({"name": "a", "count": 2, "flavor": "m1.small"}, policies=[APART])
    servers = demo.boot(flavor_of(demo, held), min_count=2, max_count=2)
    demo.built(*servers)
    demo.native("POST", f"/decisions/{held['id']}/confirm", {})
    path = f"/ensembles/{held['ensemble']}"
    body = {"ensemble": {"members": [{"name": "a", "flavor": "m1.medium"}]}}
    assert demo.native("PATCH", path, body, generation="*")["to_resize"] == ["a[0]", "a[1]"]
    for server in servers:
        resize(operator, demo, server, "m1.medium")
    for server in servers:
        [amounts] = operator.allocations(server).values()
        assert {amounts["VCPU"], amounts["MEMORY_MB"], amounts["DISK_GB"]} == {2, 4_096, 40}
    assert len(set(map(operator.host, servers))) == 2
    assert {one["status"] for one in demo.members(held["ensemble"]).values()} == {"active"}


def test_a_move_beside_the_other_is_refused_and_changes_nothing(
    operator: Operator, demo: Tenant
) -> None:
    first, second = running(demo)
    before, other = operator.host(first), operator.host(second)
    allocated = operator.allocations(first)
    told = rf"a\[\d\] of ensemble \w+ would break apart on {other}"
    forced = {"host": other, "block_migration": "auto", "force": True}
    for body, version in (
        ({"os-migrateLive": {"host": other, "block_migration": "auto"}}, "2.96"),
        ({"os-migrateLive": forced}, "2.60"),
        ({"migrate": {"host": other}}, "2.96"),
    ):
        answer = operator.nova.post(f"/servers/{first}/action", json=body, microversion=version)
        assert answer.status_code == 409, answer.text
        assert re.search(told, answer.json()["conflictingRequest"]["message"]), answer.text
    demo.built(first)
    assert operator.host(first) == before
    assert operator.allocations(first) == allocated


def test_without_the_filter_nova_takes_its_next_host(operator: Operator, demo: Tenant) -> None:
    """The request has an id of its own, so that candidates are not narrowed."""
    first, second = running(demo)
    for _ in range(3):
        path = f"/servers/{first}/action"
        body = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
        headers = {"X-Openstack-Request-Id": "req-11111111-2222-4333-8444-555555555555"}
        answer = operator.nova.post(path, json=body, headers=headers, microversion="2.96")
        assert answer.status_code == 202, answer.text
        demo.built(first)
        assert operator.host(first) != operator.host(second)
