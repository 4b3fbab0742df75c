"""Many servers at once: each claim is taken by exactly one."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier
from typing import Any

import pytest
from tests.scenarios.nova.conftest import Cloud, new

from moorage.domain.period import HOUR

EIGHT = 8
FLAVORS = {"db": "m1.xlarge", "app": "m1.medium", "web": "m1.small"}
SHAPES = {
    "m1.small": {"VCPU": 1, "MEMORY_MB": 2048, "DISK_GB": 20},
    "m1.medium": {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 40},
    "m1.xlarge": {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 160},
}


def presents(claim: Any) -> str:
    """The request id that the claim's answer tells to send."""
    return str(claim["present_as"]["header"]["X-Openstack-Request-Id"])


def test_of_servers_that_present_one_claim_one_takes_its_place(cloud: Cloud) -> None:
    held = cloud.tenant.hold()
    claim = cloud.tenant.claim(held)
    cloud.nova.fill(cloud.tenant.host_of(claim))
    (candidate,) = cloud.nova.candidates(presents(claim))
    servers = [new() for _ in range(EIGHT)]
    start = Barrier(EIGHT)

    def build(server: str) -> Any:
        start.wait(timeout=60)
        return cloud.nova.claim_resources(server, candidate, presents(claim))

    with ThreadPoolExecutor(EIGHT) as threads:
        answers = dict(zip(servers, threads.map(build, servers), strict=True))
    won = [server for server, answer in answers.items() if answer.status_code == 204]
    assert len(won) == 1
    lost = [answer for answer in answers.values() if answer.status_code != 204]
    assert {answer.status_code for answer in lost} == {409}
    assert {answer.json()["errors"][0]["code"] for answer in lost} == {"placement.undefined_code"}
    assert cloud.tenant.claimed(claim) == ("active", won[0])
    assert all(not cloud.nova.allocations(one)["allocations"] for one in servers if one not in won)


@pytest.mark.parametrize("member", ["db[0]", "db[1]", "db[2]"])
def test_a_server_and_a_failed_build_do_not_both_have_the_place(cloud: Cloud, member: str) -> None:
    claim = cloud.tenant.claim(cloud.tenant.hold(), member)
    cloud.nova.fill(cloud.tenant.host_of(claim))
    (candidate,) = cloud.nova.candidates(presents(claim))
    server, start = new(), Barrier(2)

    def build() -> int:
        start.wait(timeout=60)
        return cloud.nova.claim_resources(server, candidate, presents(claim)).status_code

    def fail() -> int:
        start.wait(timeout=60)
        return cloud.tenant.http.patch(
            f"/v1/claims/{claim['id']}",
            json={"claim": {"status": "failed"}},
            headers={"x-auth-token": "ann:project-a", "x-roles": "member"},
        ).status_code

    with ThreadPoolExecutor(2) as threads:
        built, failed = threads.submit(build), threads.submit(fail)
    # Whoever comes second finds the claim ended. A failed one's place is held again.
    has_failed = failed.result() == 200
    assert built.result() == (409 if has_failed else 204)
    expected = ("failed", None) if has_failed else ("active", server)
    assert cloud.tenant.claimed(claim) == expected
    assert len(cloud.nova.allocations(server)["allocations"]) == (0 if has_failed else 1)


def test_all_members_of_an_ensemble_get_their_servers_at_once(cloud: Cloud) -> None:
    held = cloud.tenant.hold()
    claims = [cloud.tenant.claim(held, f"{role}[{n}]") for role in FLAVORS for n in range(3)]
    for host in {cloud.tenant.host_of(claim) for claim in claims}:
        cloud.nova.fill(host)
    start = Barrier(len(claims))

    def build(claim: Any) -> str:
        shape = SHAPES[FLAVORS[claim["member"].partition("[")[0]]]
        server = new()
        (candidate,) = cloud.nova.candidates(presents(claim), shape)
        start.wait(timeout=60)
        answer = cloud.nova.claim_resources(server, candidate, presents(claim))
        assert answer.status_code == 204, answer.text
        return server

    with ThreadPoolExecutor(len(claims)) as threads:
        servers = list(threads.map(build, claims))
    assert [cloud.tenant.claimed(claim) for claim in claims] == [
        ("active", server) for server in servers
    ]
    path = f"/ensembles/{held['ensemble']['id']}?compliance=true"
    shown = cloud.tenant.call("GET", path)["ensemble"]
    assert shown["compliance"] == []


@pytest.mark.parametrize("looks", range(1, 10))
def test_a_claim_that_lapses_while_its_server_is_written(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    """Whichever look at the clock is the first one after the lapse, the write is whole."""
    claim = cloud.tenant.claim(cloud.tenant.hold())
    cloud.nova.fill(cloud.tenant.host_of(claim))
    (candidate,) = cloud.nova.candidates(presents(claim))
    calm, looked = cloud.clock.now, count(1)
    monkeypatch.setattr(cloud.clock, "now", lambda: calm() + HOUR * (next(looked) >= looks))
    server = new()
    answer = cloud.nova.claim_resources(server, candidate, presents(claim))
    monkeypatch.setattr(cloud.clock, "now", lambda: calm() + HOUR)
    assert answer.status_code == 204, answer.text
    assert cloud.nova.allocations(server)["consumer_generation"] == 1
    in_time = cloud.tenant.claimed(claim) == ("active", server)
    assert in_time or cloud.tenant.claimed(claim) == ("expired", None)
    assert in_time == (cloud.tenant.member(claim)["server_id"] == server)
    assert in_time == (looks > next(looked) - 1), "only a clock that never jumped is in time"


def test_twelve_builds_for_ten_places_by_a_ticket(cloud: Cloud) -> None:
    """Each asks, and tries one candidate after the other, as Nova does with its alternates."""
    role = {"name": "web", "count": 10, "flavor": "m1.small"}
    body = {"name": "web", "members": [role], "decide": {"hold": "PT10M"}}
    made = cloud.tenant.call("POST", "/ensembles", {"ensemble": body})
    (flavor,) = made["decision"]["ticket_flavors"]
    wants = {**SHAPES["m1.small"], flavor["resource_class"]: 1}
    held = [
        booking.provider
        for member in cloud.store.ensemble(made["ensemble"]["id"]).members
        for _, booking in cloud.store.bookings(consumer=member.uuid)
    ]
    builds, start = 12, Barrier(12)

    def build(server: str) -> str | None:
        start.wait(timeout=60)
        for _ in range(builds):  # as often as somebody else may have taken what was seen
            for candidate in cloud.nova.candidates(None, wants):
                answer = cloud.nova.claim_resources(server, candidate)
                if answer.status_code == 204:
                    return str(next(iter(candidate["allocations"])))
                assert answer.status_code == 409, answer.text
        return None

    servers = [new() for _ in range(builds)]
    with ThreadPoolExecutor(builds) as threads:
        found = list(threads.map(build, servers))
    assert sorted(host for host in found if host is not None) == sorted(held)
    members = cloud.store.ensemble(made["ensemble"]["id"]).members
    winners = {server for server, host in zip(servers, found, strict=True) if host is not None}
    assert {one.server_id for one in members} == winners
    confirmed = cloud.tenant.call("POST", f"/decisions/{made['decision']['id']}/confirm")
    assert (confirmed["claimed"], confirmed["released"]) == (10, 0)
