"""Who makes room for a lease, in which order, and what they get back."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.usecases.leases.conftest import Overtaken, World, described

from moorage.domain.errors import Infeasible
from moorage.domain.leases import LeaseState
from moorage.domain.period import FOREVER, HOUR, MINUTE
from moorage.testing.service import OTHER, TENANT
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.queries import displaced_by
from moorage.usecases.preemption.victims import displaced_for

Make = Callable[..., World]


def test_nobody_is_displaced_where_there_is_room(world: Make) -> None:
    here = world(16, 16)
    here.server(16, 0, preemptible=True)
    made = here.lease(1, 2, vcpu=16)
    assert made.displaced == ()
    assert here.host_of(made) == here.hosts[1]


def test_a_preemptible_server_ends_before_the_lease(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    made = here.lease(1, 2, vcpu=16)
    (one,) = made.displaced
    assert (one.consumer, one.project_id) == (server, "project-z")
    assert (one.end, one.declared_end) == (here.at(1) - 5 * MINUTE, FOREVER)
    booking = here.booking(server)
    assert (booking.period.end, booking.yields_to) == (one.end, made.lease.id)
    assert displaced_for(here.service.store, made.lease.id) == made.displaced


def test_who_cannot_be_warned_in_time_is_not_displaced(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    with pytest.raises(Infeasible):
        here.lease(4.9 / 60, 1, vcpu=16)
    assert here.booking(server).period.end == FOREVER
    made = here.lease(6 / 60, 1, vcpu=16)
    assert made.displaced[0].end == here.at(0) + 5 * MINUTE


def test_one_who_was_to_end_and_did_not_is_not_trusted_again(world: Make) -> None:
    here = world(16)
    here.server(10, until=1, preemptible=True)
    here.go_to(2)
    with pytest.raises(Infeasible):
        here.lease(4, 5, vcpu=16)


def test_the_fewest_are_displaced_and_among_them_the_youngest(world: Make) -> None:
    here = world(16)
    old_small = here.server(4, preemptible=True)
    here.go_to(0.1)
    old_big = here.server(8, preemptible=True)
    here.go_to(0.2)
    young_small = here.server(4, preemptible=True)
    made = here.lease(1, 2, vcpu=8)
    assert [one.consumer for one in made.displaced] == [old_big]
    small = here.lease(3, 4, vcpu=12)
    assert [one.consumer for one in small.displaced] == [young_small]
    both = here.lease(5, 6, vcpu=16)
    assert {one.consumer for one in both.displaced} == {old_small}


def test_a_lease_that_is_cancelled_gives_back_what_it_took(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    bounded = here.server(6, until=30, preemptible=True)
    made = here.lease(10, 12, vcpu=16)
    assert here.booking(bounded).period.end == here.at(10) - 5 * MINUTE
    cancel_lease(here.service.env, TENANT, made.lease.id)
    for one, end in ((server, FOREVER), (bounded, here.at(30))):
        booking = here.booking(one)
        assert (booking.period.end, booking.yields_to, booking.declared_end) == (end, None, None)


def test_what_is_given_back_is_what_other_leases_leave(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    later = here.lease(20, 21, vcpu=16)
    first = here.lease(10, 12, vcpu=16)
    assert here.booking(server).yields_to == first.lease.id
    cancel_lease(here.service.env, TENANT, first.lease.id)
    booking = here.booking(server)
    assert booking.period.end == here.at(20) - 5 * MINUTE
    assert (booking.yields_to, booking.declared_end) == (later.lease.id, FOREVER)


def test_what_is_given_back_is_looked_at_again_where_somebody_was_quicker(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    first = here.lease(10, 12, vcpu=16)
    later: list[Any] = []
    store = Overtaken(here.service.store, lambda: later.append(here.lease(20, 21, vcpu=16)))
    env = replace(here.service.env, store=store)
    assert cancel_lease(env, TENANT, first.lease.id).state is LeaseState.CLOSED
    booking = here.booking(server)
    assert booking.period.end == here.at(20) - 5 * MINUTE
    assert booking.yields_to == later[0].lease.id


def test_a_lease_that_moves_gives_back_the_time_it_does_not_need(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    made = here.lease(10, 12, vcpu=16)
    here.change(made.lease.id, start=20, end=22)
    booking = here.booking(server)
    assert booking.period.end == here.at(20) - 5 * MINUTE
    assert booking.yields_to == made.lease.id
    here.change(made.lease.id, start=5, end=6)
    assert here.booking(server).period.end == here.at(5) - 5 * MINUTE
    assert here.booking(server).declared_end == FOREVER


def test_a_preemptible_ensemble_runs_until_a_lease_begins(world: Make) -> None:
    here = world(16)
    lease = here.lease(3, 4, vcpu=16)
    made = here.ensemble(4, 2, preemptible=True)
    for member in made.ensemble.members:
        booking = here.booking(member.uuid)
        assert booking.preemptible
        assert booking.period.end == here.at(3) - 5 * MINUTE
        assert (booking.yields_to, booking.declared_end) == (lease.lease.id, FOREVER)
    cancel_lease(here.service.env, TENANT, lease.lease.id)
    for member in made.ensemble.members:
        assert here.booking(member.uuid).period.end == FOREVER


def test_a_preemptible_ensemble_is_refused_only_if_it_could_hardly_run(world: Make) -> None:
    here = world(16)
    here.lease(1, 4, vcpu=16)
    here.go_to(1 - 4.9 / 60)
    with pytest.raises(Infeasible):
        here.ensemble(4, preemptible=True)
    here.go_to(1 - 5.1 / 60)
    made = here.ensemble(4, preemptible=True)
    (member,) = made.ensemble.members
    assert here.booking(member.uuid).period.end == here.now + 5 * MINUTE


def test_a_preemptible_ensemble_prefers_where_it_can_stay(world: Make) -> None:
    here = world(16, 16)
    lease = here.lease(1, 2, vcpu=16)
    made = here.ensemble(16, preemptible=True)
    (member,) = made.ensemble.members
    booking = here.booking(member.uuid)
    assert booking.period.end == FOREVER
    assert booking.provider != here.host_of(lease)


def test_an_exclusive_lease_displaces_whoever_is_there(world: Make) -> None:
    here = world(16)
    server = here.server(1, preemptible=True)
    alone = {"name": "alone", "type": "exclusive", "members": ["*"]}
    made = here.lease(1, 2, body=described(policies=[alone]))
    assert [one.consumer for one in made.displaced] == [server]


def test_many_small_ones_go_where_one_would_not_do(world: Make) -> None:
    here = world(40)
    servers = [here.server(1, preemptible=True) for _ in range(40)]
    made = here.lease(1, 2, vcpu=25)
    assert len(made.displaced) == 25
    assert {one.consumer for one in made.displaced} <= set(servers)


def test_ones_own_preemptible_hold_makes_room_too(world: Make) -> None:
    here = world(16)
    held = here.ensemble(16, preemptible=True, caller=OTHER)
    here.lease(1, 2, vcpu=16)
    (member,) = held.ensemble.members
    assert here.booking(member.uuid).period.end == here.at(0) + HOUR - 5 * MINUTE


@pytest.mark.parametrize("preferring", [False, True], ids=["as it comes", "with a preference"])
def test_an_empty_host_is_used_before_anybody_goes(world: Make, *, preferring: bool) -> None:
    here = world(16, 16, 16)
    for host in (0, 1):
        for _ in range(5):
            here.server(3, host, preemptible=True)
    # Spread over all three hosts, the lease would displace three servers on each of two.
    apart: dict[str, Any] = {
        "name": "apart",
        "type": "anti-affinity",
        "members": ["*"],
        "level": "host",
    }
    apart |= {"max_per_domain": 2, "strength": {"preferred": 1}}
    policies = [apart] if preferring else []
    made = here.lease(1, 2, body=described(vcpu=8, members=3, policies=policies))
    assert [one.host for one in made.decision.places.values()].count(here.hosts[2]) == 2
    assert len(made.displaced) == 3


def test_what_the_lease_prefers_goes_before_sparing_others(world: Make) -> None:
    here = world(16, 16, 16)
    for host in (0, 1):
        for _ in range(5):
            here.server(3, host, preemptible=True)
    apart: dict[str, Any] = {
        "name": "apart",
        "type": "anti-affinity",
        "members": ["*"],
        "level": "host",
    }
    apart |= {"strength": {"preferred": 1}}
    made = here.lease(1, 2, body=described(vcpu=8, members=3, policies=[apart]))
    assert len({one.host for one in made.decision.places.values()}) == 3
    assert len(made.displaced) == 6


def test_a_closed_lease_displaces_nobody_any_more(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    made = here.lease(1, 2, vcpu=16)
    store = here.service.store
    assert [one.consumer for one in displaced_by(store, made.lease)] == [server]
    here.go_to(1)
    here.begin(made.lease.id)
    cancel_lease(here.service.env, TENANT, made.lease.id)
    here.go_to(3)
    lease = store.lease(made.lease.id)
    closed = replace(lease, state=LeaseState.CLOSED)
    assert displaced_for(store, lease.id)
    assert displaced_by(store, closed) == ()
