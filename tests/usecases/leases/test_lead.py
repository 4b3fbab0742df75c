"""A lead is time that lies ahead: one that would begin in the past is refused, or is none."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.usecases.leases.conftest import World, described

from moorage.domain.describe import read_ensemble
from moorage.domain.leases import LeadTooLong
from moorage.domain.period import HOUR, MINUTE, SECOND, Period
from moorage.testing.service import TENANT
from moorage.usecases.offers.accept import accept_offer
from moorage.usecases.offers.create import create_offers
from moorage.usecases.offers.requests import AcceptanceTerms, OfferRequest

Make = Callable[..., World]


def test_a_lead_that_would_begin_in_the_past_is_refused(world: Make) -> None:
    here = world(16)
    for dry in (True, False):
        with pytest.raises(LeadTooLong, match="1h at most") as caught:
            here.lease(1, 3, lead=2 * HOUR, dry_run=dry)
        assert (caught.value.longest, caught.value.path) == (HOUR, "lease.lead")
    assert not here.service.store.bookings()
    assert here.lease(1, 3, lead=HOUR).lease.terms.occupied == Period(here.now, here.at(3))


def test_a_lead_that_begins_now_may_be_under_way_for_a_moment(world: Make) -> None:
    here = world(16)
    here.service.clock.pass_by(30 * SECOND)
    assert here.lease(1, 3, lead=HOUR).lease.terms.occupied == Period(here.now, here.at(3))


def test_a_lease_that_begins_now_has_no_lead(world: Make) -> None:
    here = world(16)
    made = here.lease(0, 2, lead=HOUR, cleaning=HOUR)
    assert (made.lease.terms.lead, made.lease.terms.cleaning) == (0, HOUR)
    assert made.lease.terms.occupied == Period(here.now, here.at(3))
    assert made.decision.period.start == here.now


def test_a_lease_is_not_moved_so_near_that_its_lead_has_begun(world: Make) -> None:
    here = world(16)
    made = here.lease(4, 6, lead=HOUR)
    with pytest.raises(LeadTooLong) as caught:
        here.change(made.lease.id, start=0.5)
    assert caught.value.longest == HOUR // 2
    assert here.service.store.lease(made.lease.id).terms == made.lease.terms
    assert here.change(made.lease.id, start=2).lease.terms.lead == HOUR
    now = here.change(made.lease.id, start=0)
    assert (now.lease.terms.period.start, now.lease.terms.lead) == (here.now, 0)


def test_a_change_of_the_end_leaves_a_lead_that_has_begun(world: Make) -> None:
    here = world(16)
    made = here.lease(2, 4, lead=HOUR)
    here.go_to(1.5)
    assert here.change(made.lease.id, end=5).lease.terms.lead == HOUR


def asked(here: World, latest: float, lead: int) -> OfferRequest:
    return OfferRequest(
        "o",
        duration=2 * HOUR,
        description=read_ensemble(described()),
        latest=here.at(latest),
        lead=lead,
        hold=HOUR,
    )


def test_an_offer_begins_where_its_lead_lies_ahead(world: Make) -> None:
    here = world(16)
    env = here.service.env
    with pytest.raises(LeadTooLong) as caught:
        create_offers(env, TENANT, asked(here, 1, 2 * HOUR), here.naming())
    assert caught.value.longest == HOUR
    (offer,) = create_offers(env, TENANT, asked(here, 5, HOUR), here.naming()).offers
    assert offer.terms.period.start == here.at(1)
    here.service.clock.pass_by(5 * MINUTE)
    with pytest.raises(LeadTooLong):
        accept_offer(env, TENANT, offer.id, AcceptanceTerms(lead=2 * HOUR))
    made = accept_offer(env, TENANT, offer.id, AcceptanceTerms())
    assert made.lease.terms == replace(offer.terms, expiry=None)
