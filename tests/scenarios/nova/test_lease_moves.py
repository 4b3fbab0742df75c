"""Servers of a lease that go, move and come together: the lease's places stay the lease's."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from tests.scenarios.nova.conftest import Cloud, new
from tests.scenarios.nova.leased import XLARGE, Leased, grant, leased

from moorage.domain.bookings import BookingState
from moorage.domain.leases import LeaseState
from moorage.domain.period import HOUR

__all__ = ["leased"]


def host_of(cloud: Cloud, consumer: str) -> str | None:
    """The one host a consumer has allocations on, if any."""
    hosts = list(cloud.nova.allocations(consumer)["allocations"])
    assert len(hosts) < 2
    return hosts[0] if hosts else None


def end_of(cloud: Cloud, consumer: str) -> int:
    (end,) = {one.period.end for _, one in cloud.store.bookings(consumer=consumer)}
    return end


def move_allocations(cloud: Cloud, source: str, target: str) -> Any:
    """Nova's report client: read both, write both in one POST."""
    had, has = cloud.nova.allocations(source), cloud.nova.allocations(target)
    owner = {"project_id": had["project_id"], "user_id": had["user_id"]}
    body = {
        source: {"allocations": {}, "consumer_generation": had["consumer_generation"], **owner},
        target: {
            "allocations": had["allocations"],
            "consumer_generation": has.get("consumer_generation"),
            **owner,
        },
    }
    return cloud.nova.call("POST", "/allocations", body)


# --- going --------------------------------------------------------------------------------------


def deleted(cloud: Cloud, server: str) -> Any:
    return cloud.nova.call("DELETE", f"/allocations/{server}")


def emptied(cloud: Cloud, server: str) -> Any:
    """As Nova deletes what it wants to be sure of."""
    body = {**cloud.nova.allocations(server), "allocations": {}}
    return cloud.nova.call("PUT", f"/allocations/{server}", body)


@pytest.mark.parametrize("leave", [deleted, emptied], ids=["delete", "put"])
def test_a_deleted_servers_place_is_the_leases_again(
    cloud: Cloud, leased: Leased, leave: Any
) -> None:
    server = leased.boot()
    host = host_of(cloud, server)
    assert leave(cloud, server).status_code == 204
    assert host_of(cloud, server) is None
    assert leased.left.remaining == 3
    assert leased.servers() == [None, None, None]
    assert set(leased.hosts()) == {host, *leased.hosts()}
    assert len(leased.candidates()) == 3
    again = [leased.boot() for _ in range(3)]
    assert leased.left.claimed == len(again)


def test_a_place_is_free_for_all_once_the_lease_is_not_active(cloud: Cloud, leased: Leased) -> None:
    server = leased.boot()
    host = host_of(cloud, server)
    assert host is not None
    leased.put(state=LeaseState.ENDING)
    assert deleted(cloud, server).status_code == 204
    assert leased.left.remaining == 2
    assert host not in leased.hosts()


def test_what_expired_does_not_come_back(cloud: Cloud) -> None:
    leased = grant(cloud, expiry=HOUR)
    server = leased.boot()
    cloud.clock.pass_by(2 * HOUR)
    assert deleted(cloud, server).status_code == 204
    assert (leased.left.remaining, leased.left.claimed) == (0, 0)


# --- moving -------------------------------------------------------------------------------------


def test_a_migration_keeps_the_end_and_the_number_of_places(cloud: Cloud, leased: Leased) -> None:
    server, migration = leased.boot(), new()
    source = host_of(cloud, server)
    ends = leased.lease.terms.occupied.end
    assert move_allocations(cloud, server, migration).status_code == 204
    assert (host_of(cloud, server), host_of(cloud, migration)) == (None, source)
    assert end_of(cloud, migration) == ends
    (candidate, *_) = leased.candidates()
    assert cloud.nova.claim_resources(server, candidate).status_code == 204
    target = host_of(cloud, server)
    assert target not in {None, source}
    assert leased.left.remaining == 1
    assert deleted(cloud, migration).status_code == 204
    assert (leased.left.claimed, leased.left.remaining) == (1, 2)
    assert source in leased.hosts()
    assert target not in leased.hosts()
    assert leased.servers().count(server) == 1


def test_a_reverted_migration_gives_the_target_back(cloud: Cloud, leased: Leased) -> None:
    server, migration = leased.boot(), new()
    source = host_of(cloud, server)
    assert move_allocations(cloud, server, migration).status_code == 204
    assert cloud.nova.claim_resources(server, leased.candidates()[0]).status_code == 204
    target = host_of(cloud, server)
    assert move_allocations(cloud, migration, server).status_code == 204
    assert (host_of(cloud, server), host_of(cloud, migration)) == (source, None)
    assert end_of(cloud, server) == leased.lease.terms.occupied.end
    assert (leased.left.claimed, leased.left.remaining) == (1, 2)
    assert set(leased.hosts()) - {source} == set(leased.hosts())
    assert target in leased.hosts()


