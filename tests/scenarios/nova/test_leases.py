"""An unmodified Nova draws from a lease: by the reservation's class in the flavor, and no more."""

from typing import Any

import pytest
from tests.contract.test_store_bookings import hold
from tests.scenarios.nova.conftest import Cloud, new
from tests.scenarios.nova.leased import XLARGE, Leased, grant, leased

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset
from moorage.domain.decisions import ClaimState
from moorage.domain.leases import LeaseState, reservation_class
from moorage.domain.period import HOUR, MINUTE, Period
from moorage.testing.service import NINE

__all__ = ["leased"]

TOGETHER = {"type": "affinity", "members": ["db"], "level": "host"}
FULL = "The requested amount would exceed the capacity."


def detail(answer: Any) -> str:
    (error,) = answer.json()["errors"]
    assert error["code"] == "placement.undefined_code", "Nova tries the next host"
    return str(error["detail"]).partition("\n\n ")[2].strip()


def test_a_place_on_a_full_host_becomes_the_servers_allocation(
    cloud: Cloud, leased: Leased
) -> None:
    nova, places = cloud.nova, leased.hosts()
    assert len(places) == 3
    assert not set(places) & {uuid for one in nova.candidates() for uuid in one["allocations"]}
    found = leased.candidates()
    assert [one["allocations"] for one in found] == [
        {host: {"resources": leased.wants}} for one in found for host in one["allocations"]
    ]
    assert {host for one in found for host in one["allocations"]} == set(places)
    server, candidate = new(), found[0]
    (host,) = candidate["allocations"]
    assert candidate["mappings"] == {"": [host]}
    before = nova.generation(host)
    answer = nova.claim_resources(server, candidate)
    assert (answer.status_code, answer.content) == (204, b""), answer.text
    assert nova.allocations(server) == {
        "allocations": {host: {"resources": XLARGE, "generation": before + 1}},
        "project_id": "project-a",
        "user_id": "ann",
        "consumer_generation": 1,
    }
    assert nova.generation(host) == before + 1
    assert (leased.left.count, leased.left.claimed, leased.left.remaining) == (3, 1, 2)
    ((_, booking),) = cloud.store.bookings(consumer=server)
    assert booking.state is BookingState.ALLOCATED
    assert booking.period.end == leased.lease.terms.occupied.end
    assert host not in {uuid for one in leased.candidates() for uuid in one["allocations"]}
    (claim,) = cloud.store.claims(decision_id=leased.lease.decision_id)
    assert (claim.state, claim.server_id) == (ClaimState.ACTIVE, server)
    shown = cloud.tenant.call("GET", f"/claims/{claim.id}")["claim"]
    assert (shown["status"], shown["server_id"]) == ("active", server)


def test_each_server_gets_a_place_of_its_own_until_none_is_left(
    cloud: Cloud, leased: Leased
) -> None:
    servers = [leased.boot() for _ in range(3)]
    assert sorted(leased.servers()) == sorted(servers)  # type: ignore[type-var]  # none is None
    assert leased.candidates() == []
    (host,) = cloud.nova.allocations(servers[0])["allocations"]
    late = cloud.nova.claim_resources(
        new(), {"allocations": {host: {"resources": leased.wants}}, "mappings": {"": [host]}}
    )
    reservation = leased.lease.reservations[0].id
    assert (late.status_code, detail(late)) == (
        409,
        f"reservation {reservation} has no place left{remedy(leased)}",
    )


def test_summaries_show_the_class_as_an_inventory_would(cloud: Cloud) -> None:
    leased = grant(cloud, 2, policies=[TOGETHER])
    ((host, places),) = leased.hosts().items()
    assert places == 2

    def shown() -> Any:
        query = f"resources=VCPU:8,{leased.name}:1&in_tree={host}"
        found = cloud.nova.call("GET", f"/allocation_candidates?{query}").json()
        assert len(found["allocation_requests"]) == 1, "places that are alike are one candidate"
        return found["provider_summaries"][host]["resources"]

    before = shown()
    assert before[leased.name] == {"capacity": 2, "used": 0}
    assert before["VCPU"] == {"capacity": 16, "used": 0}, "holds do not show"
    leased.boot()
    after = shown()
    assert (after[leased.name], after["VCPU"]["used"]) == ({"capacity": 2, "used": 1}, 8)


# --- refused, and why -------------------------------------------------------------------------


def remedy(leased: Leased) -> str:
    return f"; to see the lease: moorage lease show {leased.id}"


def refused(leased: Leased, sentence: str, **how: Any) -> None:
    """Nova's PUT on a host is a 409 that says so."""
    answer = write(leased, **how)
    told = sentence.format(
        lease=f"lease {leased.id}, which reservation {leased.lease.reservations[0].id} is of,",
        reservation=f"reservation {leased.lease.reservations[0].id}",
        remedy=remedy(leased),
    )
    assert (answer.status_code, detail(answer)) == (409, told)


def write(leased: Leased, *, amounts: dict[str, int] | None = None, **how: Any) -> Any:
    """Nova's PUT on one of the lease's hosts, or any, though no candidate said so."""
    host = next(iter([*leased.hosts(), *leased.cloud.store.snapshot().uuids]))
    candidate = {
        "allocations": {host: {"resources": amounts or leased.wants}},
        "mappings": {"": [host]},
    }
    return leased.cloud.nova.claim_resources(new(), candidate, **how)


def test_another_projects_server_gets_none(leased: Leased) -> None:
    told = "{reservation} is another project's; to see your own leases: moorage lease list"
    refused(leased, told, project="project-b")
    assert leased.left.remaining == 3


