"""Servers that say by their flavor when they end, or that they yield, and see room accordingly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_store_bookings import hold
from tests.scenarios.nova.conftest import Cloud, clouded, new
from tests.scenarios.nova.leased import XLARGE, Leased, grant

from moorage.domain.changes import Changeset
from moorage.domain.effects import EffectKind
from moorage.domain.leases import LeaseState, Yielding
from moorage.domain.period import FOREVER, HOUR, MINUTE, Period
from moorage.domain.virtual_classes import HOURS, MOST, PREEMPTIBLE
from moorage.testing.service import NINE

FULL = "The requested amount would exceed the capacity."
NOTICE = 5 * MINUTE


def hosts(found: list[Any]) -> set[str]:
    return {uuid for one in found for uuid in one["allocations"]}


def at(host: str, amounts: dict[str, int]) -> dict[str, Any]:
    return {"allocations": {host: {"resources": amounts}}, "mappings": {"": [host]}}


def booking_of(cloud: Cloud, consumer: str) -> Any:
    ((_, found),) = cloud.store.bookings(consumer=consumer)
    return found


@pytest.fixture
def leased(cloud: Cloud) -> Leased:
    """Half of three empty hosts is a lease's, four hours from now."""
    return grant(cloud, start=4 * HOUR, length=8 * HOUR, state=LeaseState.PENDING, emptiest=True)


@pytest.fixture
def promised(cloud: Cloud, leased: Leased) -> str:
    """A host of which nothing is free from the lease's start on."""
    host = min(leased.hosts())
    rest = hold(
        "rest",
        host,
        8,
        period=Period(NINE + 4 * HOUR, NINE + 12 * HOUR),
    )
    cloud.store.commit(Changeset((rest,)))
    return host


# --- hours --------------------------------------------------------------------------------------


def test_who_ends_in_time_sees_promised_room(cloud: Cloud, promised: str) -> None:
    nova = cloud.nova
    assert promised not in hosts(nova.candidates())
    assert promised in hosts(nova.candidates(amounts={**XLARGE, HOURS: 4}))
    assert promised not in hosts(nova.candidates(amounts={**XLARGE, HOURS: 5}))
    wants = {**XLARGE, HOURS: 3}
    (candidate,) = nova.candidates(amounts=wants, in_tree=promised)
    assert candidate == at(promised, wants)
    server = new()
    assert nova.claim_resources(server, candidate).status_code == 204
    assert nova.allocations(server)["allocations"][promised]["resources"] == XLARGE
    found = booking_of(cloud, server)
    assert (found.period, found.preemptible) == (Period(NINE, NINE + 3 * HOUR), False)


def test_who_ends_too_late_is_refused(cloud: Cloud, promised: str) -> None:
    for amounts in (XLARGE, {**XLARGE, HOURS: 5}):
        answer = cloud.nova.claim_resources(new(), at(promised, amounts))
        assert (answer.status_code, FULL in answer.text) == (409, True)
    answer = cloud.nova.claim_resources(new(), at(promised, {**XLARGE, HOURS: 4}))
    assert answer.status_code == 204, "an end and a beginning touch"


def test_a_lease_counts_on_the_declared_end(cloud: Cloud) -> None:
    nova = cloud.nova
    (candidate, *_) = nova.candidates(amounts={"VCPU": 16, HOURS: 2})
    (host,) = candidate["allocations"]
    assert nova.claim_resources(new(), candidate).status_code == 204
    late = hold("late", host, 16, period=Period(NINE + 2 * HOUR, NINE + 3 * HOUR))
    cloud.store.commit(Changeset((late,)))
    assert nova.candidates(amounts={"VCPU": 1}, in_tree=host) == []


@pytest.mark.parametrize("hours", [MOST[HOURS] + 1, 2**31 - 1])
def test_nobody_stays_longer_than_a_hundred_years(cloud: Cloud, hours: int) -> None:
    wants = {**XLARGE, HOURS: hours}
    assert cloud.nova.candidates(amounts=wants) == []
    (candidate, *_) = cloud.nova.candidates()
    (host,) = candidate["allocations"]
    answer = cloud.nova.claim_resources(new(), at(host, wants))
    assert answer.status_code == 409
    assert "would violate inventory constraints" in answer.text
    longest = {**XLARGE, HOURS: MOST[HOURS]}
    assert cloud.nova.claim_resources(new(), at(host, longest)).status_code == 204


