"""The store contract: leases, reservations, effects; bookings that end, and that yield."""

from dataclasses import replace

import pytest
from tests.contract.conftest import SetClock
from tests.contract.test_store_bookings import allocate, hold, hosts, write

from moorage.domain.bookings import Binding, Booking, BookingState
from moorage.domain.changes import (
    Change,
    Changeset,
    DeleteAllocations,
    DropEffects,
    EndBookings,
    PutBookings,
    PutEffect,
    PutLease,
    ReplaceAllocations,
    Stay,
    SwapHold,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.effects import Effect, EffectKind, EffectState, Lane
from moorage.domain.errors import (
    CapacityExceeded,
    ConcurrentUpdate,
    DuplicateName,
    InvalidDescription,
    NotFound,
    PlaceLeft,
    WrongState,
)
from moorage.domain.leases import Lease, LeaseState, Reservation, Terms, Yielding
from moorage.domain.offers import Offer, OfferState
from moorage.domain.period import FOREVER, Period
from moorage.store import Ledger
from moorage.usecases.paging import Page

__all__ = ["hosts"]

LEASE = Lease(
    id="l",
    project_id="p",
    user_id="u",
    name="shop next week",
    ensemble_id="e",
    decision_id="d",
    terms=Terms(Period(5_000, 9_000), lead=500, cleaning=100, expiry=200, priority=7),
    state=LeaseState.PENDING,
    reservations=(Reservation("r1", "web"), Reservation("r2", "db")),
    actions={"on_end": ("notify:PT24H", "release")},
    digest="request",
)


def effect(name: str, due: int, subject: str = "l") -> Effect:
    return Effect(name, EffectKind.ACTIVATE, subject, "p", due, due, details={"lease": "l"})


def preemptible(consumer: str, vcpu: int, end: int = FOREVER) -> PutBookings:
    booking = Booking(
        consumer,
        "a",
        {"VCPU": vcpu},
        Period(1_000, end),
        BookingState.HELD,
        preemptible=True,
    )
    return PutBookings(Consumer(consumer, "p"), (booking,))


def test_a_lease_comes_back_as_it_was_written(store: Ledger) -> None:
    write(store, PutLease(LEASE, None))
    written = replace(LEASE, serial=1)
    assert store.lease("l") == written
    assert store.lease_of_reservation("r2") == written
    assert list(store.leases_of("e")) == [written]
    assert store.leases_of("another") == []


def test_leases_are_counted_by_project(store: Ledger) -> None:
    """Whatever a changeset says, offers too, and nobody's number changes afterwards."""
    offer = Offer("o", 5_000, proved=True, score=1.0, places=1)
    second = replace(LEASE, id="m", reservations=(), serial=7, state=LeaseState.OFFERED)
    other = replace(LEASE, id="n", reservations=(), project_id="q")
    write(store, *(PutLease(one, None) for one in (LEASE, replace(second, offer=offer), other)))
    assert [store.lease(one).handle for one in ("l", "m", "n")] == ["L1", "o2", "L1"]
    taken = replace(store.lease("m"), offer=replace(offer, state=OfferState.ACCEPTED))
    write(store, PutLease(replace(taken, state=LeaseState.PENDING), 0))
    assert store.lease("m").handle == "L2"


def test_a_lease_changes_from_the_generation_that_was_seen(store: Ledger) -> None:
    write(store, PutLease(LEASE, None))
    moved = replace(
        LEASE,
        terms=LEASE.terms.moved(Period(6_000, 9_500)),
        state=LeaseState.STARTING,
        binding=Binding.BOUND,
        reservations=LEASE.reservations[1:],
        missing=1,
        degraded=True,
        proposal={"subject": "policy", "name": "p", "field": "max", "before": 1, "after": [2]},
    )
    write(store, PutLease(moved, 0))
    assert store.lease("l") == replace(moved, generation=1, serial=1)
    with pytest.raises(ConcurrentUpdate):
        write(store, PutLease(LEASE, 0))
    with pytest.raises(DuplicateName):
        write(store, PutLease(LEASE, None))
    with pytest.raises(NotFound):
        store.lease_of_reservation("r1")
    assert store.lease_of_reservation("r2").generation == 1


def test_leases_are_listed_by_creation_page_by_page(store: Ledger) -> None:
    other = replace(LEASE, id="m", name="m", reservations=(), project_id="q")
    third = replace(LEASE, id="n", reservations=(), state=LeaseState.ACTIVE)
    write(store, *(PutLease(one, None) for one in (LEASE, other, third)))

    def listed(**wanted: object) -> list[str]:
        return [one.id for one in store.leases(**wanted)]  # type: ignore[arg-type]

    assert listed(project_id=None) == ["l", "m", "n"]
    assert listed(project_id="p") == ["l", "n"]
    assert listed(project_id="p", state=LeaseState.ACTIVE) == ["n"]
    assert listed(project_id=None, name="m") == ["m"]
    assert listed(project_id=None, page=Page(limit=1, marker="l")) == ["m"]
    with pytest.raises(NotFound):
        listed(project_id=None, page=Page(marker="nobody"))


def test_terms_keep_who_may_come_before(store: Ledger) -> None:
    only = replace(LEASE.terms, before_start=frozenset({Yielding.BOUNDED}))
    write(store, PutLease(replace(LEASE, terms=only), None))
    write(store, PutLease(replace(LEASE, id="m", reservations=()), None))
    assert store.lease("l").terms == only
    assert [one.id for one in store.exclusive_until_start()] == ["l"]
    begun = replace(LEASE, terms=only, state=LeaseState.ACTIVE)
    write(store, PutLease(begun, 0))
    assert not store.exclusive_until_start()


def test_due_effects_are_the_pending_ones_whose_time_has_come(
    store: Ledger, clock: SetClock
) -> None:
    write(store, *(PutEffect(effect(f"e{due}", due), None) for due in (3_000, 2_000, 5_000)))
    assert store.due_effects(10) == []
    clock.instant = 3_000
    assert [one.id for one in store.due_effects(10)] == ["e2000", "e3000"]
    assert [one.id for one in store.due_effects(1)] == ["e2000"]
    first = store.due_effects(1)[0]
    assert first == effect("e2000", 2_000)
    write(store, PutEffect(replace(first, attempts=1, not_before=4_000), 0))
    assert [one.id for one in store.due_effects(10)] == ["e3000"]
    with pytest.raises(ConcurrentUpdate):
        write(store, PutEffect(replace(first, attempts=1), 0))
    done = replace(first, attempts=1, state=EffectState.DONE, outcome="active")
    write(store, PutEffect(done, 1))
    clock.instant = 9_000
    assert [one.id for one in store.due_effects(10)] == ["e3000", "e5000"]
    assert [one.id for one in store.effects("l")] == ["e3000", "e2000", "e5000"]


def test_what_is_still_to_be_done_is_dropped_and_the_record_stays(
    store: Ledger, clock: SetClock
) -> None:
    done = replace(effect("done", 1), state=EffectState.DONE)
    mine, other = effect("mine", 2_000), effect("other", 2_000, subject="m")
    write(store, *(PutEffect(one, None) for one in (done, mine, other)))
    write(store, DropEffects("l"))
    clock.instant = 3_000
    assert [one.id for one in store.due_effects(10)] == ["other"]
    assert [one.id for one in store.effects("l")] == ["done"]


def test_only_effects_of_some_kinds_are_dropped(store: Ledger, clock: SetClock) -> None:
    told = replace(effect("told", 2_000), kind=EffectKind.NOTIFY)
    write(store, *(PutEffect(one, None) for one in (effect("edge", 2_000), told)))
    write(store, DropEffects("l", frozenset({EffectKind.ACTIVATE, EffectKind.END})))
    clock.instant = 3_000
    assert [one.id for one in store.due_effects(10)] == ["told"]


def test_an_allocation_may_end_and_its_rewrites_end_with_it(store: Ledger, clock: SetClock) -> None:
    write(store, replace(allocate("s", {"a": {"VCPU": 6}}), until=4_000))
    write(store, hold("later", "a", 8, period=Period(4_000, 6_000)))
    clock.instant = 2_000
    write(store, allocate("s", {"a": {"VCPU": 5}}))
    found = store.consumer("s")
    assert found is not None
    assert [one.period for one in found[1]] == [Period(1_000, 4_000)]
    with pytest.raises(CapacityExceeded):
        write(store, replace(allocate("s", {"a": {"VCPU": 5}}), until=4_001))
    with pytest.raises(InvalidDescription):
        write(store, replace(allocate("s", {"a": {"VCPU": 5}}), until=2_000))


def test_an_overrun_allocation_stays_overrun_when_it_is_written_again(
    store: Ledger, clock: SetClock
) -> None:
    write(store, replace(allocate("s", {"a": {"VCPU": 6}}), until=4_000))
    clock.instant = 5_000
    write(store, allocate("s", {"a": {"VCPU": 6}}))
    found = store.consumer("s")
    assert found is not None
    assert [one.period for one in found[1]] == [Period(1_000, 4_000)]
    with pytest.raises(CapacityExceeded):
        write(store, hold("later", "a", 3, period=Period(8_000, 9_000)))


def test_preemptible_bookings_yield_to_a_lease_and_get_their_end_back(
    store: Ledger, clock: SetClock
) -> None:
    write(store, preemptible("s", 6))
    promised = hold("lease", "a", 8, period=Period(4_000, 6_000))
    with pytest.raises(CapacityExceeded):
        write(store, promised)
    write(store, EndBookings(frozenset({"s", "nobody"}), 3_900, "l"), promised)
    ((owner, booking),) = store.yielding("l")
    assert (owner.uuid, booking.period.end, booking.declared_end) == ("s", 3_900, FOREVER)
    write(store, EndBookings(frozenset({"s"}), 3_000, "l"))
    assert store.yielding("l")[0][1].declared_end == FOREVER
    with pytest.raises(CapacityExceeded):
        write(store, EndBookings(frozenset({"s"}), FOREVER))
    write(store, PutBookings(Consumer("lease", "p"), ()), EndBookings(frozenset({"s"}), FOREVER))
    assert store.yielding("l") == []
    ((_, back),) = store.bookings(consumer="s")
    assert (back.period.end, back.yields_to, back.declared_end) == (FOREVER, None, None)
    assert back.preemptible


@pytest.mark.parametrize("end", [999, 1_000])
def test_nothing_ends_before_it_begins(store: Ledger, end: int) -> None:
    """A clock that was set back asks for that."""
    write(store, preemptible("s", 6))
    ((_, before),) = store.bookings(consumer="s")
    assert before.period.start == 1_000
    with pytest.raises(WrongState, match=r"s begins at .* and cannot end at"):
        write(store, EndBookings(frozenset({"s"}), end, "l"))
    assert [one for _, one in store.bookings(consumer="s")] == [before]


def test_who_is_not_preemptible_does_not_yield(store: Ledger) -> None:
    write(store, allocate("s", {"a": {"VCPU": 6}}))
    with pytest.raises(ConcurrentUpdate):
        write(store, EndBookings(frozenset({"s"}), 3_900, "l"))
    write(store, EndBookings(frozenset({"s"}), 3_900))
    write(store, hold("later", "a", 8, period=Period(3_900, 6_000)))


def test_a_server_is_as_preemptible_as_the_hold_it_took(store: Ledger) -> None:
    write(store, preemptible("m", 6, end=8_000))
    write(store, SwapHold("m", Consumer("s", "p")))
    write(store, EndBookings(frozenset({"s"}), 3_900, "l"))
    write(store, allocate("s", {"a": {"VCPU": 6}}, ANY_GENERATION))
    found = store.consumer("s")
    assert found is not None
    (booking,) = found[1]
    assert booking.preemptible
    assert (booking.period.end, booking.yields_to, booking.declared_end) == (3_900, "l", 8_000)


def test_an_effect_that_is_done_stays_done(store: Ledger) -> None:
    write(store, PutEffect(effect("e", 500), None))
    (first,) = store.due_effects(10)
    taken = replace(first, attempts=1)
    write(store, PutEffect(taken, 0), PutEffect(replace(taken, state=EffectState.DONE), 1))
    with pytest.raises(ConcurrentUpdate, match="done already"):
        write(store, PutEffect(replace(taken, attempts=2), 1))
    assert [one.state for one in store.effects("l")] == [EffectState.DONE]


def test_who_yields_and_what_is_booked_is_read_exactly_while_it_lives(
    store: Ledger, clock: SetClock
) -> None:
    lapsing = hold("lapsing", "a", 1, period=Period(1_000), lapses_at=3_900)
    write(store, preemptible("m", 1), preemptible("held", 1), lapsing)
    write(store, SwapHold("m", Consumer("server", "p")))
    write(store, EndBookings(frozenset({"held", "server"}), 3_900, "l"))
    every = [booking for _, booking in store.bookings()]
    assert len(every) == 3
    seen: list[set[str]] = []
    for clock.instant in (3_899, 3_900, 3_901):
        living = {one.consumer: one.yields_to for one in every if one.live(clock.instant)}
        yielding = {one for one, lease in living.items() if lease == "l"}
        assert {one.uuid for one, _ in store.bookings()} == living.keys()
        assert {one.uuid for one, _ in store.yielding("l")} == yielding
        seen.append(yielding)
    assert seen == [{"held", "server"}, {"server"}, {"server"}], "it is overrun"


def test_an_effect_that_is_gone_is_not_found(store: Ledger) -> None:
    with pytest.raises(NotFound):
        write(store, PutEffect(replace(effect("e", 500), attempts=1), 0))


def test_due_effects_are_found_by_lane(store: Ledger) -> None:
    told = replace(effect("told", 300), kind=EffectKind.NOTIFY)
    write(store, *(PutEffect(one, None) for one in (effect("life", 400), told)))
    assert [one.id for one in store.due_effects(10)] == ["told", "life"]
    assert [one.id for one in store.due_effects(10, Lane.LIFE)] == ["life"]
    assert [one.id for one in store.due_effects(10, Lane.TELL)] == ["told"]
    assert store.due_effects(10, Lane.HOOK) == []
    assert store.pending_effects() == {Lane.LIFE: (1, 400), Lane.TELL: (1, 300)}


def test_the_overrun_are_those_whose_end_has_come(store: Ledger, clock: SetClock) -> None:
    for server, end in (("late", 2_000), ("b", 1_500), ("a", 1_500), ("open", None)):
        write(store, replace(allocate(server, {"a": {"VCPU": 1}}), until=end))
    assert store.overrun((0, ""), 10) == []
    clock.instant = 1_500
    assert [(one.consumer.uuid, one.end) for one in store.overrun((0, ""), 10)] == [
        ("a", 1_500),
        ("b", 1_500),
    ]
    clock.instant = 9_000
    assert [one.consumer.uuid for one in store.overrun((1_500, "a"), 10)] == ["b", "late"]
    assert [one.consumer.uuid for one in store.overrun((0, ""), 1)] == ["a"]
    assert [one.consumer.uuid for one in store.overrun((1_500, "b"), 10)] == ["late"]


# --- what a place's server leaves behind ------------------------------------------------------

DRAWN = Stay(until=4_000, decision="d")


def drawn(consumer: str, vcpu: int = 6, stay: Stay = DRAWN) -> ReplaceAllocations:
    """A server in the place of a decision's member, until 4,000."""
    return replace(allocate(consumer, {"a": {"VCPU": vcpu}}), stay=stay)


def left(store: Ledger, *changes: Change) -> tuple[str, ...]:
    """Who would leave a place with these changes; nothing is written."""
    with pytest.raises(PlaceLeft) as caught:
        write(store, *changes)
    return caught.value.consumers


def terms(store: Ledger, consumer: str) -> tuple[int, str | None]:
    found = store.consumer(consumer)
    assert found is not None
    ((end, decision),) = {(one.period.end, one.decision) for one in found[1]}
    return end, decision


def test_a_first_allocation_says_how_long_it_stays(store: Ledger) -> None:
    for name, stay, end in (
        ("life", Stay(life=500), 1_500),
        ("until", Stay(until=1_700), 1_700),
        ("both", Stay(life=500, until=1_700), 1_500),
        ("open", Stay(), FOREVER),
    ):
        write(store, drawn(name, 1, stay))
        assert terms(store, name) == (end, None)
    with pytest.raises(InvalidDescription):
        write(store, drawn("past", 1, Stay(until=1_000)))
    write(store, drawn("yields", 1, Stay(life=5_000, until=2_000, preemptible=True, yields_to="l")))
    ((owner, booking),) = store.yielding("l")
    assert (owner.uuid, booking.period.end, booking.declared_end) == ("yields", 2_000, 6_000)


@pytest.mark.parametrize(("stay", "end"), [(DRAWN, 4_000), (Stay(decision="d"), FOREVER)])
def test_nobody_leaves_a_place_unseen(store: Ledger, stay: Stay, end: int) -> None:
    write(store, drawn("s", stay=stay))
    assert left(store, DeleteAllocations("s")) == ("s",)
    assert left(store, allocate("s", {}, ANY_GENERATION)) == ("s",)
    assert left(store, allocate("s", {"b": {"VCPU": 1}}, ANY_GENERATION)) == ("s",)
    assert terms(store, "s") == (end, "d")
    write(store, allocate("s", {"a": {"VCPU": 5}}, ANY_GENERATION))
    write(store, allocate("s", {"a": {"VCPU": 5}, "b": {"VCPU": 1}}, ANY_GENERATION))
    assert terms(store, "s") == (end, "d")
    store.commit(Changeset((DeleteAllocations("s"),), releases_places=True))
    assert store.consumer("s") is None


def test_who_gets_a_place_as_it_was_has_its_terms(store: Ledger) -> None:
    write(store, drawn("s"), hold("later", "a", 8, period=Period(4_000, 6_000)))
    taken = allocate("m", {"a": {"VCPU": 6}})
    with pytest.raises(PlaceLeft):
        write(store, allocate("s", {}, 1), taken)  # equal amounts alone say nothing
    write(store, allocate("s", {}, 1), replace(taken, takes_over="s"))
    assert terms(store, "m") == (4_000, "d")
    less = replace(allocate("s", {"a": {"VCPU": 5}}), takes_over="m")
    with pytest.raises((PlaceLeft, CapacityExceeded)):
        write(store, allocate("m", {}, 1), less)
    write(store, drawn("s", 1, Stay(life=100)))
    back = replace(allocate("s", {"a": {"VCPU": 6}}, 1), takes_over="m")
    write(store, allocate("m", {}, 1), back)
    assert terms(store, "s") == (4_000, "d"), "also over what it has already"


def test_only_places_of_decisions_are_not_left_without_a_word(store: Ledger) -> None:
    write(store, drawn("s", 6, Stay(decision="d")), drawn("t", 1, Stay(life=100)))
    write(store, DeleteAllocations("t"))
    with pytest.raises(PlaceLeft):
        write(store, DeleteAllocations("s"))
    assert store.consumer("s") is not None
    store.commit(Changeset((DeleteAllocations("s"),), releases_places=True))
    assert store.consumer("s") is None
