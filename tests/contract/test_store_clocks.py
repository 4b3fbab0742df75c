"""Clocks that disagree, or go back: the ledger stays right, whatever instant a commit is told."""

from collections.abc import Iterator

import pytest
from tests.contract.conftest import SetClock

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    DropBookings,
    PutBookings,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.errors import CapacityExceeded
from moorage.domain.period import HOUR, MINUTE, Period
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store

NOON = 1_000 * HOUR
ROOM = 4


@pytest.fixture
def skewed(database_url: str) -> Iterator[tuple[Ledger, Ledger]]:
    """Two processes' ledgers on one database, an hour ahead and an hour behind."""
    ahead = open_store(database_url, clock=SetClock(NOON + HOUR))
    behind = open_store(database_url, clock=SetClock(NOON - HOUR))
    stock = PutInventories("a", (Inventory("VCPU", ROOM),), None)
    ahead.commit(Changeset((CreateProvider("a", "a"), stock)))
    yield ahead, behind
    ahead.close()
    behind.close()


def claim(consumer: str) -> Changeset:
    return Changeset((ReplaceAllocations(Consumer(consumer), {"a": {"VCPU": 1}}, None),))


def held(consumer: str, lapses_at: int) -> Changeset:
    booking = Booking(consumer, "a", {"VCPU": 1}, Period(0), BookingState.HELD, lapses_at=lapses_at)
    return Changeset((PutBookings(Consumer(consumer, "p"), (booking,)),))


def used(store: Ledger) -> tuple[int, int, int]:
    snapshot = store.snapshot()
    columns = snapshot.classes["VCPU"]
    row = snapshot.row("a")
    return int(columns.used[0]), int(columns.peak[0]), int(snapshot.generation[row])


def test_each_sees_at_once_what_the_other_has_committed(skewed: tuple[Ledger, Ledger]) -> None:
    for number in range(ROOM):
        skewed[number % 2].commit(claim(f"c{number}"))
        expected = (number + 1, number + 1, number + 2)
        assert [used(store) for store in skewed] == [expected, expected]


def test_neither_books_more_than_there_is(skewed: tuple[Ledger, Ledger]) -> None:
    """What begins an hour from now, by the other's clock, takes its place all the same."""
    for number in range(ROOM):
        skewed[number % 2].commit(claim(f"c{number}"))
    for store in skewed:
        with pytest.raises(CapacityExceeded):
            store.commit(claim("one-too-many"))
    assert [used(store)[0] for store in skewed] == [ROOM, ROOM]


def test_a_clock_that_goes_back_loses_nothing(database_url: str) -> None:
    clock = SetClock(NOON)
    store = open_store(database_url, clock=clock)
    stock = PutInventories("a", (Inventory("VCPU", ROOM),), None)
    store.commit(Changeset((CreateProvider("a", "a"), stock)))
    store.commit(claim("before"))
    assert used(store) == (1, 1, 2)
    clock.instant = NOON - HOUR
    assert used(store) == (1, 1, 2)
    for number in range(ROOM - 1):
        store.commit(claim(f"after-{number}"))
    with pytest.raises(CapacityExceeded):
        store.commit(claim("one-too-many"))
    clock.instant = NOON + HOUR
    assert used(store) == (ROOM, ROOM, ROOM + 1)
    store.close()


