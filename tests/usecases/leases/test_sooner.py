"""The earliest start with leases that make room by moving, against asking at every hour."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.usecases.leases.conftest import World, build

from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Infeasible
from moorage.domain.explain import Explanation, Window
from moorage.domain.leases import Terms
from moorage.domain.period import HOUR, Period
from moorage.testing.service import TENANT
from moorage.usecases.leases.change import change_lease
from moorage.usecases.leases.requests import LeaseChange, LeaseRequest, LeaseResult
from moorage.usecases.offers.create import create_offers
from moorage.usecases.offers.requests import OfferRequest
from moorage.usecases.waitlist.enter import WaitRequest, create_or_wait
from moorage.usecases.waitlist.queries import ListedEntry

Make = Callable[..., World]

SIZED: Any = {
    "name": "e",
    "members": [{"name": "a", "count": 2, "resources": {"VCPU": 2}}],
    "policies": [{"name": "apart", "type": "anti-affinity", "members": ["a"]}],
}


def earliest(ask: Callable[[], object]) -> Window:
    with pytest.raises(Infeasible) as refused:
        ask()
    why = refused.value.explanation
    assert isinstance(why, Explanation)
    assert why.earliest is not None
    return why.earliest


def crowded(make: Make) -> World:
    """Four hosts: each half leased for nine days, and wholly for the first two."""
    here = make(32, 32, 32, 32)
    for _ in range(4):
        here.lease(240, 240 + 9 * 24, vcpu=16)
    here.lease(240, 240 + 2 * 24, vcpu=16, members=4)
    return here


def test_leases_that_can_move_do_not_make_one_wait(world: Make) -> None:
    here = crowded(world)
    window = earliest(lambda: here.lease(240, 264, vcpu=28))
    assert (window.start, window.proved) == (here.at(288), True)
    here.lease(288, 312, vcpu=28)
    with pytest.raises(Infeasible):
        here.lease(287.5, 311.5, vcpu=28)


LARGE: Any = {"name": "e", "members": [{"name": "a", "count": 1, "resources": {"VCPU": 28}}]}


def test_an_offer_moves_them(world: Make) -> None:
    here = crowded(world)
    large = read_ensemble(LARGE)
    asked = OfferRequest("o", 24 * HOUR, here.at(240), description=large)
    (offer,) = create_offers(here.service.env, TENANT, asked, here.naming()).offers
    assert offer.terms.period.start == here.at(288)
    assert offer.offer is not None
    assert offer.offer.proved


def test_a_range_of_starts_is_leased_at_once_where_they_can_move(world: Make) -> None:
    here = crowded(world)
    terms = Terms(Period(here.at(240), here.at(264)))
    asked = LeaseRequest("l", terms, description=read_ensemble(LARGE))
    made = create_or_wait(
        here.service.env.in_dry_run(), TENANT, asked, WaitRequest(here.at(300)), here.naming()
    )
    assert isinstance(made, LeaseResult)
    assert made.lease.terms.period.start == here.at(288)


def test_an_estimate_counts_on_their_moving(world: Make) -> None:
    here = crowded(world)
    terms = Terms(Period(here.at(240), here.at(264)))
    asked = LeaseRequest("l", terms, description=read_ensemble(LARGE))
    made = create_or_wait(here.service.env, TENANT, asked, WaitRequest(), here.naming())
    assert isinstance(made, ListedEntry)
    estimate = here.service.store.waitlist_entry(made.entry.id).estimate
    assert estimate is not None
    assert (estimate.start, estimate.proved) == (here.at(288), True)


@settings(max_examples=40)
@given(data=st.data())
def test_nothing_is_granted_before_a_start_that_is_proved(data: st.DataObject) -> None:
    draw = data.draw
    hosts = draw(st.lists(st.integers(2, 4), min_size=2, max_size=3))
    here = build(*hosts)
    try:
        for _ in range(draw(st.integers(1, 6))):
            start = draw(st.integers(1, 8))
            ask(here, start, draw(st.integers(1, 5)), draw)
        start, length = draw(st.integers(1, 6)), draw(st.integers(1, 4))
        body = wanted(draw)
        try:
            here.lease(start, start + length, body=body, dry_run=True)
        except Infeasible as refused:
            why = refused.explanation
        else:
            return
        assert isinstance(why, Explanation)
        if why.earliest is None:
            return
        assert why.earliest.proved, "so few are tried whole"
        begin = start
        while here.at(begin) < why.earliest.start:
            assert not granted(here, begin, length, body), begin
            begin += 1
        assert granted(here, begin, length, body)
    finally:
        here.service.close()


def ask(here: World, start: int, length: int, draw: Any) -> None:
    try:
        here.lease(start, start + length, body=wanted(draw))
    except Infeasible:
        return


def wanted(draw: Any) -> Any:
    if draw(st.booleans()):
        return SIZED
    count, size = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    members = [{"name": "a", "count": count, "resources": {"VCPU": size}}]
    return {"name": "e", "members": members}


def granted(here: World, start: int, length: int, body: Any) -> bool:
    try:
        here.lease(start, start + length, body=body, dry_run=True)
    except Infeasible:
        return False
    return True


def test_what_a_lease_has_itself_does_not_make_it_wait(world: Make) -> None:
    here = world(4, 4)
    members = [{"name": "a", "count": 2, "resources": {"VCPU": 2}}]
    mine = here.lease(4, 8, body={"name": "e", "members": members})
    here.server(4, until=4)
    window = earliest(lambda: change(here, mine, 3, 7, 4))
    assert (window.start, window.proved) == (here.at(4), True)
    change(here, mine, 4, 8, 4)


@settings(max_examples=40)
@given(data=st.data())
def test_no_change_is_granted_before_a_start_that_is_proved(data: st.DataObject) -> None:
    draw = data.draw
    hosts = draw(st.lists(st.integers(2, 4), min_size=2, max_size=3))
    here = build(*hosts)
    try:
        start, length = draw(st.integers(1, 6)), draw(st.integers(1, 4))
        try:
            mine = here.lease(start, start + length, body=wanted(draw))
        except Infeasible:
            return
        for _ in range(draw(st.integers(1, 5))):
            ask(here, draw(st.integers(1, 8)), draw(st.integers(1, 5)), draw)
        start, length = draw(st.integers(1, 6)), draw(st.integers(1, 5))
        members = len(mine.ensemble.members) + draw(st.integers(0, 2))
        try:
            change(here, mine, start, start + length, members)
        except Infeasible as refused:
            why = refused.explanation
        else:
            return
        assert isinstance(why, Explanation)
        if why.earliest is None:
            return
        assert why.earliest.proved, "so few are tried whole"
        begin = start
        while here.at(begin) < why.earliest.start:
            with pytest.raises(Infeasible):
                change(here, mine, begin, begin + length, members)
            begin += 1
        change(here, mine, begin, begin + length, members)
    finally:
        here.service.close()


def change(here: World, mine: LeaseResult, start: int, end: int, members: int) -> LeaseResult:
    """What would come of it: another window, and so many members."""
    asked = LeaseChange(start=here.at(start), end=here.at(end), counts={"a": members})
    return change_lease(
        here.service.env.in_dry_run(), TENANT, mine.lease.id, asked, None, here.naming()
    )
