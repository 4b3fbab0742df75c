"""Leases that are extended, shortened, grown, shrunk, moved, renamed and cancelled."""

from collections.abc import Callable
from dataclasses import replace
from time import process_time
from typing import Any

import pytest
from tests.usecases.leases.conftest import World, described, named

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, PutLease
from moorage.domain.decisions import DecisionState
from moorage.domain.effects import EffectKind, EffectState
from moorage.domain.errors import (
    Contradiction,
    Infeasible,
    InUse,
    InvalidDescription,
    LimitExceeded,
    NotFound,
    StaleGeneration,
    WrongState,
)
from moorage.domain.explain import Explanation
from moorage.domain.leases import LeaseState
from moorage.domain.member_names import MemberName
from moorage.domain.period import DAY, HOUR, MINUTE, Period
from moorage.testing.service import OTHER, TENANT
from moorage.usecases.claims.claim import SecondDescription, claim
from moorage.usecases.claims.hold import confirm, release, renew
from moorage.usecases.claims.outcome import activate
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.change import change_lease
from moorage.usecases.leases.queries import remaining
from moorage.usecases.leases.requests import LeaseChange, LeaseResult

Make = Callable[..., World]


def take(here: World, made: LeaseResult, member: int, vcpu: int = 1) -> str:
    """Claim a member's place, and let its server run."""
    lease = here.service.store.lease(made.lease.id)
    second = SecondDescription(MemberName("web", member), {"resources": {"VCPU": vcpu}})
    naming = here.naming()
    claim(here.service.env, TENANT, lease.decision_id, second, naming)
    server = named(5000 + member)
    activate(here.service.env, TENANT, naming.id, server)
    return server


def left(here: World, made: LeaseResult) -> tuple[int, int, int]:
    (one,) = remaining(here.service.store, here.service.store.lease(made.lease.id))
    return one.count, one.claimed, one.remaining


def test_extend_and_shorten(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3, vcpu=16)
    longer = here.change(made.lease.id, end=5)
    assert longer.lease.terms.period == Period(here.at(1), here.at(5))
    assert longer.lease.generation == made.lease.generation + 1
    (member,) = made.ensemble.members
    assert here.booking(member.uuid).period.end == here.at(5)
    with pytest.raises(Infeasible):
        here.lease(4, 6, vcpu=1)
    here.change(made.lease.id, end=4)
    here.lease(4, 6, vcpu=16)
    with pytest.raises(Infeasible):
        here.change(made.lease.id, end=4.5)
    kept = here.service.store.lease(made.lease.id)
    assert kept.terms.period.end == here.at(4)
    assert here.booking(member.uuid).period.end == here.at(4)


def test_a_pending_lease_moves_and_may_get_other_places(world: Make) -> None:
    here = world(16, 16)
    made = here.lease(1, 3, vcpu=16)
    first = here.host_of(made)
    stays = here.change(made.lease.id, start=2, end=4)
    assert here.host_of(stays) == first
    here.server(16, here.hosts.index(first), until=2)
    moved = here.change(made.lease.id, start=0.5, end=2.5)
    assert here.host_of(moved) != first
    assert moved.lease.terms.period == Period(here.at(0.5), here.at(2.5))
    assert here.service.store.decision(made.decision.id).state is DecisionState.SUPERSEDED


def test_what_a_move_needs_is_judged_without_the_lease_itself(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3, vcpu=16)
    moved = here.change(made.lease.id, start=2, end=4)
    assert moved.lease.terms.period == Period(here.at(2), here.at(4))
    here.lease(1, 2, vcpu=16)


def _counts_told(here: World, made: LeaseResult, count: int) -> list[object]:
    """The counts that a refused growth is told would fit."""
    with pytest.raises(Infeasible) as refused:
        here.change(made.lease.id, counts={"web": count})
    told = refused.value.explanation
    assert isinstance(told, Explanation)
    return [one.change.after for one in told.relaxations if one.change.field == "count"]


