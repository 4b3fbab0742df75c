"""Whoever ends for a lease hears of it once, and of nothing that it was never told."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.usecases.leases.conftest import Overtaken, World, described
from tests.usecases.leases.test_given_back import alone
from tests.usecases.leases.test_told_ends import events

from moorage.domain.describe import read_ensemble
from moorage.domain.effects import EffectKind, EffectState
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, HOUR, MINUTE, format_instant
from moorage.testing.service import OTHER, TENANT
from moorage.usecases.claims.claim import SecondDescription, claim
from moorage.usecases.claims.hold import renew
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.ensembles.decide import decide_ensemble
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.offers.create import create_offers
from moorage.usecases.offers.expiry import give_up_offer
from moorage.usecases.offers.requests import OfferRequest

Make = Callable[..., World]
NOTICE = 5 * MINUTE


def kinds(here: World) -> list[str]:
    return [one.type.removeprefix("member.") for one in events(here)]


def evictions(here: World, consumer: str) -> list[tuple[int, object]]:
    """When somebody is to be evicted, and the end that it knows of."""
    return [
        (one.due, one.details["ends"])
        for one in here.service.store.effects(consumer)
        if one.kind is EffectKind.EVICT and one.state is EffectState.PENDING
    ]


def offered(here: World, start: float, end: float, vcpu: int) -> str:
    asked = OfferRequest(
        name="o",
        description=read_ensemble(described(vcpu=vcpu)),
        duration=here.at(end) - here.at(start),
        earliest=here.at(start),
        latest=here.at(start),
    )
    found = create_offers(here.service.env, TENANT, asked, here.naming())
    return found.offers[0].id


def test_a_member_that_is_placed_again_until_the_same_end_is_not_warned_again(world: Make) -> None:
    here = world(16)
    here.lease(4, 6, vcpu=16)
    made = here.ensemble(2, preemptible=True)
    (member,) = made.ensemble.members
    here.go_to(1)
    assert not here.service.store.bookings(consumer=member.uuid), "its hold has lapsed"
    ask = DecisionOptions(preemptible=True)
    decide_ensemble(here.service.env, TENANT, made.ensemble.id, ask, here.naming())
    assert here.booking(member.uuid).period.end == here.at(4) - NOTICE
    assert kinds(here) == ["warned"]
    end = here.at(4) - NOTICE
    assert evictions(here, member.uuid) == [(end, format_instant(end))]
    here.go_to(2)
    here.lease(3, 4, vcpu=16)
    decide_ensemble(here.service.env, TENANT, made.ensemble.id, ask, here.naming())
    assert here.booking(member.uuid).period.end == here.at(3) - NOTICE
    assert kinds(here) == ["warned", "warned"], "that is an earlier end"


def test_who_was_not_told_of_an_offer_hears_nothing_of_its_end(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    lease = here.lease(4, 6, vcpu=16)
    cancel_lease(here.service.env, TENANT, lease.lease.id)
    assert kinds(here) == ["warned", "reprieved"]
    assert evictions(here, server) == []
    offer = offered(here, 5, 7, vcpu=16)
    assert here.booking(server).yields_to == offer
    give_up_offer(here.service.env, offer)
    assert here.booking(server).period.end == FOREVER
    assert kinds(here) == ["warned", "reprieved"]


def test_who_keeps_the_end_that_it_knows_hears_nothing(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    lease = here.lease(8, 9, vcpu=16)
    offer = offered(here, 4, 6, vcpu=16)
    assert here.booking(server).yields_to == offer
    give_up_offer(here.service.env, offer)
    booking = here.booking(server)
    assert (booking.period.end, booking.yields_to) == (here.at(8) - NOTICE, lease.lease.id)
    assert kinds(here) == ["warned"]
    end = here.at(8) - NOTICE
    assert evictions(here, server) == [(end, format_instant(end))]


def test_who_ends_for_a_lease_after_an_offer_is_gone_is_warned_then(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    offer = offered(here, 4, 6, vcpu=16)
    lease = here.lease(8, 9, vcpu=16)
    assert kinds(here) == []
    give_up_offer(here.service.env, offer)
    assert here.booking(server).yields_to == lease.lease.id
    assert kinds(here) == ["warned"]
    end = here.at(8) - NOTICE
    assert evictions(here, server) == [(end, format_instant(end))]


@pytest.mark.parametrize("solitary", [False, True], ids=["room", "solitude"])
def test_a_lease_that_goes_meanwhile_gives_nobody_an_end(world: Make, *, solitary: bool) -> None:
    here = world(16)
    lease = alone(here, 4, 6) if solitary else here.lease(4, 6, vcpu=16, caller=OTHER)
    cancelled: list[Any] = []

    def cancel() -> None:
        cancelled.append(cancel_lease(here.service.env, OTHER, lease.lease.id))

    env = replace(here.service.env, store=Overtaken(here.service.store, cancel))
    description = read_ensemble(described(vcpu=1))
    ask = DecisionOptions(preemptible=True)
    made = create_ensemble(env, TENANT, description, ask, here.naming())
    (member,) = made.ensemble.members
    assert cancelled
    booking = here.booking(member.uuid)
    assert (booking.period.end, booking.yields_to) == (FOREVER, None)
    assert kinds(here) == []


def test_a_hold_that_is_carried_on_has_the_end_that_it_has_now(world: Make) -> None:
    here = world(16)
    lease = here.lease(4, 6, vcpu=16)
    made = here.ensemble(2, 2, preemptible=True, hold=HOUR)
    cancel = Overtaken(
        here.service.store,
        lambda: cancel_lease(here.service.env, TENANT, lease.lease.id),
    )
    env = replace(here.service.env, store=cancel)
    decide_ensemble(env, TENANT, made.ensemble.id, DecisionOptions(preemptible=True), here.naming())
    for member in made.ensemble.members:
        assert here.booking(member.uuid).period.end == FOREVER


@pytest.mark.parametrize("act", ["claim", "renew"])
def test_whoever_goes_on_with_a_place_has_the_end_that_it_has_by_then(
    world: Make, act: str
) -> None:
    here = world(16)
    lease = here.lease(4, 6, vcpu=16)
    made = here.ensemble(2, preemptible=True)
    assert made.decision is not None
    cancel = Overtaken(
        here.service.store,
        lambda: cancel_lease(here.service.env, TENANT, lease.lease.id),
    )
    env = replace(here.service.env, store=cancel)
    if act == "claim":
        second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 2}})
        claim(env, TENANT, made.decision.id, second, here.naming())
    else:
        renew(env, TENANT, made.decision.id, here.at(1), None)
    (member,) = made.ensemble.members
    assert here.booking(member.uuid).period.end == FOREVER
