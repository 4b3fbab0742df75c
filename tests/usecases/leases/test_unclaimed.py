"""A place of a lease that was claimed in vain is the lease's again, and nobody else's meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.usecases.leases.conftest import World, named

from moorage.domain.bookings import BookingState
from moorage.domain.decisions import Claim
from moorage.domain.errors import CapacityExceeded
from moorage.domain.member_names import MemberName
from moorage.domain.period import HOUR, MINUTE
from moorage.testing.service import TENANT
from moorage.usecases.claims.claim import SecondDescription, claim
from moorage.usecases.claims.outcome import activate, expire, fail
from moorage.usecases.leases.requests import LeaseResult
from moorage.usecases.ledger.allocations import release

Make = Callable[..., World]


def claimed(here: World, made: LeaseResult) -> Claim:
    """A claim of ten minutes on the lease's only place."""
    second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 4}}, 10 * MINUTE)
    decision = here.service.store.lease(made.lease.id).decision_id
    return claim(here.service.env, TENANT, decision, second, here.naming()).claim


def active(here: World, **terms: Any) -> LeaseResult:
    """A lease of all that a host has, for the next ten hours."""
    made = here.lease(0, 10, vcpu=4, **terms)
    here.begin(made.lease.id)
    return made


def check_kept(here: World, made: LeaseResult) -> None:
    """The place is reserved, until the lease's end, and can be claimed."""
    booking = here.booking(made.ensemble.members[0].uuid)
    assert booking.state is BookingState.RESERVED
    assert booking.lapses_at == here.service.store.lease(made.lease.id).terms.period.end
    claimed(here, made)


def test_a_build_that_fails_gives_the_place_back(world: Make) -> None:
    here = world(4)
    made = active(here)
    fail(here.service.env, TENANT, claimed(here, made).id)
    check_kept(here, made)


def test_a_claim_that_lapses_gives_the_place_back(world: Make) -> None:
    here = world(4)
    made = active(here)
    one = claimed(here, made)
    here.go_to(1)
    with pytest.raises(CapacityExceeded):
        here.server(1, until=2)
    assert expire(here.service.env, one)
    check_kept(here, made)


def test_a_lease_that_is_extended_before_anybody_notes_the_lapse_has_the_place(world: Make) -> None:
    here = world(4)
    made = active(here)
    one = claimed(here, made)
    here.go_to(1)
    here.change(made.lease.id, end=12)
    assert not expire(here.service.env, one)
    check_kept(here, made)


def test_a_claim_outlives_the_extension_of_its_lease(world: Make) -> None:
    here = world(4)
    made = active(here)
    one = claimed(here, made)
    here.change(made.lease.id, end=12)
    booking = here.booking(made.ensemble.members[0].uuid)
    assert (booking.state, booking.lapses_at) == (BookingState.CLAIMED, here.at(12))
    here.go_to(1)
    assert expire(here.service.env, one)
    check_kept(here, made)


def test_what_a_lease_does_not_keep_any_more_is_free(world: Make) -> None:
    here = world(4)
    made = active(here, expiry=HOUR)
    one = claimed(here, made)
    here.go_to(1)
    here.server(4, until=2)
    assert expire(here.service.env, one)
    assert not here.service.store.bookings(consumer=made.ensemble.members[0].uuid)


def test_a_place_is_claimed_again_whose_server_left_a_lease_that_was_extended(world: Make) -> None:
    here = world(4)
    made = active(here)
    activate(here.service.env, TENANT, claimed(here, made).id, named(1))
    here.change(made.lease.id, end=12)
    release(here.service.store, named(1))
    check_kept(here, made)