def test_grow_and_shrink(world: Make) -> None:
    here = world(4, 4)
    made = here.lease(1, 3, members=2)
    grown = here.change(made.lease.id, counts={"web": 7})
    assert left(here, made) == (7, 0, 7)
    before = {name: place.host for name, place in made.decision.places.items()}
    assert {name: grown.decision.places[name].host for name in before} == before
    assert _counts_told(here, made, 9) == [8], "the nearest that fits"
    assert left(here, made) == (7, 0, 7)
    here.change(made.lease.id, counts={"web": 8})
    assert _counts_told(here, made, 9) == [], "8 again would be no change"
    here.change(made.lease.id, counts={"web": 3})
    assert left(here, made) == (3, 0, 3)
    here.lease(1, 3, members=5)


def test_without_policies_the_last_go_and_many_at_once(world: Make) -> None:
    here = world(*[8] * 40)
    made = here.lease(1, 3, members=320)
    begun = process_time()
    fewer = here.change(made.lease.id, counts={"web": 3})
    assert process_time() - begun < 1
    names = sorted(one.name for one in fewer.ensemble.members)
    assert names == [MemberName("web", number) for number in range(3)]


def test_shrinking_takes_whom_the_policies_miss_least(world: Make) -> None:
    here = world(2, 1)
    spread = {
        "name": "s", "type": "spread", "members": ["*"], "max_skew": 1, "strength": "preferred",
    }  # fmt: skip
    made = here.lease(1, 3, body=described(members=3, policies=[spread]))
    alone = next(
        name for name, place in made.decision.places.items() if place.host == here.hosts[1]
    )
    smaller = here.change(made.lease.id, counts={"web": 2})
    assert alone in smaller.decision.places


def test_claimed_places_stay_and_go_with_the_lease(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3, vcpu=2, members=4, cleaning=10 * MINUTE)
    second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 2}})
    with pytest.raises(WrongState, match="can be claimed during"):
        claim(here.service.env, TENANT, made.decision.id, second, here.naming())
    here.go_to(1)
    here.begin(made.lease.id)
    server = take(here, made, 0, vcpu=2)
    booking = here.booking(server)
    assert (booking.state, booking.period.end) == (
        BookingState.ALLOCATED, here.at(3) + 10 * MINUTE,
    )  # fmt: skip
    assert left(here, made) == (4, 1, 3)
    here.change(made.lease.id, end=5)
    assert here.booking(server).period.end == here.at(5) + 10 * MINUTE
    with pytest.raises(WrongState):
        here.change(made.lease.id, start=1.5)
    here.change(made.lease.id, counts={"web": 1})
    assert left(here, made) == (1, 1, 0)
    with pytest.raises(InUse):
        here.change(made.lease.id, counts={"web": 0})
    take(here, here.change(made.lease.id, counts={"web": 3}), 2, vcpu=2)
    assert left(here, made) == (3, 2, 1)


def test_a_claim_under_way_is_extended_with_its_lease(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3, members=2)
    here.go_to(1)
    here.begin(made.lease.id)
    naming = here.naming()
    second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 1}})
    claim(here.service.env, TENANT, made.decision.id, second, naming)
    here.change(made.lease.id, end=4)
    activate(here.service.env, TENANT, naming.id, named(7777))
    assert here.booking(named(7777)).period.end == here.at(4)


def test_an_active_lease_cannot_be_extended_over_another(world: Make) -> None:
    here = world(16)
    made = here.lease(0, 2, vcpu=16)
    here.begin(made.lease.id)
    server = take(here, made, 0, vcpu=16)
    here.lease(3, 4, vcpu=8)
    here.change(made.lease.id, end=3)
    with pytest.raises(Infeasible):
        here.change(made.lease.id, end=3.5)
    assert here.booking(server).period.end == here.at(3)