def test_an_end_goes_along_when_the_server_moves(cloud: Cloud) -> None:
    nova, server, migration = cloud.nova, new(), new()
    wants = {**XLARGE, HOURS: 3}
    assert nova.claim_resources(server, nova.candidates(amounts=wants)[0]).status_code == 204
    had = nova.allocations(server)
    owner = {"project_id": had["project_id"], "user_id": had["user_id"]}
    body = {
        migration: {"allocations": had["allocations"], "consumer_generation": None, **owner},
        server: {"allocations": {}, "consumer_generation": 1, **owner},
    }
    cloud.clock.pass_by(HOUR)
    assert nova.call("POST", "/allocations", body).status_code == 204
    assert booking_of(cloud, migration).period == Period(NINE, NINE + 3 * HOUR)
    assert nova.call("DELETE", f"/allocations/{migration}").status_code == 204


def test_a_rewrite_says_no_new_end(cloud: Cloud) -> None:
    nova, server = cloud.nova, new()
    wants = {**XLARGE, HOURS: 3}
    (candidate, *_) = nova.candidates(amounts=wants)
    assert nova.claim_resources(server, candidate).status_code == 204
    cloud.clock.pass_by(HOUR)
    assert nova.claim_resources(server, candidate, generation=1).status_code == 204
    assert booking_of(cloud, server).period.end == NINE + 3 * HOUR


def test_summaries_show_plenty_of_the_class(cloud: Cloud) -> None:
    nova = cloud.nova
    shown = nova.call("GET", f"/allocation_candidates?resources=VCPU:1,{HOURS}:3").json()
    for one in shown["provider_summaries"].values():
        assert one["resources"][HOURS] == {"capacity": 2**31 - 1, "used": 0}
    ordinary = nova.call("GET", "/allocation_candidates?resources=VCPU:1").json()
    for one in ordinary["provider_summaries"].values():
        assert set(one["resources"]) == {"VCPU", "MEMORY_MB", "DISK_GB"}
    assert len(shown["allocation_requests"]) == len(ordinary["allocation_requests"])


def test_a_server_that_asks_for_nothing_else_is_refused(cloud: Cloud) -> None:
    (candidate, *_) = cloud.nova.candidates()
    (host,) = candidate["allocations"]
    answer = cloud.nova.claim_resources(new(), at(host, {HOURS: 3}))
    assert answer.status_code == 400, answer.text


# --- preemptible --------------------------------------------------------------------------------


def test_who_yields_takes_promised_room_until_the_lease_needs_it(
    cloud: Cloud, leased: Leased, promised: str
) -> None:
    nova, server = cloud.nova, new()
    wants = {**XLARGE, PREEMPTIBLE: 1}
    (candidate,) = nova.candidates(amounts=wants, in_tree=promised)
    assert nova.claim_resources(server, candidate).status_code == 204
    found = booking_of(cloud, server)
    assert found.period == Period(NINE, NINE + 4 * HOUR - NOTICE)
    assert (found.preemptible, found.yields_to) == (True, leased.id)
    assert found.declared_end == FOREVER
    assert nova.allocations(server)["allocations"][promised]["resources"] == XLARGE
    assert [one.uuid for one, _ in cloud.store.yielding(leased.id)] == [server]
    told = {one.kind: one.due for one in cloud.store.effects(server)}
    assert told == {EffectKind.WARN: NINE, EffectKind.EVICT: NINE + 4 * HOUR - NOTICE}


def test_who_yields_has_no_end_where_nobody_needs_the_place(cloud: Cloud) -> None:
    nova, server = cloud.nova, new()
    wants = {**XLARGE, PREEMPTIBLE: 1}
    assert nova.claim_resources(server, nova.candidates(amounts=wants)[0]).status_code == 204
    found = booking_of(cloud, server)
    assert (found.period, found.preemptible) == (Period(NINE, FOREVER), True)
    assert found.yields_to is None


def test_who_yields_and_ends_before_needs_not_yield(cloud: Cloud, promised: str) -> None:
    nova, server = cloud.nova, new()
    wants = {**XLARGE, PREEMPTIBLE: 1, HOURS: 2}
    assert nova.claim_resources(server, at(promised, wants)).status_code == 204
    found = booking_of(cloud, server)
    assert (found.period.end, found.yields_to, found.declared_end) == (NINE + 2 * HOUR, None, None)
    later = new()
    wants = {**XLARGE, PREEMPTIBLE: 1, HOURS: 9}
    assert nova.claim_resources(later, at(promised, wants)).status_code == 204
    assert booking_of(cloud, later).declared_end == NINE + 9 * HOUR


