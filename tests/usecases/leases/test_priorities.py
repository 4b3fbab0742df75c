"""Priorities: who may ask for one, who ends first for a lease, and whose repair comes first."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.usecases.leases.conftest import World, build, described
from tests.usecases.leases.test_heal import drawn, now, resize

from moorage.domain.changes import Changeset, PutQuota
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import QuotaExceeded
from moorage.domain.leases import Terms
from moorage.domain.period import HOUR, MINUTE, Period
from moorage.domain.placement import Place
from moorage.domain.quotas import Quota, QuotaName
from moorage.engine.state.overlay import first_shortage
from moorage.testing.service import OTHER, TENANT
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.lease_sweeper import LeaseSweeper
from moorage.usecases.leases.requests import LeaseRequest
from moorage.usecases.preemption.victims import displaceable, victims

Make = Callable[..., World]


def may_have(world: World, most: int, *projects: str) -> None:
    """Let projects ask for priorities up to this."""
    for project in projects or (TENANT.project_id, OTHER.project_id):
        quota = Quota(project, {QuotaName.PRIORITY: most})
        world.service.store.commit(Changeset((PutQuota(quota),)))


def test_a_priority_needs_a_quota_or_the_access_rule(world: Make) -> None:
    here = world(16)
    with pytest.raises(QuotaExceeded) as refused:
        here.lease(1, 2, priority=1)
    assert (refused.value.limit, refused.value.requested) == (0, 1)
    may_have(here, 50)
    assert here.lease(1, 2, priority=50).lease.terms.priority == 50
    with pytest.raises(QuotaExceeded):
        here.lease(1, 2, priority=51)
    asked = LeaseRequest(
        "l",
        Terms(Period(here.at(1), here.at(2)), priority=1000),
        description=read_ensemble(described()),
        any_priority=True,
    )
    assert create_lease(here.service.env, TENANT, asked, here.naming()).lease.units == 1


def test_a_server_that_nova_draws_has_the_priority_of_its_lease(world: Make) -> None:
    here = world(16)
    may_have(here, 50)
    made = here.lease(0, 2, priority=7)
    here.begin(made.lease.id)
    assert here.booking(drawn(here, made, 0)).priority == 7


def test_a_lease_keeps_a_priority_that_its_project_may_not_ask_for_any_more(world: Make) -> None:
    here = world(16)
    may_have(here, 50)
    made = here.lease(1, 2, priority=50)
    may_have(here, 10)
    assert here.change(made.lease.id, end=3).lease.terms.priority == 50
    with pytest.raises(QuotaExceeded):
        here.lease(1, 2, priority=50)


def test_a_preemptible_ensemble_has_a_priority_that_its_servers_keep(world: Make) -> None:
    here = world(16)
    with pytest.raises(QuotaExceeded):
        here.ensemble(4, preemptible=True, priority=5)
    may_have(here, 5)
    made = here.ensemble(4, preemptible=True, priority=5)
    assert made.decision is not None
    assert made.decision.priority == 5
    assert here.booking(made.ensemble.members[0].uuid).priority == 5


def test_those_of_the_lowest_priority_end_first(world: Make) -> None:
    here = world(16)
    small = here.server(4, preemptible=True)
    two = [here.server(2, preemptible=True), here.server(2, preemptible=True)]
    here.server(8, preemptible=True, priority=3)
    # As few as possible would be the one of eight; it has the highest priority.
    made = here.lease(1, 2, vcpu=8)
    assert {one.consumer for one in made.displaced} == {small, *two}
    assert [one.priority for one in made.displaced] == [0, 0, 0]


def test_a_host_where_only_low_priorities_end_is_preferred(world: Make) -> None:
    here = world(16, 16)
    here.server(16, 0, preemptible=True, priority=7)
    low = [here.server(8, 1, preemptible=True) for _ in range(2)]
    made = here.lease(1, 2, vcpu=16)
    assert here.host_of(made) == here.hosts[1]
    assert {one.consumer for one in made.displaced} == set(low)
    # And where that is not enough, those of more priority end too.
    more = here.lease(1, 2, vcpu=16)
    assert [one.priority for one in more.displaced] == [7]


def test_no_more_of_the_highest_priority_end_than_must(world: Make) -> None:
    here = world(16, 16, 16, 16)
    for host in range(4):
        here.server(16, host, preemptible=True, priority=3 if host % 2 else 0)
    made = here.lease(1, 2, vcpu=16, members=3)
    assert [one.priority for one in made.displaced] == [0, 0, 3]


def test_a_server_that_begins_after_its_end_is_no_victim(world: Make) -> None:
    """The clock was set back since it was written."""
    here = world(16)
    name = here.server(8, preemptible=True)
    period = Period(here.at(1), here.at(2))
    notice = here.service.env.limits.notice
    assert displaceable(here.service.store.snapshot(), period, notice, ()).keys() == {name}
    for back, found in ((50 * MINUTE, {name}), (2 * HOUR, set())):
        here.service.clock.set(here.now - back)
        snapshot = here.service.store.snapshot()
        earlier = Period(snapshot.taken_at + HOUR, here.at(2))
        assert displaceable(snapshot, earlier, notice, ()).keys() == found
        here.service.clock.set(here.now + back)


Servers = st.lists(st.tuples(st.integers(1, 6), st.sampled_from([0, 5, 9])), max_size=6)


@settings(max_examples=25, deadline=None)
@given(Servers, st.integers(1, 16))
def test_nobody_ends_where_those_of_less_priority_would_do(
    servers: list[tuple[int, int]], wanted: int
) -> None:
    """Against all sets of victims, from the highest priority down: none beside these has fewer."""
    here = build(16)
    try:
        left = 16
        for vcpu, priority in servers:
            if vcpu <= left:
                here.server(vcpu, preemptible=True, priority=priority)
                left -= vcpu
        snapshot = here.service.store.snapshot()
        period = Period(here.at(1), here.at(2))
        there = displaceable(snapshot, period, here.service.env.limits.notice, ())
        place = Place(here.hosts[0], {here.hosts[0]: {"VCPU": wanted}})
        out = victims(snapshot, [place], there, period)
        assert out is not None
        state = snapshot.state(snapshot.row_of[here.hosts[0]])

        def fits(gone: Any) -> bool:
            rest = [one for one in state.bookings if one.consumer not in gone]
            return first_shortage(state, rest, {"VCPU": wanted}, period, here.now) is None

        def of(some: Any, level: int) -> set[str]:
            return {one for one in some if there[one].priority == level}

        names = sorted(there)
        subsets = (
            {name for bit, name in enumerate(names) if mask >> bit & 1}
            for mask in range(1 << len(names))
        )
        enough = [some for some in subsets if fits(some)]
        assert out in enough
        for level in (9, 5, 0):
            assert len(of(out, level)) == min(len(of(some, level)) for some in enough)
            enough = [some for some in enough if of(some, level) == of(out, level)]
    finally:
        here.service.close()


def test_the_room_that_is_left_goes_to_the_highest_priority(world: Make) -> None:
    here = world(8, 4)
    may_have(here, 9)
    here.server(4, 1, until=1)
    leases = [here.lease(2, 3, vcpu=4, priority=priority) for priority in (0, 9)]
    # Both are on the large host or apart: let both be where there is no room any more.
    resize(here, 0, 1)
    resize(here, 1, 1)
    LeaseSweeper(here.service.env).run_round()
    assert all(now(here, one.lease).degraded for one in leases)
    resize(here, 0, 4)
    LeaseSweeper(here.service.env).run_round()
    low, high = (now(here, one.lease) for one in leases)
    assert (low.degraded, high.degraded) == (True, False)


def test_what_is_left_of_a_host_stays_with_the_highest_priority(world: Make) -> None:
    here = world(8)
    may_have(here, 9)
    low = here.lease(1, 2, vcpu=4)
    high = here.lease(1, 2, vcpu=4, priority=9)
    resize(here, 0, 4)
    LeaseSweeper(here.service.env).run_round()
    assert now(here, low.lease).degraded
    assert not now(here, high.lease).degraded