def test_a_server_has_one_clock_whatever_its_clients_have(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the time is the database's: a process whose own is a day behind agrees with others."""
    right = open_store(postgres_url)
    monkeypatch.setattr("time.time_ns", lambda: 0)
    monkeypatch.setattr("time.time", lambda: 0.0)
    wrong = open_store(postgres_url)
    before = right.now()
    committed = wrong.commit(Changeset((CreateProvider("a", "a"),)))
    assert before <= committed.at <= right.now()
    assert abs(wrong.snapshot().taken_at - right.snapshot().taken_at) < HOUR
    wrong.close()
    right.close()


class Leaps:
    """A clock that is set back between the first look of a commit and the second."""

    def __init__(self, *instants: int) -> None:
        self.instants = list(instants)

    def now(self) -> int:
        return self.instants.pop(0) if len(self.instants) > 1 else self.instants[0]


@pytest.mark.parametrize("until", [None, NOON], ids=["on the usual terms", "with an end"])
@pytest.mark.parametrize("taken", ["allocated", "held"])
def test_who_guessed_the_time_wrong_by_hours_is_judged_by_the_right_one(
    database_url: str, taken: str, until: int | None
) -> None:
    """At the guess all has ended that takes the room when the commit comes."""
    early = open_store(database_url, clock=SetClock(NOON - 3 * HOUR))
    stock = PutInventories("a", (Inventory("VCPU", ROOM),), None)
    early.commit(Changeset((CreateProvider("a", "a"), stock)))
    amounts = {"VCPU": ROOM}
    if taken == "allocated":
        full = ReplaceAllocations(Consumer("full"), {"a": amounts}, None, until=NOON)
        early.commit(Changeset((full,)))
    else:
        period = Period(NOON - 3 * HOUR, NOON)
        booking = Booking("full", "a", amounts, period, BookingState.HELD, lapses_at=NOON)
        early.commit(Changeset((PutBookings(Consumer("full", "p"), (booking,)),)))
    early.close()

    late = open_store(database_url, clock=Leaps(NOON + HOUR, NOON - 2 * HOUR))
    more = ReplaceAllocations(Consumer("more"), {"a": {"VCPU": 1}}, None, until=until)
    with pytest.raises(CapacityExceeded) as refused:
        late.commit(Changeset((more,)))
    assert (refused.value.free, refused.value.requested) == (0, 1)
    assert late.consumer("more") is None
    late.close()


def test_a_right_guess_judges_alike(database_url: str) -> None:
    """A minute more or less does not matter; what has room is booked by either way of judging."""
    for number, clock in enumerate((Leaps(NOON, NOON), Leaps(NOON + HOUR, NOON))):
        store = open_store(database_url, clock=SetClock(NOON - HOUR))
        if number == 0:
            stock = PutInventories("a", (Inventory("VCPU", ROOM),), None)
            store.commit(Changeset((CreateProvider("a", "a"), stock)))
        store.close()
        store = open_store(database_url, clock=clock)
        store.commit(claim(f"c{number}"))
        assert used(store)[:2] == (number + 1, number + 1)
        store.close()


def test_what_was_swept_is_gone_for_everybody_also_before_it_lapsed(
    skewed: tuple[Ledger, Ledger],
) -> None:
    """One process deletes a lapsed hold; one that follows, and whose clock is behind, is told."""
    ahead, behind = skewed
    behind.commit(held("early", NOON))
    assert [used(store)[1] for store in skewed] == [0, 1]
    ahead.commit(Changeset((CreateProvider("b", "b"), DropBookings(frozenset({"nobody"})))))
    assert not list(behind.bookings())
    assert [used(store)[1] for store in skewed] == [0, 0]
    behind.commit(claim("late"))
    assert [used(store)[1] for store in skewed] == [1, 1]


def test_what_nobody_has_swept_lives_again_for_everybody(database_url: str) -> None:
    clock = SetClock(NOON)
    store, other = (open_store(database_url, clock=clock) for _ in range(2))
    stock = PutInventories("a", (Inventory("VCPU", ROOM),), None)
    store.commit(Changeset((CreateProvider("a", "a"), stock)))
    store.commit(held("early", NOON + MINUTE))
    for instant, peak in ((NOON, 1), (NOON + MINUTE, 0), (NOON, 1)):
        clock.instant = instant
        assert [used(one)[1] for one in (store, other)] == [peak, peak]
        assert len(list(store.bookings())) == peak
    store.close()
    other.close()
