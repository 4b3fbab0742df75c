"""What those who yielded get back: where leases move, not where others are promised solitude."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.usecases.leases.conftest import Overtaken, World, described

from moorage.domain.capacity_windows import WindowKind
from moorage.domain.period import FOREVER, MINUTE
from moorage.testing.service import OPERATOR, OTHER, TENANT
from moorage.usecases.capacity.planned import PlanRequest, drop_window, plan_window
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.ledger.allocations import release

Make = Callable[..., World]

ALONE = [{"name": "alone", "type": "exclusive", "members": ["*"], "against": "others"}]


def alone(here: World, start: float, end: float) -> Any:
    """A lease that keeps others off its host."""
    return here.lease(start, end, body=described(vcpu=4, policies=ALONE), caller=OTHER)


def test_nothing_is_given_back_of_time_in_which_a_lease_is_alone_there(world: Make) -> None:
    here = world(16)
    server = here.server(4, preemptible=True)
    first = here.lease(10, 12, vcpu=16)
    later = alone(here, 20, 22)
    assert here.booking(server).yields_to == first.lease.id
    cancel_lease(here.service.env, TENANT, first.lease.id)
    booking = here.booking(server)
    assert (booking.period.end, booking.declared_end) == (here.at(20) - 5 * MINUTE, FOREVER)
    assert booking.yields_to == later.lease.id
    cancel_lease(here.service.env, OTHER, later.lease.id)
    assert here.booking(server).period.end == FOREVER


def test_solitude_that_is_granted_meanwhile_is_seen(world: Make) -> None:
    here = world(16)
    server = here.server(4, preemptible=True)
    first = here.lease(10, 12, vcpu=16)
    later: list[Any] = []
    store = Overtaken(here.service.store, lambda: later.append(alone(here, 20, 22)))
    cancel_lease(replace(here.service.env, store=store), TENANT, first.lease.id)
    booking = here.booking(server)
    assert booking.period.end == here.at(20) - 5 * MINUTE
    assert booking.yields_to == later[0].lease.id


def test_a_lease_that_is_moved_for_another_gives_back_what_it_took(world: Make) -> None:
    here = world(8, 16)
    firm = here.server(8, 0, until=24)
    server = here.server(10, 1, preemptible=True)
    moved = here.lease(10, 12, vcpu=8)
    assert here.booking(server).period.end == here.at(10) - 5 * MINUTE
    release(here.service.store, firm)
    larger = here.lease(11, 13, vcpu=16)
    assert here.host_of(larger) == here.hosts[1]
    now = here.service.store.decision(here.service.store.lease(moved.lease.id).decision_id)
    assert {place.host for place in now.places.values()} == {here.hosts[0]}
    booking = here.booking(server)
    assert booking.period.end == here.at(11) - 5 * MINUTE
    assert (booking.yields_to, booking.declared_end) == (larger.lease.id, FOREVER)


def test_a_lease_that_is_moved_for_an_ensemble_of_now_gives_all_back(world: Make) -> None:
    here = world(12, 20)
    firm = here.server(12, 0, until=24)
    server = here.server(10, 1, preemptible=True)
    moved = here.lease(10, 12, vcpu=12)
    assert here.booking(server).yields_to == moved.lease.id
    release(here.service.store, firm)
    there = [{"name": "there", "type": "fence", "members": ["*"], "domains": ["h1"]}]
    made = here.ensemble(body=described(vcpu=10, policies=there), caller=OPERATOR)
    assert made.decision is not None
    booking = here.booking(server)
    assert (booking.period.end, booking.yields_to) == (FOREVER, None)


def test_a_lease_that_is_moved_for_a_maintenance_gives_back_what_it_took(world: Make) -> None:
    here = world(16, 8)
    firm = here.server(8, 1, until=24)
    elsewhere = here.server(10, 0, preemptible=True)
    lease = here.lease(10, 12, vcpu=8)
    assert here.booking(elsewhere).yields_to == lease.lease.id
    release(here.service.store, firm)
    planning = PlanRequest(WindowKind.MAINTENANCE, ("h0",), start=here.at(11), end=here.at(14))
    dry = plan_window(here.service.env.in_dry_run(), OPERATOR, planning, here.naming())
    assert here.booking(elsewhere).yields_to == lease.lease.id, "nothing is written"
    planned = plan_window(here.service.env, OPERATOR, planning, here.naming())
    assert planned.moved == dry.moved == (lease.lease.id,)
    booking = here.booking(elsewhere)
    # It stands on the host itself: it may stay until that is away, and no longer.
    assert (booking.period.end, booking.declared_end) == (here.at(11), FOREVER)
    drop_window(here.service.env, OPERATOR, planned.window.id)
    cancel_lease(here.service.env, TENANT, lease.lease.id)
    assert here.booking(elsewhere).period.end == FOREVER


def test_the_first_of_several_maintenances_ends_what_is_given_back_though_it_is_near(
    world: Make,
) -> None:
    here = world(16)
    server = here.server(16, preemptible=True)
    lease = here.lease(0.2, 2, vcpu=16)
    assert here.booking(server).period.end == here.at(0.2) - 5 * MINUTE
    for start, end in ((0.15, 0.18), (10, 11)):
        planning = PlanRequest(
            WindowKind.MAINTENANCE, ("h0",), start=here.at(start), end=here.at(end)
        )
        plan_window(here.service.env, OPERATOR, planning, here.naming())
    here.go_to(0.1)
    cancel_lease(here.service.env, TENANT, lease.lease.id)
    assert here.booking(server).period.end == here.at(0.15)