def test_who_could_not_be_warned_is_refused(cloud: Cloud, promised: str) -> None:
    nova, wants = cloud.nova, {**XLARGE, PREEMPTIBLE: 1}
    cloud.clock.set(NINE + 4 * HOUR - NOTICE)
    assert len(nova.candidates(amounts=wants, in_tree=promised)) == 1
    assert nova.claim_resources(new(), at(promised, wants)).status_code == 204
    cloud.clock.pass_by(1)
    assert nova.candidates(amounts=wants, in_tree=promised) == []
    answer = nova.claim_resources(new(), at(promised, wants))
    assert (answer.status_code, FULL in answer.text) == (409, True)


def test_a_lease_may_let_nobody_in_who_would_have_to_yield(cloud: Cloud) -> None:
    alone = frozenset({Yielding.BOUNDED})
    leased = grant(
        cloud, 1, start=4 * HOUR, state=LeaseState.PENDING, before_start=alone, emptiest=True
    )
    (host,) = leased.hosts()
    rest = hold("rest", host, 8, period=Period(NINE + 4 * HOUR, NINE + 5 * HOUR))
    cloud.store.commit(Changeset((rest,)))
    refused = cloud.nova.claim_resources(new(), at(host, {**XLARGE, PREEMPTIBLE: 1}))
    assert (refused.status_code, FULL in refused.text) == (409, True)
    bounded = cloud.nova.claim_resources(new(), at(host, {**XLARGE, HOURS: 4}))
    assert bounded.status_code == 204


# --- both, and a lease --------------------------------------------------------------------------


def test_in_a_lease_the_lease_says_the_end(cloud: Cloud) -> None:
    leased = grant(cloud, 1, length=10 * HOUR)
    wants = {**leased.wants, HOURS: 2, PREEMPTIBLE: 1}
    (candidate,) = leased.candidates(wants)
    server = new()
    assert cloud.nova.claim_resources(server, candidate).status_code == 204
    found = booking_of(cloud, server)
    assert (found.period.end, found.preemptible) == (NINE + 10 * HOUR, False)
    (host,) = candidate["allocations"]
    assert cloud.nova.allocations(server)["allocations"][host]["resources"] == XLARGE


# --- lifetimes --------------------------------------------------------------------------------


@pytest.fixture
def bounded(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud in which servers stay three hours, those of project-b one, of project-c for ever."""
    lives = ["project-b=1h", "project-c=forever"]
    with clouded(tmp_path, lifetime="3h", project_lifetime=lives) as made:
        yield made


def test_who_declares_nothing_stays_as_long_as_operators_say(bounded: Cloud) -> None:
    nova = bounded.nova
    expected = {"project-a": 3 * HOUR, "project-b": HOUR, "project-c": FOREVER - NINE}
    for project, life in expected.items():
        server = new()
        (candidate, *_) = nova.candidates()
        assert nova.claim_resources(server, candidate, project=project).status_code == 204
        assert booking_of(bounded, server).period == Period(NINE, NINE + life)
    declared = new()
    (candidate, *_) = nova.candidates(amounts={**XLARGE, HOURS: 9})
    assert nova.claim_resources(declared, candidate).status_code == 204
    assert booking_of(bounded, declared).period.end == NINE + 9 * HOUR


def test_candidates_are_judged_over_the_default_lifetime(bounded: Cloud) -> None:
    nova = bounded.nova
    (candidate, *_) = nova.candidates()
    (host,) = candidate["allocations"]
    later = hold("later", host, 16, period=Period(NINE + 3 * HOUR, NINE + 9 * HOUR))
    bounded.store.commit(Changeset((later,)))
    assert host in hosts(nova.candidates())
    forever = nova.claim_resources(new(), candidate, project="project-c")
    assert (forever.status_code, FULL in forever.text) == (409, True)
    server = new()
    assert nova.claim_resources(server, candidate).status_code == 204
    bounded.clock.pass_by(HOUR)
    assert host not in hosts(nova.candidates())
    assert nova.claim_resources(server, candidate, generation=1).status_code == 204
    assert booking_of(bounded, server).period.end == NINE + 3 * HOUR, "a rewrite is no new life"
