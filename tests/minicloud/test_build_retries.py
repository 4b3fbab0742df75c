"""Nova retries failed builds of servers that present a claim: on hosts that keep the policies."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.minicloud.tenant import Operator, Tenant, eventually
from tests.minicloud.test_ticket_flavors import places

WEB = {"name": "web", "count": 2, "flavor": "m1.small"}
APART = {"name": "apart", "type": "anti-affinity", "members": ["web"], "level": "host"}


def failing(demo: Tenant, held: dict[str, Any], hosts: dict[str, str]) -> dict[str, str]:
    """Servers by their members, created at once; each build fails on the host that is decided."""

    def boot(member: str) -> str:
        [server] = demo.boot(
            "m1.small",
            member,
            hints={"moorage": f"{held['name']}/{member}"},
            metadata={"minicloud:fail": hosts[member]},
        )
        return server

    with ThreadPoolExecutor(len(hosts)) as pool:
        return dict(zip(hosts, pool.map(boot, hosts), strict=True))


def test_a_build_that_fails_ends_active_elsewhere(operator: Operator, demo: Tenant) -> None:
    held = demo.hold({**WEB, "count": 1})
    before = places(operator, held["id"])
    [(member, server)] = failing(demo, held, before).items()
    demo.built(server)
    host = operator.host(server)
    assert host != before[member]
    assert list(operator.allocations(server)) == [host]
    shown = demo.members(held["ensemble"])[member]
    assert (shown["status"], shown["server_id"]) == ("active", server)
    assert places(operator, held["id"])[member] == host
    demo.native("POST", f"/decisions/{held['id']}/confirm")
    assert demo.members(held["ensemble"])[member]["server_id"] == server


def test_two_that_fail_at_once_both_end_active(operator: Operator, demo: Tenant) -> None:
    held = demo.hold(WEB)
    before = places(operator, held["id"])
    servers = failing(demo, held, before)
    demo.built(*servers.values())
    after = {member: operator.host(server) for member, server in servers.items()}
    assert all(after[member] != before[member] for member in servers)
    shown = demo.members(held["ensemble"])
    assert {name: one["server_id"] for name, one in shown.items()} == servers
    assert places(operator, held["id"]) == after


def test_two_that_fail_at_once_stay_apart(operator: Operator, demo: Tenant) -> None:
    """One host of the three is left for both of them."""
    held = demo.hold(WEB, policies=[APART])
    before = places(operator, held["id"])
    servers = failing(demo, held, before)
    eventually(lambda: all(demo.status(one) != "BUILD" for one in servers.values()), "ends", 180)
    active = {name: one for name, one in servers.items() if demo.status(one) == "ACTIVE"}
    assert active
    hosts = [operator.host(one) for one in active.values()]
    assert len(set(hosts)) == len(hosts)
    shown = demo.members(held["ensemble"])
    assert {name: one["server_id"] for name, one in shown.items() if one["server_id"]} == active
    assert {one["status"] for name, one in shown.items() if name not in active} <= {"held"}


def test_without_a_failure_the_decided_hosts_are_used(operator: Operator, demo: Tenant) -> None:
    """Though each claim has candidates on all hosts, on which Nova's own weighers would spread."""
    held = demo.hold({**WEB, "count": 6}, policies=[{**APART, "type": "affinity"}])
    decided = places(operator, held["id"])
    servers = failing(demo, held, dict.fromkeys(decided, "none"))
    demo.built(*servers.values())
    assert {name: operator.host(one) for name, one in servers.items()} == decided