def test_what_has_lapsed_is_not_placed_again_by_an_extension(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3, members=3, expiry=HOUR // 2)
    here.go_to(1)
    here.begin(made.lease.id)
    take(here, made, 1)
    here.go_to(1.5)
    assert left(here, made) == (3, 1, 0)
    here.change(made.lease.id, end=4)
    assert left(here, made) == (3, 1, 0)
    here.change(made.lease.id, counts={"web": 5})
    assert left(here, made) == (5, 1, 2)
    here.go_to(2)
    assert left(here, made) == (5, 1, 0)


def test_confirming_frees_what_is_unclaimed(world: Make) -> None:
    here = world(4)
    made = here.lease(1, 3, members=4)
    with pytest.raises(WrongState):
        confirm(here.service.env, TENANT, made.decision.id, None)
    here.go_to(1)
    here.begin(made.lease.id)
    take(here, made, 0)
    confirm(here.service.env, TENANT, made.decision.id, None)
    assert left(here, made) == (4, 1, 0)
    here.lease(1, 2, vcpu=3)


def test_the_hold_of_a_lease_is_the_leases(world: Make) -> None:
    here = world(4)
    made = here.lease(1, 3)
    with pytest.raises(WrongState):
        release(here.service.env, TENANT, made.decision.id, None)
    with pytest.raises(WrongState):
        renew(here.service.env, TENANT, made.decision.id, here.at(0.5), None)


def test_a_new_name_changes_nothing_else(world: Make) -> None:
    here = world(4)
    made = here.lease(1, 3)
    renamed = here.change(made.lease.id, name="other")
    assert renamed.lease.name == "other"
    assert renamed.decision == made.decision
    same = here.change(made.lease.id, name="other", end=3)
    assert same.lease == renamed.lease


def test_the_generation_is_checked_and_the_owner_too(world: Make) -> None:
    here = world(4)
    made = here.lease(1, 3)
    env, change = here.service.env, LeaseChange(end=here.at(4))
    with pytest.raises(StaleGeneration):
        change_lease(env, TENANT, made.lease.id, change, 7, here.naming())
    with pytest.raises(StaleGeneration):
        cancel_lease(env, TENANT, made.lease.id, 7)
    with pytest.raises(NotFound):
        change_lease(env, OTHER, made.lease.id, change, None, here.naming())
    with pytest.raises(NotFound):
        cancel_lease(env, OTHER, made.lease.id)
    change_lease(env, TENANT, made.lease.id, change, 0, here.naming())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"end": 1}, InvalidDescription),
        ({"start": -2}, InvalidDescription),
        ({"start": 5}, InvalidDescription),
        ({"end": 24 * 400}, LimitExceeded),
        ({"counts": {"db": 1}}, InvalidDescription),
        ({"counts": {"web": -1}}, InvalidDescription),
        ({"counts": {"web": 0}}, InvalidDescription),
        ({"counts": {"web": 10**9}}, LimitExceeded),
    ],
)
def test_impossible_changes_leave_the_lease_as_it_is(
    world: Make, change: dict[str, Any], error: type[Exception]
) -> None:
    here = world(4)
    made = here.lease(1, 3)
    with pytest.raises(error):
        here.change(made.lease.id, **change)
    assert here.service.store.lease(made.lease.id) == made.lease


def test_dry_changes_write_nothing(world: Make) -> None:
    here = world(4)
    made = here.lease(1, 3)
    told = change_lease(
        here.service.env.in_dry_run(),
        TENANT,
        made.lease.id,
        LeaseChange(end=here.at(5), counts={"web": 2}),
        None,
        here.naming(),
    )
    assert told.lease.terms.period.end == here.at(5)
    assert len(told.decision.places) == 2
    assert here.service.store.lease(made.lease.id) == made.lease
    assert left(here, made) == (1, 0, 1)


def test_a_cancelled_lease_holds_nothing(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3, vcpu=16)
    told = cancel_lease(here.service.env.in_dry_run(), TENANT, made.lease.id)
    assert told.state is LeaseState.CLOSED
    assert here.service.store.lease(made.lease.id).state is LeaseState.PENDING
    gone = cancel_lease(here.service.env, TENANT, made.lease.id)
    assert gone.state is LeaseState.CLOSED
    assert here.service.store.decision(made.decision.id).state is DecisionState.RELEASED
    here.server(16)
    with pytest.raises(WrongState):
        cancel_lease(here.service.env, TENANT, made.lease.id)
    with pytest.raises(WrongState):
        here.change(made.lease.id, end=4)
    assert here.change(made.lease.id, name="old").lease.name == "old"
    effects = here.service.store.effects(made.lease.id)
    assert not [one for one in effects if one.state is EffectState.PENDING]


def test_an_ensemble_is_free_once_its_lease_is_closed(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3)
    cancel_lease(here.service.env, TENANT, made.lease.id)
    here.lease(2, 4, ensemble_id=made.ensemble.id)


