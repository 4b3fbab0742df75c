"""Servers join a server group that was declared without members, as they come."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.nova_filter.test_hints import OTHER, TENANT, Cloud, cloud

from moorage.client.discovery import OPERATOR_TOKEN
from moorage.domain.server_groups import JOINABLE
from moorage.nova_filter.hints import JOINABLE as FILTERED

__all__ = ["cloud"]

SERVICE = {
    "X-Auth-Token": OPERATOR_TOKEN,
    "X-Roles": "admin,service",
    "OpenStack-API-Version": "placement 1.36",
}
SMALL = "VCPU:1,MEMORY_MB:2048,DISK_GB:20"


def declared(cloud: Cloud, policy: str = "anti-affinity") -> str:
    """The id of a group that a client of Nova's has declared."""
    made = cloud.moorage.simulate_post(
        "/compute/v2.1/os-server-groups",
        json={"server_group": {"name": "web", "policy": policy}},
        headers={**TENANT, "OpenStack-API-Version": "compute 2.64"},
    )
    assert made.status_code == 200, made.text
    return str(made.json["server_group"]["id"])


def joined(cloud: Cloud, group: str, flavor: str = "m1.small", **more: Any) -> str:
    """The id of the claim of a server that was created in the group."""
    assert cloud.boot({"group": group}, flavorRef=flavor, **more) == (202, {})
    hints = cloud.nova.seen[-1]["os:scheduler_hints"]
    assert hints.keys() == {"moorage", "moorage_claim"}
    return str(hints["moorage_claim"])


def built(cloud: Cloud, claim: str, number: int) -> str:
    """The host that Nova finds for the claim's server, and gives it."""
    headers = {**SERVICE, "X-Openstack-Request-Id": f"req-{claim}"}
    path = f"/placement/allocation_candidates?limit=1000&resources={SMALL}"
    [found] = cloud.moorage.simulate_get(path, headers=headers).json["allocation_requests"]
    body = {**found, "project_id": "shop", "user_id": "ann", "consumer_generation": None}
    path = f"/placement/allocations/aaaaaaaa-0000-4000-8000-{number:012d}"
    assert cloud.moorage.simulate_put(path, json=body, headers=headers).status_code == 204
    [host] = found["allocations"]
    return str(host)


def places(cloud: Cloud, group: str) -> dict[str, str]:
    found = cloud.call("GET", f"/ensembles/{group}/members")["members"]
    return {one["name"]: one["status"] for one in found}


def test_the_filter_has_the_words_of_the_service() -> None:
    assert FILTERED == JOINABLE


def test_each_server_joins_with_earlier_ones_in_view(cloud: Cloud) -> None:
    group = declared(cloud)
    hosts = {built(cloud, joined(cloud, group), number) for number in range(3)}
    assert len(hosts) == 3
    joined(cloud, group, "m1.xlarge")
    assert places(cloud, group) == {
        **{f"m1.small[{number}]": "active" for number in range(3)},
        "m1.xlarge[0]": "building",
    }
    path = f"/compute/v2.1/os-server-groups/{group}"
    shown = cloud.moorage.simulate_get(path, headers=TENANT).json["server_group"]
    assert len(shown["members"]) == 3


def test_a_group_that_is_full_says_so_at_once(cloud: Cloud) -> None:
    group = declared(cloud)
    hosts: set[str] = set()
    while (answer := cloud.boot({"group": group}, flavorRef="m1.small"))[0] == 202:
        claim = cloud.nova.seen[-1]["os:scheduler_hints"]["moorage_claim"]
        hosts.add(built(cloud, claim, len(hosts)))
        assert len(hosts) == len(cloud.nova.seen) <= 9
    assert answer[0] == 409
    assert "anti-affinity" in answer[1]["conflictingRequest"]["message"]
    assert list(places(cloud, group).values()) == ["active"] * len(hosts)


def test_servers_at_once_get_a_place_each(cloud: Cloud) -> None:
    group = declared(cloud)
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(lambda _: cloud.boot({"group": group}, flavorRef="m1.small"), range(6))
        )
    assert answers == [(202, {})] * 6
    claims = {one["os:scheduler_hints"]["moorage_claim"] for one in cloud.nova.seen}
    assert len({built(cloud, claim, number) for number, claim in enumerate(claims)}) == 6
    assert list(places(cloud, group).values()) == ["active"] * 6