@pytest.mark.parametrize("state", [LeaseState.PENDING, LeaseState.STARTING])
def test_a_lease_that_has_not_begun_gives_none(cloud: Cloud, state: LeaseState) -> None:
    leased = grant(cloud, start=HOUR, lead=10 * MINUTE, state=state)
    assert leased.candidates() == []
    refused(leased, f"{{lease}} is {state}: it begins at 2026-11-21T10:00:00Z{{remedy}}")


def test_a_lease_that_has_ended_gives_none(cloud: Cloud, leased: Leased) -> None:
    leased.put(state=LeaseState.ENDING)
    assert leased.candidates() == []
    refused(leased, "{lease} has ended{remedy}")
    leased.put(state=LeaseState.ACTIVE)
    cloud.clock.pass_by(11 * HOUR)
    assert leased.candidates() == []
    refused(leased, "{lease} has ended{remedy}")


def test_what_nobody_claimed_in_time_is_gone(cloud: Cloud) -> None:
    leased = grant(cloud, expiry=HOUR)
    server = leased.boot()
    cloud.clock.pass_by(HOUR)
    assert leased.candidates() == []
    refused(leased, "{reservation} expired at 2026-11-21T10:00:00Z{remedy}")
    assert cloud.nova.allocations(server)["allocations"], "what was claimed stays"


def test_a_server_takes_one_place(cloud: Cloud, leased: Leased) -> None:
    two = {**XLARGE, leased.name: 2}
    assert leased.candidates(two) == []
    refused(leased, "a server takes one place of one reservation or ticket, not 2", amounts=two)
    other = grant(cloud)
    both = {**leased.wants, other.name: 1}
    assert leased.candidates(both) == []
    refused(leased, "a server takes one place of one reservation or ticket, not 2", amounts=both)


def test_a_host_without_a_place_gives_none(cloud: Cloud, leased: Leased) -> None:
    (elsewhere, *_) = cloud.nova.candidates()
    (host,) = elsewhere["allocations"]
    candidate = {"allocations": {host: {"resources": leased.wants}}, "mappings": {"": [host]}}
    answer = cloud.nova.claim_resources(new(), candidate)
    reservation = leased.lease.reservations[0].id
    told = f"reservation {reservation} has no place left on {host}{remedy(leased)}"
    assert detail(answer) == told


def test_more_than_was_promised_must_be_free(leased: Leased) -> None:
    greedy = {**leased.wants, "VCPU": 16}
    assert leased.candidates(greedy) == []
    answer = write(leased, amounts=greedy)
    assert FULL in detail(answer)
    assert leased.left.remaining == 3
    less = {**leased.wants, "VCPU": 4}
    assert len(leased.candidates(less)) == 3
    assert write(leased, amounts=less).status_code == 204


def test_other_rules_of_a_query_hold(leased: Leased) -> None:
    assert leased.candidates(root_required="!COMPUTE_NODE") == []
    host = next(iter(leased.hosts()))
    assert len(leased.candidates(in_tree=host)) == 1
    assert len(leased.candidates(limit="2")) == 2


def test_a_later_lease_on_the_same_host_is_no_obstacle(cloud: Cloud) -> None:
    leased = grant(cloud, 1, length=2 * HOUR, emptiest=True)
    (host,) = leased.hosts()
    following = hold("later", host, 16, period=Period(NINE + 2 * HOUR, NINE + 4 * HOUR))
    cloud.store.commit(Changeset((following,)))
    assert cloud.nova.candidates(amounts={"VCPU": 1}, in_tree=host) == []
    assert len(leased.candidates()) == 1
    leased.boot()
    assert leased.left.claimed == 1


# --- the class ----------------------------------------------------------------------------------


def test_the_class_is_known_while_there_is_the_lease(cloud: Cloud, leased: Leased) -> None:
    nova = cloud.nova
    shown = nova.call("GET", f"/resource_classes/{leased.name}")
    assert (shown.status_code, shown.json()["name"]) == (200, leased.name)
    stranger = reservation_class(new())
    assert nova.call("GET", f"/resource_classes/{stranger}").status_code == 404
    asked = nova.call("GET", f"/allocation_candidates?resources=VCPU:1,{stranger}:1")
    assert (asked.status_code, f"No such resource class {stranger}" in asked.text) == (400, True)
    listed = nova.call("GET", "/resource_classes").json()["resource_classes"]
    assert leased.name not in {one["name"] for one in listed}


def test_a_class_of_that_form_may_be_anybodys(cloud: Cloud) -> None:
    """Such as Blazar's, which makes inventories of it."""
    nova, name = cloud.nova, reservation_class(new())
    assert nova.call("PUT", f"/resource_classes/{name}").status_code == 201
    (candidate, *_) = nova.candidates()
    (host,) = candidate["allocations"]
    child = new()
    body = {"name": "blazar_h1", "uuid": child, "parent_provider_uuid": host}
    assert nova.call("POST", "/resource_providers", body).status_code == 200
    stock = {"resource_provider_generation": 0, "inventories": {name: {"total": 1}}}
    path = f"/resource_providers/{child}/inventories"
    assert nova.call("PUT", path, stock).status_code == 200
    query = f"/allocation_candidates?resources=VCPU:8,{name}:1"
    (found,) = nova.call("GET", query).json()["allocation_requests"]
    assert found["allocations"][child] == {"resources": {name: 1}}
    server = new()
    assert nova.claim_resources(server, found).status_code == 204
    assert nova.allocations(server)["allocations"][child]["resources"] == {name: 1}