def test_an_active_lease_that_is_cancelled_ends_now(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3, vcpu=4, members=3, cleaning=10 * MINUTE)
    here.go_to(1)
    here.begin(made.lease.id)
    server = take(here, made, 0, vcpu=4)
    here.go_to(2)
    over = cancel_lease(here.service.env, TENANT, made.lease.id)
    assert over.terms.period == Period(here.at(1), here.at(2))
    assert over.state is LeaseState.ENDING
    assert not over.claimable(here.now)
    assert left(here, made) == (3, 1, 0)
    assert here.booking(server).period.end == here.at(3) + 10 * MINUTE
    (end,) = here.service.store.due_effects(10)
    assert (end.kind, end.subject) == (EffectKind.DELETE, server)
    here.ensemble(12)


@pytest.mark.parametrize("clock", [0.0, -0.5], ids=["at its start", "after the clock went back"])
def test_a_lease_can_be_cancelled_as_soon_as_it_is_active(world: Make, clock: float) -> None:
    here = world(16)
    made = here.lease(0, 3, expiry=HOUR)
    here.begin(made.lease.id)
    here.go_to(clock)
    told = cancel_lease(here.service.env.in_dry_run(), TENANT, made.lease.id)
    assert told.state is LeaseState.CLOSED
    assert here.service.store.lease(made.lease.id).state is LeaseState.ACTIVE
    over = cancel_lease(here.service.env, TENANT, made.lease.id)
    start = made.lease.terms.period.start
    assert over.terms.period == Period(start, start + 1)
    assert over.state is LeaseState.CLOSED
    here.ensemble(16)
    here.go_to(0.1)
    assert not over.claimable(here.now)
    assert here.service.store.due_effects(10) == []


def test_a_starting_lease_that_is_cancelled_is_closed(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3, lead=HOUR // 2)
    starting = replace(made.lease, state=LeaseState.STARTING)
    here.service.store.commit(Changeset((PutLease(starting, made.lease.generation),)))
    assert cancel_lease(here.service.env, TENANT, made.lease.id).state is LeaseState.CLOSED


def test_fewer_than_the_policies_ask_for_are_refused(world: Make) -> None:
    here = world(4, 4, 4)
    body = described(vcpu=1, members=3) | {
        "policies": [
            {
                "name": "ha",
                "type": "survive",
                "members": ["web"],
                "level": "host",
                "lose": 1,
                "keep": 2,
            }
        ]
    }
    made = here.lease(1, 3, body=body)
    with pytest.raises(Contradiction):
        here.change(made.lease.id, counts={"web": 2})
    assert here.service.store.lease(made.lease.id) == made.lease


def test_a_lease_ends_after_it_starts(world: Make) -> None:
    here = world(4)
    made = here.lease(1, 3)
    with pytest.raises(InvalidDescription, match="a lease ends after it starts") as refused:
        here.change(made.lease.id, end=1)
    assert refused.value.path == "lease.end"


def test_a_lease_is_as_long_as_its_places_are_kept(world: Make) -> None:
    here = world(4)
    with pytest.raises(LimitExceeded, match=r"lasts: 365d at most \(longest_lease\), not 365d1h"):
        here.lease(25, 25 + 364 * 24, lead=DAY, cleaning=HOUR)


@pytest.mark.parametrize("side", ["lead", "cleaning"])
def test_places_are_kept_a_day_around_a_lease_at_most(world: Make, side: str) -> None:
    """Quotas count neither."""
    here = world(4)
    longest: dict[str, Any] = {side: DAY}
    here.lease(25, 26, **longest)
    with pytest.raises(InvalidDescription, match=rf"{side} .* 1d at most \(longest_{side}\)"):
        here.lease(50, 51, **{**longest, side: DAY + 1})


def test_no_end_is_offered_that_comes_before_the_start(world: Make) -> None:
    """What is in the way is in the way of the lead: no end helps."""
    here = world(4)
    here.lease(2.5, 4, vcpu=4)
    with pytest.raises(Infeasible) as refused:
        here.lease(5, 8, vcpu=4, lead=3 * HOUR)
    told = refused.value.explanation
    assert isinstance(told, Explanation)
    assert isinstance(told, Explanation)
    assert all(one.change.field != "end" for one in told.relaxations)
