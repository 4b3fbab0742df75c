"""Servers of ordinary clients take held places by the flavor of their role."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.minicloud.moves import cold_migrate, evacuate, live_migrate, resize_and_revert, shelve
from tests.minicloud.tenant import Operator, Tenant, eventually

DB = {"name": "db", "count": 3, "flavor": "m1.large"}
APART = {"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "host"}


def places(operator: Operator, decision: str) -> dict[str, str]:
    """Hosts by the member's name, as only an operator sees them."""
    url = operator.cloud.layout.url("moorage", f"/v1/decisions/{decision}")
    found = operator.connection.session.get(url).json()["decision"]["assignments"]
    return {one["member"]: one["host"] for one in found}


XLARGE = {"VCPU": 8, "MEMORY_MB": 16_384, "DISK_GB": 160}


def flavor_of(tenant: Tenant, held: dict[str, Any]) -> str:
    """The id of the only role's flavor, once Moorage has created it in Nova."""
    [flavor] = held["ticket_flavors"]
    has_flavor(tenant, flavor["id"], expected=True)
    return str(flavor["id"])


def has_flavor(tenant: Tenant, flavor: str, *, expected: bool) -> None:
    def is_as_expected() -> bool:
        listed = tenant.nova.flavors(details=False, is_public=None)
        return (flavor in {one.id for one in listed}) is expected

    eventually(is_as_expected, f"flavor {flavor} is {'there' if expected else 'gone'}")


def test_one_request_takes_exactly_the_held_places(operator: Operator, demo: Tenant) -> None:
    held = demo.hold(DB, policies=[APART])
    servers = demo.boot(flavor_of(demo, held), min_count=3, max_count=3)
    demo.built(*servers)
    assert sorted(map(operator.host, servers)) == sorted(places(operator, held["id"]).values())
    for one in servers:
        assert operator.allocations(one) == {
            operator.host(one): {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 80}
        }
    taken = demo.members(held["ensemble"])
    assert {one["server_id"] for one in taken.values()} == set(servers)
    assert {one["status"] for one in taken.values()} == {"active"}


def test_another_project_neither_sees_nor_uses_the_flavor(demo: Tenant, neighbour: Tenant) -> None:
    flavor = flavor_of(demo, demo.hold(DB))
    assert flavor not in {one.id for one in neighbour.nova.flavors(details=False)}
    body = {
        "server": {
            "name": "x",
            "flavorRef": flavor,
            "imageRef": neighbour.image,
            "networks": "none",
        }
    }
    answer = neighbour.nova.post("/servers", json=body, microversion="2.96")
    assert answer.status_code == 400, answer.text


def test_twelve_builds_for_ten_places(operator: Operator, demo: Tenant) -> None:
    held = demo.hold({"name": "web", "count": 10, "flavor": "m1.small"})
    flavor = flavor_of(demo, held)
    with ThreadPoolExecutor(12) as pool:
        created = list(pool.map(lambda number: demo.boot(flavor, f"web{number}"), range(12)))
    servers = [one for [one] in created]
    eventually(lambda: all(demo.status(one) != "BUILD" for one in servers), "no server builds", 240)
    ends = Counter(demo.status(one) for one in servers)
    assert ends == {"ACTIVE": 10, "ERROR": 2}
    active = [one for one in servers if demo.status(one) == "ACTIVE"]
    assert sorted(map(operator.host, active)) == sorted(places(operator, held["id"]).values())
    assert {one["server_id"] for one in demo.members(held["ensemble"]).values()} == set(active)


def test_one_request_for_more_servers_than_places_builds_none(demo: Tenant) -> None:
    """Nova's `min_count` is about quotas alone: its scheduler places all or none."""
    held = demo.hold(DB)
    flavor = flavor_of(demo, held)
    servers = demo.boot(flavor, min_count=3, max_count=4)
    demo.built(*servers, expected="ERROR")
    assert len(servers) == 4
    held_again = {one["status"] for one in demo.members(held["ensemble"]).values()}
    assert held_again == {"held"}
    demo.built(*demo.boot(flavor, min_count=3, max_count=3))


def test_who_presents_nothing_never_gets_a_held_place(operator: Operator, demo: Tenant) -> None:
    # Three of sixteen GB fit on each of three hosts.
    held = demo.hold({"name": "all", "count": 9, "flavor": "m1.xlarge"})
    [stranger] = demo.boot("m1.xlarge", "stranger")
    demo.built(stranger, expected="ERROR")
    servers = demo.boot(flavor_of(demo, held), min_count=9, max_count=9)
    demo.built(*servers)
    assert Counter(map(operator.host, servers)) == dict.fromkeys(operator.cloud.layout.computes, 3)


def test_a_failed_build_gives_its_place_back(demo: Tenant) -> None:
    held = demo.hold({"name": "one", "count": 1, "flavor": "m1.small"})
    flavor = flavor_of(demo, held)
    [failed] = demo.boot(flavor, metadata={"minicloud:fail": "*"})
    demo.built(failed, expected="ERROR")
    eventually(
        lambda: demo.members(held["ensemble"])["one[0]"]["status"] == "held", "the place is held"
    )
    demo.built(*demo.boot(flavor))
    assert demo.members(held["ensemble"])["one[0]"]["status"] == "active"


def test_confirm_deletes_the_flavor_and_servers_move_on_as_any_others(
    operator: Operator, demo: Tenant
) -> None:
    held = demo.hold({"name": "big", "count": 1, "flavor": "m1.xlarge"})
    flavor = flavor_of(demo, held)
    [server] = demo.boot(flavor)
    demo.built(server)
    demo.native("POST", f"/decisions/{held['id']}/confirm")
    has_flavor(demo, flavor, expected=False)
    for move in (live_migrate, cold_migrate, resize_and_revert, shelve, evacuate):
        move(operator, demo, server)
        assert operator.allocations(server) == {operator.host(server): XLARGE}, move.__name__
