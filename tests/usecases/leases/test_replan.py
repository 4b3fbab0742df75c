"""Leases that have not started make room by moving, and keep what they were granted."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.engine.test_windows import fits
from tests.usecases.leases.conftest import Overtaken, World, build

from moorage.domain.bookings import Binding, Booking
from moorage.domain.changes import Changeset, PutLease
from moorage.domain.describe import read_ensemble
from moorage.domain.disclosure import Disclosure
from moorage.domain.errors import Infeasible
from moorage.domain.leases import Lease, Terms
from moorage.domain.period import HOUR, Period
from moorage.testing.service import NINE, OTHER, TENANT, Service
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.effect_dispatch import EffectResult, OutwardActions, carry_out
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.requests import LeaseRequest, LeaseResult
from moorage.usecases.ledger.allocations import release
from moorage.usecases.ports import Caller
from moorage.usecases.shared.limits import Limits

RACKS = Disclosure(levels=frozenset({"rack"}))
RACK = {"s1": "r1", "l1": "r2"}
FLEET = """
fleet: two
topology:
  location:
    levels: [rack]
    domains: [{name: "r{n}", count: 2, level: rack}]
hosts:
  - {name: "s{n}", count: 1, inventories: {VCPU: 8}, place: {location: r1}}
  - {name: "l{n}", count: 1, inventories: {VCPU: 16}, place: {location: r2}}