def described(cloud: Cloud, group: str, role: dict[str, Any], hold: str) -> None:
    body = {"member": {"role": {"flavor": "m1.small", **role}, "decide": {"hold": hold}}}
    cloud.call("POST", f"/ensembles/{group}/members", body)


def test_members_that_were_described_and_held_are_taken_first(cloud: Cloud) -> None:
    """Their role has another name than the flavor; the policy has no room for further members."""
    group = declared(cloud)
    described(cloud, group, {"name": "web", "count": 2}, "PT10M")
    hosts = {built(cloud, joined(cloud, group), number) for number in range(2)}
    assert len(hosts) == 2
    assert places(cloud, group) == {"web[0]": "active", "web[1]": "active"}
    built(cloud, joined(cloud, group), 2)
    assert places(cloud, group) == {
        **{f"web[{number}]": "active" for number in range(2)},
        "m1.small[0]": "active",
    }


def test_described_members_whose_holds_lapsed_are_placed_again(cloud: Cloud) -> None:
    group = declared(cloud)
    described(cloud, group, {"name": "web", "count": 2}, "PT1M")
    cloud.clock.pass_by(600 * 1_000_000)
    assert set(places(cloud, group).values()) == {"unplaced"}
    built(cloud, joined(cloud, group), 0)
    assert sorted(places(cloud, group).values()) == ["active", "held"]
    built(cloud, joined(cloud, group), 1)
    assert places(cloud, group) == {"web[0]": "active", "web[1]": "active"}


def test_two_that_join_at_once_share_places_that_are_held_again(cloud: Cloud) -> None:
    group = declared(cloud)
    described(cloud, group, {"name": "web", "count": 2}, "PT1M")
    cloud.clock.pass_by(600 * 1_000_000)
    with ThreadPoolExecutor(2) as pool:
        answers = list(
            pool.map(lambda _: cloud.boot({"group": group}, flavorRef="m1.small"), range(2))
        )
    assert answers == [(202, {})] * 2
    assert places(cloud, group) == {"web[0]": "building", "web[1]": "building"}


def test_places_for_servers_of_another_kind_are_passed_by(cloud: Cloud) -> None:
    """The group's described members boot from volumes, the server that joins does not."""
    group = declared(cloud)
    described(cloud, group, {"name": "web", "count": 2, "boot_from_volume": True}, "PT10M")
    joined(cloud, group)
    assert places(cloud, group) == {
        "web[0]": "held",
        "web[1]": "held",
        "m1.small[0]": "building",
    }


def test_a_server_that_joins_shortens_no_hold(cloud: Cloud) -> None:
    group = declared(cloud)
    described(cloud, group, {"name": "db", "count": 1, "flavor": "m1.xlarge"}, "PT3H")
    joined(cloud, group)
    decision = cloud.call("GET", f"/ensembles/{group}")["ensemble"]["decision"]
    assert decision["expires_at"] == "2026-11-21T12:00:00Z"


def test_what_nova_refuses_leaves_no_member_behind(cloud: Cloud) -> None:
    group = declared(cloud)
    cloud.nova.status = "403 Forbidden"
    assert cloud.boot({"group": group}, flavorRef="m1.small")[0] == 403
    assert places(cloud, group) == {"m1.small[0]": "held"}
    cloud.clock.pass_by(600 * 1_000_000)
    cloud.nova.status = "202 Accepted"
    joined(cloud, group)
    assert list(places(cloud, group).values()) == ["building"]


@pytest.mark.parametrize(
    ("how", "status", "told"),
    [
        ({"flavorRef": "nonesuch"}, 404, "nonesuch"),
        ({"min_count": 2, "max_count": 2}, 400, "one by one"),
        ({"max_count": 2}, 400, "--count N --hold 10m; then create them by its flavor: moorage"),
    ],
)
def test_servers_that_cannot_join(
    cloud: Cloud, how: dict[str, Any], status: int, told: str
) -> None:
    group = declared(cloud)
    found, answer = cloud.boot({"group": group}, **{"flavorRef": "m1.small", **how})
    [fault] = answer.values()
    assert (found, told in fault["message"]) == (status, True), fault
    assert places(cloud, group) == {}


def test_strangers_do_not_join(cloud: Cloud) -> None:
    """Their hint passes, and Nova judges it."""
    group = declared(cloud)
    assert cloud.boot({"group": group}, token=OTHER) == (202, {})
    assert cloud.nova.seen[-1]["os:scheduler_hints"] == {"group": group}
    assert places(cloud, group) == {}