def test_a_migration_that_finds_no_place_goes_back(cloud: Cloud, leased: Leased) -> None:
    servers, migration = [leased.boot() for _ in range(3)], new()
    source = host_of(cloud, servers[0])
    assert move_allocations(cloud, servers[0], migration).status_code == 204
    assert leased.candidates() == []
    assert move_allocations(cloud, migration, servers[0]).status_code == 204
    assert host_of(cloud, servers[0]) == source
    assert (leased.left.claimed, leased.left.remaining) == (3, 0)


def test_an_evacuated_server_has_both_places_for_a_while(cloud: Cloud, leased: Leased) -> None:
    server = leased.boot()
    source = host_of(cloud, server)
    assert source is not None
    (candidate, *_) = leased.candidates()
    (target,) = candidate["allocations"]
    both = {source: {"resources": XLARGE}, **candidate["allocations"]}
    doubled = {"allocations": both, "mappings": candidate["mappings"]}
    assert cloud.nova.claim_resources(server, doubled, generation=1).status_code == 204
    assert set(cloud.nova.allocations(server)["allocations"]) == {source, target}
    now = cloud.nova.allocations(server)
    del now["allocations"][source]
    assert cloud.nova.call("PUT", f"/allocations/{server}", now).status_code == 204
    assert host_of(cloud, server) == target
    assert (leased.left.claimed, leased.left.remaining) == (1, 2)
    assert source in leased.hosts()


def test_a_port_that_is_attached_later_does_not_disturb(cloud: Cloud, leased: Leased) -> None:
    server = leased.boot()
    host = host_of(cloud, server)
    body = cloud.nova.allocations(server)
    body["allocations"][host]["resources"]["VCPU"] -= 1
    assert cloud.nova.call("PUT", f"/allocations/{server}", body).status_code == 204
    assert end_of(cloud, server) == leased.lease.terms.occupied.end
    assert deleted(cloud, server).status_code == 204
    assert leased.left.remaining == 3


def test_one_post_may_take_several_places(cloud: Cloud, leased: Leased) -> None:
    owner = {"project_id": "project-a", "user_id": "ann", "consumer_generation": None}
    servers = [new(), new()]
    found = leased.candidates()
    body = {one: {**candidate, **owner} for one, candidate in zip(servers, found, strict=False)}
    assert cloud.nova.call("POST", "/allocations", body).status_code == 204
    assert (leased.left.claimed, leased.left.remaining) == (2, 1)
    swap = {
        servers[0]: {**owner, "allocations": {}, "consumer_generation": 1},
        new(): {**leased.candidates()[0], **owner},
    }
    assert cloud.nova.call("POST", "/allocations", swap).status_code == 204
    assert (leased.left.claimed, leased.left.remaining) == (2, 1)


# --- coming together -----------------------------------------------------------------------------


def create(cloud: Cloud, leased: Leased, start: Barrier) -> str | None:
    """As Nova's scheduler: ask, then try host after host; None where none was valid."""
    server = new()
    start.wait(timeout=60)
    for _ in range(3):
        for candidate in leased.candidates():
            answer = cloud.nova.claim_resources(server, candidate)
            if answer.status_code == 204:
                return server
            assert answer.status_code == 409, answer.text
            if answer.json()["errors"][0]["code"] != "placement.undefined_code":
                break
    return None


@pytest.mark.parametrize("policy", ["anti-affinity", "affinity"])
def test_of_twice_as_many_servers_as_places_each_place_gets_one(cloud: Cloud, policy: str) -> None:
    places = 5 if policy == "anti-affinity" else 2
    leased = grant(cloud, places, policies=[{"type": policy, "members": ["db"], "level": "host"}])
    hosts = leased.hosts()
    start = Barrier(2 * places)
    with ThreadPoolExecutor(2 * places) as threads:
        made = [threads.submit(create, cloud, leased, start) for _ in range(2 * places)]
    won = [server for one in made if (server := one.result()) is not None]
    assert len(won) == places
    assert sorted(leased.servers()) == sorted(won)  # type: ignore[type-var]  # none is None
    assert (leased.left.claimed, leased.left.remaining) == (places, 0)
    taken: dict[str, int] = {}
    for server in won:
        host = host_of(cloud, server)
        assert host is not None
        taken[host] = taken.get(host, 0) + 1
    assert taken == hosts
    claims = cloud.store.claims(decision_id=leased.lease.decision_id)
    assert sorted(one.server_id or "" for one in claims) == sorted(won)


def test_servers_that_come_and_go_at_once_leave_every_place_where_it_was(cloud: Cloud) -> None:
    leased = grant(cloud, 4)
    hosts = leased.hosts()
    start = Barrier(4)

    def churn(_: int) -> None:
        start.wait(timeout=60)
        for _ in range(3):
            server = create(cloud, leased, Barrier(1))
            if server is not None:
                assert deleted(cloud, server).status_code == 204

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(churn, range(4)))
    assert leased.hosts() == hosts
    assert (leased.left.claimed, leased.left.remaining) == (0, 4)
    for _, booking in cloud.store.bookings(decision=leased.lease.decision_id):
        assert booking.state is BookingState.RESERVED
