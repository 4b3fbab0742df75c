"""Hosts that a lease will have to itself: preemptible newcomers use them until then."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.usecases.leases.conftest import World, build, described

from moorage.domain.changes import ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.effects import EffectKind
from moorage.domain.errors import Infeasible
from moorage.domain.leases import Yielding
from moorage.domain.period import FOREVER, MINUTE, Period
from moorage.domain.virtual_classes import PREEMPTIBLE
from moorage.testing.service import OTHER, TENANT
from moorage.usecases.compliance.judgement import broken_policies
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.ledger.allocations import allocate

Make = Callable[..., World]
NOTICE = 5 * MINUTE


def solitary(here: World, start: float, end: float, **more: Any) -> Any:
    """A lease of another project that keeps others off its host."""
    policy = {"name": "alone", "type": "exclusive", "members": ["*"], "against": "others"}
    return here.lease(start, end, body=described(policies=[policy]), caller=OTHER, **more)


def only(here: World, made: Any) -> Any:
    """The booking of an ensemble's only member."""
    (member,) = made.ensemble.members
    return here.booking(member.uuid)


def nova(here: World, host: int, **amounts: int) -> str:
    """A server that Nova boots on a host."""
    server = here.naming().id
    owner = Consumer(server, "project-z", "zoe", "INSTANCE")
    write = ReplaceAllocations(owner, {here.hosts[host]: amounts}, None)
    allocate(here.service.store, [write], ids=here.service.env.ids)
    return server


def test_a_preemptible_newcomer_is_there_until_the_lease_starts(world: Make) -> None:
    here = world(16)
    lease = solitary(here, 4, 6)
    with pytest.raises(Infeasible):
        here.ensemble(1)
    with pytest.raises(Infeasible):
        here.ensemble(1, until=5)
    assert only(here, here.ensemble(1, until=4)).period.end == here.at(4)
    booking = only(here, here.ensemble(1, preemptible=True))
    assert (booking.period.end, booking.declared_end) == (here.at(4) - NOTICE, FOREVER)
    assert booking.yields_to == lease.lease.id
    told = {one.kind: one.due for one in here.service.store.effects(booking.consumer)}
    assert told == {EffectKind.WARN: here.now, EffectKind.EVICT: here.at(4) - NOTICE}


def test_it_is_refused_once_nobody_could_be_warned(world: Make) -> None:
    here = world(16)
    solitary(here, 4, 6)
    here.go_to(4 - 5 / 60)
    assert only(here, here.ensemble(1, preemptible=True)).period.end == here.at(4)
    here.service.clock.pass_by(1)
    with pytest.raises(Infeasible):
        here.ensemble(1, preemptible=True)


def test_it_goes_where_it_can_stay(world: Make) -> None:
    here = world(16, 16)
    lease = solitary(here, 4, 6)
    booking = only(here, here.ensemble(1, preemptible=True))
    assert (booking.provider == here.host_of(lease), booking.period.end) == (False, FOREVER)


def test_it_ends_for_whoever_comes_first(world: Make) -> None:
    here = world(16)
    late = solitary(here, 8, 9)
    early = here.lease(4, 6, vcpu=16)
    assert only(here, here.ensemble(1, preemptible=True)).yields_to == early.lease.id
    cancel_lease(here.service.env, TENANT, early.lease.id)
    booking = only(here, here.ensemble(1, preemptible=True))
    assert (booking.period.end, booking.yields_to) == (here.at(8) - NOTICE, late.lease.id)


def test_a_lease_that_lets_none_in_keeps_its_hosts_from_them(world: Make) -> None:
    here = world(16)
    solitary(here, 4, 6, before_start=frozenset({Yielding.BOUNDED}))
    with pytest.raises(Infeasible):
        here.ensemble(1, preemptible=True)
    here.ensemble(1, until=4)


def test_they_get_back_what_a_lease_gives_up_that_is_moved_or_cancelled(world: Make) -> None:
    here = world(16)
    lease = solitary(here, 4, 6)
    made = here.ensemble(1, preemptible=True)
    here.change(lease.lease.id, caller=OTHER, start=10, end=12)
    booking = only(here, made)
    assert (booking.period.end, booking.yields_to) == (here.at(10) - NOTICE, lease.lease.id)
    cancel_lease(here.service.env, OTHER, lease.lease.id)
    booking = only(here, made)
    assert (booking.period.end, booking.yields_to) == (FOREVER, None)


def test_who_goes_in_time_breaks_no_solitude(world: Make) -> None:
    here = world(16)
    lease = solitary(here, 4, 6)
    here.ensemble(1, preemptible=True)
    here.ensemble(1, until=3)
    assert not broken_policies(here.service.store.snapshot(), lease.ensemble)
    here.server(1, until=5)
    assert broken_policies(here.service.store.snapshot(), lease.ensemble)


def test_a_server_of_nova_that_yields_ends_for_it(world: Make) -> None:
    here = world(16)
    lease = solitary(here, 4, 6)
    booking = here.booking(nova(here, 0, VCPU=1, **{PREEMPTIBLE: 1}))
    assert (booking.period.end, booking.yields_to) == (here.at(4) - NOTICE, lease.lease.id)
    assert booking.declared_end == FOREVER
    told = {one.kind: one.due for one in here.service.store.effects(booking.consumer)}
    assert told == {EffectKind.WARN: here.now, EffectKind.EVICT: here.at(4) - NOTICE}
    # Placement's wire knows no exclusive hosts: whom the operator lets there is there.
    assert here.booking(nova(here, 0, VCPU=1)).period.end == FOREVER


def test_a_server_of_nova_where_a_lease_is_alone_already_is_there_like_any_other(
    world: Make,
) -> None:
    here = world(16)
    lease = solitary(here, 4, 6)
    here.go_to(4)
    here.begin(lease.lease.id)
    booking = here.booking(nova(here, 0, VCPU=1, **{PREEMPTIBLE: 1}))
    assert (booking.period.end, booking.yields_to) == (FOREVER, None)


@settings(max_examples=25, deadline=None)
@given(
    leases=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 4), st.booleans()), max_size=4),
    newcomers=st.lists(st.tuples(st.booleans(), st.integers(0, 24)), max_size=4),
)
def test_nobody_is_ever_beside_a_lease_that_is_alone(
    leases: list[tuple[int, int, bool]], newcomers: list[tuple[bool, int]]
) -> None:
    """Whatever is granted natively, in either order: no stranger is there in such a period."""
    here = build(4, 4)
    try:
        alone: list[tuple[str, str, Period]] = []
        turns = [*(("lease", one) for one in leases), *(("stay", one) for one in newcomers)]
        for number, (what, one) in enumerate(sorted(turns, key=lambda turn: sum(turn[1]))):
            here.service.clock.set(here.at(0) + number * MINUTE)
            try:
                if what == "stay":
                    preemptible, until = one[0], one[1]
                    here.ensemble(1, until=until or None, preemptible=bool(preemptible))
                elif one[2]:
                    made = solitary(here, one[0], one[0] + one[1])
                    (member,) = made.ensemble.members
                    period = Period(here.at(one[0]), here.at(one[0] + one[1]))
                    alone.append((member.uuid, here.host_of(made), period))
                else:
                    here.lease(one[0], one[0] + one[1], vcpu=3)
            except Infeasible:
                continue
        for uuid, host, period in alone:
            for _, booking in here.service.store.bookings(provider=host):
                assert booking.consumer == uuid or not booking.period.overlaps(period)
    finally:
        here.service.close()