"""


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service(FLEET, limits=Limits(disclosure=RACKS))
    yield made
    made.close()


def hours(start: float, end: float) -> Period:
    return Period(NINE + int(start * HOUR), NINE + int(end * HOUR))


def described(*sizes: int, **more: Any) -> Any:
    members = [
        {"name": f"r{i}", "count": 1, "resources": {"VCPU": size}} for i, size in enumerate(sizes)
    ]
    return read_ensemble({"name": "e", "members": members, **more})


def lease(
    service: Service, period: Period, *sizes: int, caller: Caller = TENANT, **more: Any
) -> LeaseResult:
    asked = LeaseRequest("l", Terms(period), description=described(*sizes, **more))
    return create_lease(service.env, caller, asked, RequestIdentity(service.env.ids.uuid()))


def hosts(service: Service, one: Lease) -> list[str]:
    decision = service.store.decision(service.store.lease(one.id).decision_id)
    names = {row: service.store.snapshot().names[row] for row in range(2)}
    row_of = service.store.snapshot().row_of
    return [names[row_of[place.host]] for _, place in sorted(decision.places.items())]


def on(service: Service, host: str, period: Period) -> Lease:
    """A lease of eight units that happens to be planned on a host."""
    fence = [
        {
            "name": "f",
            "type": "fence",
            "members": ["*"],
            "domains": [RACK[host]],
            "strength": {"preferred": 1},
        }
    ]
    granted = lease(service, period, 8, policies=fence)
    assert hosts(service, granted.lease) == [host]
    return granted.lease


def test_a_lease_in_the_way_of_a_larger_one_moves(service: Service) -> None:
    small = on(service, "l1", hours(24, 48))
    large = lease(service, hours(24, 48), 16, caller=OTHER)
    assert hosts(service, large.lease) == ["l1"]
    assert hosts(service, small) == ["s1"]


def test_back_to_back_leases_make_a_chain(service: Service) -> None:
    one, two = (on(service, "l1", period) for period in (hours(10, 20), hours(20, 30)))
    large = lease(service, hours(15, 25), 16)
    assert hosts(service, large.lease) == ["l1"]
    assert hosts(service, one) == hosts(service, two) == ["s1"]
    for moved in (one, two):
        decision = service.store.decision(moved.decision_id)
        for member in service.store.ensemble(moved.ensemble_id).members:
            ((_, booking),) = service.store.bookings(consumer=member.uuid)
            assert booking.provider == decision.places[member.name].host
            assert booking.binding is Binding.PLANNED
            assert booking.decision == decision.id


def test_an_ensemble_of_now_is_let_in_too(service: Service) -> None:
    planned = on(service, "l1", hours(10, 20))
    made = create_ensemble(
        service.env,
        TENANT,
        described(16, name="now"),
        DecisionOptions(),
        RequestIdentity(service.env.ids.uuid()),
    )
    assert made.decision is not None
    assert hosts(service, planned) == ["s1"]


def test_what_does_not_fit_at_all_moves_nobody(service: Service) -> None:
    planned = on(service, "l1", hours(10, 20))
    generation = service.store.decision(planned.decision_id).generation
    with pytest.raises(Infeasible):
        lease(service, hours(15, 25), 17)
    with pytest.raises(Infeasible):
        lease(service, hours(15, 25), 16, 1)
    assert hosts(service, planned) == ["l1"]
    assert service.store.decision(planned.decision_id).generation == generation


def test_a_moved_lease_keeps_its_policies(service: Service) -> None:
    apart = [{"name": "a", "type": "anti-affinity", "members": ["*"]}]
    pair = lease(service, hours(10, 20), 4, 4, policies=apart)
    assert sorted(hosts(service, pair.lease)) == ["l1", "s1"]
    with pytest.raises(Infeasible):
        lease(service, hours(10, 20), 16)
    assert sorted(hosts(service, pair.lease)) == ["l1", "s1"]
    fitting = lease(service, hours(10, 20), 12)
    assert hosts(service, fitting.lease) == ["l1"]


def test_who_keeps_others_out_or_is_about_to_start_stays(service: Service) -> None:
    alone = [{"name": "x", "type": "exclusive", "members": ["*"], "against": "others"}]
    lease(service, hours(10, 20), 9, policies=alone)
    with pytest.raises(Infeasible):
        lease(service, hours(15, 25), 8, 8)
    bound = on(service, "l1", hours(30, 40))
    stored = service.store.lease(bound.id)
    service.store.commit(
        Changeset((PutLease(replace(stored, binding=Binding.BOUND), stored.generation),))
    )
    with pytest.raises(Infeasible):
        lease(service, hours(35, 45), 16)
    assert hosts(service, bound) == ["l1"]


periods = st.tuples(st.integers(1, 6), st.integers(1, 3)).map(lambda p: hours(p[0], p[0] + p[1]))
sizes = st.lists(st.integers(1, 16), min_size=1, max_size=2).map(tuple)


@given(wanted=st.lists(st.tuples(periods, sizes), min_size=1, max_size=4))
@example([(hours(1, 3), (1, 1)), (hours(1, 4), (1, 7)), (hours(3, 4), (16,))])
@settings(max_examples=12)
def test_a_lease_is_granted_exactly_when_all_of_them_have_places(
    wanted: list[tuple[Period, tuple[int, ...]]],
) -> None:
    # Why not is nobody's question here, and takes most of the time.
    service = Service(FLEET, limits=Limits(explanation_budget=1, disclosure=RACKS))
    granted: list[tuple[Period, tuple[int, ...]]] = []
    for period, members in wanted:
        possible = fits([(8, []), (16, [])], [*granted, (period, members)])
        try:
            lease(service, period, *members)
        except Infeasible:
            assert not possible, (granted, period, members)
        else:
            assert possible
            granted.append((period, members))
    service.close()


Make = Callable[..., World]


def test_a_lease_that_has_begun_is_extended_where_it_is_and_the_next_one_moves(
    world: Make,
) -> None:
    here = world(4, 4)
    running = here.lease(0, 2, vcpu=4)
    following = here.lease(2, 4, vcpu=4, caller=OTHER)
    assert here.host_of(following) == here.host_of(running)
    here.begin(running.lease.id)
    longer = here.change(running.lease.id, end=3)
    assert here.host_of(longer) == here.host_of(running)
    assert longer.lease.terms.period.end == here.at(3)
    (member,) = following.ensemble.members
    booking = here.booking(member.uuid)
    assert booking.provider != here.host_of(running)
    assert booking.period == following.lease.terms.period
    assert booking.binding is Binding.PLANNED
    kept = here.service.store.lease(following.lease.id)
    assert here.service.store.decision(kept.decision_id).places[member.name].host == (
        booking.provider
    )


def test_a_lease_that_has_begun_does_not_move_for_one_that_is_extended(world: Make) -> None:
    here = world(4, 4)
    two = [here.lease(0, 2, vcpu=4) for _ in range(2)]
    following = [here.lease(2, 4, vcpu=4) for _ in range(2)]
    for one in two:
        here.begin(one.lease.id)
    before = [here.host_of(one) for one in (*two, *following)]
    with pytest.raises(Infeasible):
        here.change(two[0].lease.id, end=3)
    for one, host in zip((*two, *following), before, strict=True):
        (member,) = one.ensemble.members
        assert here.booking(member.uuid).provider == host


def test_a_lease_before_the_period_moves_for_one_that_has_to_move(world: Make) -> None:
    here = world(4, 2, 1)
    firm = here.server(4, 0)
    before = here.lease(7, 9, vcpu=2)
    release(here.service.store, firm)
    moving = here.lease(8, 11, vcpu=2)
    here.lease(10.5, 12, vcpu=1)
    assert [here.host_of(one) for one in (before, moving)] == [here.hosts[1], here.hosts[0]]
    made = here.lease(10, 12, vcpu=4)
    assert here.host_of(made) == here.hosts[0]
    (first,), (second,) = before.ensemble.members, moving.ensemble.members
    assert here.booking(first.uuid).provider == here.hosts[0]
    assert here.booking(second.uuid).provider == here.hosts[1]


def test_a_pending_lease_is_extended_where_it_is_and_another_moves(world: Make) -> None:
    here = world(4, 4)
    pair = [here.lease(8, 10, vcpu=4) for _ in range(2)]
    following = here.lease(10, 12, vcpu=4)
    (one,) = (made for made in pair if here.host_of(made) == here.host_of(following))
    longer = here.change(one.lease.id, end=11)
    assert here.host_of(longer) == here.host_of(one)
    (member,) = following.ensemble.members
    assert here.booking(member.uuid).provider != here.host_of(one)


def test_a_lease_that_has_begun_grows_where_another_makes_room(world: Make) -> None:
    here = world(4, 4, 2)
    running = here.lease(0, 4, vcpu=4)
    following = here.lease(1, 3, vcpu=2, emptiest=True)
    assert here.host_of(following) in here.hosts[:2]
    here.begin(running.lease.id)
    grown = here.change(running.lease.id, counts={"web": 2})
    assert here.host_of(grown) == here.host_of(running)
    (member,) = following.ensemble.members
    assert here.booking(member.uuid).provider == here.hosts[2]


def test_what_a_lease_leaves_by_moving_is_not_given_back_where_another_comes_to(
    world: Make,
) -> None:
    here = world(4, 2)
    guest = here.server(3, 0, preemptible=True)
    there = here.lease(0.5, 6, vcpu=2)
    first, second = here.lease(1, 3, vcpu=2), here.lease(3, 5, vcpu=4)
    assert here.host_of(first) == here.host_of(second) == here.hosts[0]
    assert here.booking(guest).period.end <= here.at(1)
    cancel_lease(here.service.env, TENANT, there.lease.id)
    earlier = here.change(second.lease.id, start=2)
    assert here.host_of(earlier) == here.hosts[0]
    (member,) = first.ensemble.members
    assert here.booking(member.uuid).provider == here.hosts[1]
    booking = here.booking(guest)
    assert here.at(1) < booking.period.end <= here.at(2)
    assert booking.yields_to == second.lease.id


whole = st.integers(1, 8)
later = st.tuples(st.integers(1, 4), st.integers(1, 3), whole)


@example(begun=True, size=1, others=[(2, 2, 8), (3, 1, 1)], by=1)
@given(begun=st.booleans(), size=whole, others=st.lists(later, max_size=4), by=st.integers(1, 3))
@settings(max_examples=12)
def test_a_lease_is_extended_exactly_when_there_are_places_for_all(
    begun: bool,  # noqa: FBT001 - drawn
    size: int,
    others: list[tuple[int, int, int]],
    by: int,
) -> None:
    here = build(8, 8, limits=Limits(explanation_budget=1))
    try:
        start = 0 if begun else 1
        made = here.lease(start, start + 2, vcpu=size)
        if begun:
            here.begin(made.lease.id)
        granted: list[tuple[Period, tuple[int, ...]]] = []
        for begins, length, amount in others:
            with suppress(Infeasible):
                here.lease(begins, begins + length, vcpu=amount)
                granted.append((hours(begins, begins + length), (amount,)))
        longer = hours(start, start + 2 + by)
        hosts: list[tuple[int, list[Booking]]] = [(8, []), (8, [])]
        if begun:
            (member,) = made.ensemble.members
            row = here.hosts.index(here.host_of(made))
            hosts[row][1].append(replace(here.booking(member.uuid), period=longer))
        else:
            granted.append((longer, (size,)))
        possible = fits(hosts, granted)
        try:
            changed = here.change(made.lease.id, end=start + 2 + by)
        except Infeasible:
            assert not possible
        else:
            assert possible
            assert not begun or here.host_of(changed) == here.host_of(made)
    finally:
        here.service.close()


def test_a_lease_that_is_moved_while_it_is_prepared_is_prepared_where_it_is_then(
    service: Service,
) -> None:
    small = on(service, "l1", hours(24, 48))
    service.clock.set(small.terms.occupied.start)

    def meanwhile() -> None:
        large = lease(service, hours(25, 30), 16, caller=OTHER)
        assert hosts(service, small) == ["s1"]
        cancel_lease(service.env, OTHER, large.lease.id)

    (effect, *_) = service.store.due_effects(1)
    env = replace(service.env, store=Overtaken(service.store, meanwhile))
    assert carry_out(env, OutwardActions(), effect) is EffectResult.NOTHING
    assert carry_out(service.env, OutwardActions(), effect) is EffectResult.DONE
    (member,) = service.store.ensemble(small.ensemble_id).members
    ((_, booking),) = service.store.bookings(consumer=member.uuid)
    decision = service.store.decision(small.decision_id)
    assert booking.binding is Binding.BOUND
    assert booking.provider == decision.places[member.name].host
    assert hosts(service, small) == ["s1"]
