"""The store contract: allocations, holds and the swap; generations as on Placement's wire."""

import pytest
from tests.contract.conftest import SetClock

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    Change,
    Changeset,
    Committed,
    CreateProvider,
    DeleteAllocations,
    DropBookings,
    PutBookings,
    PutInventories,
    ReplaceAllocations,
    SwapHold,
    TakeHold,
)
from moorage.domain.consumers import ANY_GENERATION, AnyGeneration, Consumer
from moorage.domain.errors import (
    CapacityExceeded,
    ConstraintViolated,
    ConsumerConflict,
    HoldExpired,
    InvalidDescription,
    NotFound,
    UnknownName,
)
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.store import Ledger
from moorage.usecases.paging import Page


def write(store: Ledger, *changes: Change) -> Committed:
    return store.commit(Changeset(changes))


@pytest.fixture(autouse=True)
def hosts(store: Ledger) -> None:
    for name in "ab":
        write(
            store,
            CreateProvider(name, name),
            PutInventories(
                name, (Inventory("VCPU", 8), Inventory("MEMORY_MB", 64, step_size=2)), None
            ),
        )


def allocate(
    consumer: str,
    amounts: dict[str, dict[str, int]],
    generation: int | AnyGeneration | None = ANY_GENERATION,
    **more: str,
) -> ReplaceAllocations:
    return ReplaceAllocations(Consumer(consumer, **more), amounts, generation)  # type: ignore[arg-type]


def hold(
    consumer: str, provider: str, vcpu: int, *, period: Period, lapses_at: int = FOREVER
) -> PutBookings:
    booking = Booking(
        consumer, provider, {"VCPU": vcpu}, period, BookingState.HELD, lapses_at, decision="d"
    )
    return PutBookings(Consumer(consumer, "p"), (booking,))


def used(store: Ledger, name: str = "VCPU") -> dict[str, int]:
    snapshot = store.snapshot()
    columns = snapshot.classes[name]
    rows = [snapshot.uuids[row] for row in columns.rows]
    return dict(zip(rows, columns.used.tolist(), strict=True))


# --- allocations ------------------------------------------------------------------------------


def test_a_consumer_is_born_with_its_first_allocation(store: Ledger) -> None:
    assert store.consumer("c") is None
    done = write(store, allocate("c", {"a": {"VCPU": 2, "MEMORY_MB": 4}}, None))
    assert done.consumer_generations == {"c": 1}
    assert done.provider_generations == {"a": 2}
    found = store.consumer("c")
    assert found is not None
    assert (found[0].generation, found[0].type) == (1, "unknown")
    (booking,) = found[1]
    assert booking.amounts == {"MEMORY_MB": 4, "VCPU": 2}
    assert booking.period == Period(1_000)
    assert booking.state is BookingState.ALLOCATED


def test_a_rewrite_replaces_the_whole_set_and_its_owner(store: Ledger) -> None:
    write(store, allocate("c", {"a": {"VCPU": 8}}, project_id="p", user_id="u", type="INSTANCE"))
    done = write(store, allocate("c", {"b": {"VCPU": 3}}, 1, project_id="q", user_id="v"))
    assert done.consumer_generations == {"c": 2}
    assert done.provider_generations == {"a": 2, "b": 2}, "the one left behind is not bumped"
    assert used(store) == {"a": 0, "b": 3}
    assert store.usages("p") == []
    assert store.usages("q") == store.usages("q", "v")
    ((owner, booking),) = store.usages("q", "v")
    assert (owner.uuid, owner.type, booking.provider) == ("c", "INSTANCE", "b")
    assert store.usages("q", "u") == []


def test_consumer_generations_are_compared(store: Ledger) -> None:
    for wrong in (0, 1):
        with pytest.raises(ConsumerConflict):
            write(store, allocate("c", {"a": {"VCPU": 1}}, wrong))
    write(store, allocate("c", {"a": {"VCPU": 1}}, None))
    for wrong_now in (None, 0, 2):
        with pytest.raises(ConsumerConflict) as refused:
            write(store, allocate("c", {"a": {"VCPU": 2}}, wrong_now))
        assert (refused.value.expected, refused.value.actual) == (wrong_now, 1)
    write(store, allocate("c", {"a": {"VCPU": 2}}, ANY_GENERATION))
    found = store.consumer("c")
    assert found is not None
    assert found[0].generation == 2


def test_clearing_bumps_and_forgets(store: Ledger) -> None:
    write(store, allocate("c", {"a": {"VCPU": 1}, "b": {"VCPU": 1}}))
    done = write(store, allocate("c", {}, 1))
    assert done.provider_generations == {"a": 3, "b": 3}
    assert store.consumer("c") is None
    assert write(store, allocate("c", {"a": {"VCPU": 1}}, None)).consumer_generations == {"c": 1}


def test_clearing_nobody_changes_nothing(store: Ledger) -> None:
    assert write(store, allocate("c", {}, None)).provider_generations == {}
    assert store.consumer("c") is None


def test_deleting_bumps_nothing(store: Ledger) -> None:
    write(store, allocate("c", {"a": {"VCPU": 1}}))
    before = store.snapshot()
    done = write(store, DeleteAllocations("c"))
    after = store.snapshot()
    assert done.provider_generations == {"a": 2}
    assert before.generation.tolist() == after.generation.tolist()
    assert after.revisions[after.row("a")] == before.revisions[before.row("a")] + 1
    assert store.consumer("c") is None
    with pytest.raises(NotFound):
        write(store, DeleteAllocations("c"))


def test_a_provider_moves_once_per_changeset(store: Ledger) -> None:
    done = write(store, allocate("c", {"a": {"VCPU": 1}}), allocate("d", {"a": {"VCPU": 1}}))
    assert done.provider_generations == {"a": 2}


@pytest.mark.parametrize(
    ("amounts", "error"),
    [
        ({"nobody": {"VCPU": 1}}, UnknownName),
        ({"a": {"CUSTOM_NOT": 1}}, UnknownName),
        ({"a": {"DISK_GB": 1}}, ConstraintViolated),
        ({"a": {"MEMORY_MB": 3}}, ConstraintViolated),
        ({"a": {"VCPU": 0}}, InvalidDescription),
        ({"a": {}}, InvalidDescription),
        ({"a": {"VCPU": 9}}, CapacityExceeded),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_no_consumer(
    store: Ledger, amounts: dict[str, dict[str, int]], error: type[Exception]
) -> None:
    before = store.snapshot().revision
    with pytest.raises(error):
        write(store, allocate("c", amounts))
    assert store.consumer("c") is None
    assert store.bookings() == []
    assert store.snapshot().revision == before


def test_own_use_does_not_count_against_a_rewrite(store: Ledger) -> None:
    write(store, allocate("c", {"a": {"VCPU": 5}}))
    write(store, allocate("c", {"a": {"VCPU": 8}}))
    with pytest.raises(CapacityExceeded) as refused:
        write(store, allocate("d", {"a": {"VCPU": 2}}))
    assert (refused.value.free, refused.value.requested) == (0, 2)


def test_on_an_over_full_provider_use_may_not_rise(store: Ledger) -> None:
    write(store, allocate("c", {"a": {"VCPU": 5}}), allocate("d", {"a": {"VCPU": 3}}))
    write(store, PutInventories("a", (Inventory("VCPU", 4),), None))
    write(store, allocate("c", {"a": {"VCPU": 4}}))
    write(store, allocate("c", {"a": {"VCPU": 4}}))
    with pytest.raises(CapacityExceeded):
        write(store, allocate("c", {"a": {"VCPU": 5}}))
    with pytest.raises(CapacityExceeded):
        write(store, allocate("e", {"a": {"VCPU": 1}}))
    assert used(store)["a"] == 7


def test_one_changeset_moves_capacity_between_consumers(store: Ledger) -> None:
    write(store, allocate("c", {"a": {"VCPU": 8}}))
    write(store, allocate("d", {"a": {"VCPU": 8}}), allocate("c", {"b": {"VCPU": 8}}))
    assert used(store) == {"a": 8, "b": 8}


def test_who_is_on_a_provider(store: Ledger) -> None:
    write(store, allocate("c", {"a": {"VCPU": 1}, "b": {"VCPU": 2}}))
    write(store, hold("h", "a", 1, period=Period(1_000)))
    generation, ((owner, booking),) = store.allocations_of_provider("a")
    assert (owner.uuid, booking.amounts) == ("c", {"VCPU": 1})
    assert [len(store.allocations_of_provider(one)[1]) for one in "ab"] == [1, 1]
    found = store.allocations_of_consumer("c")
    assert found is not None
    consumer, bookings, generations = found
    assert (consumer, bookings) == store.consumer("c")
    assert generations == {"a": generation, "b": store.provider("b").generation}
    assert store.allocations_of_consumer("h") is None, "what is held is no allocation"
    with pytest.raises(NotFound):
        store.allocations_of_provider("nobody")


# --- holds ------------------------------------------------------------------------------------


def test_a_hold_counts_but_does_not_show(store: Ledger) -> None:
    before = store.snapshot()
    done = write(store, hold("h", "a", 6, period=Period(1_000)))
    snapshot = store.snapshot()
    assert done.provider_generations == {"a": 1}, "no wire generation moves"
    assert snapshot.revisions[snapshot.row("a")] == before.revisions[before.row("a")] + 1
    assert store.consumer("h") is None
    assert used(store)["a"] == 0
    assert snapshot.classes["VCPU"].peak.tolist() == [6, 0]
    assert [one.consumer for one in snapshot.occupants(snapshot.row("a"))] == ["h"]
    with pytest.raises(CapacityExceeded):
        write(store, allocate("c", {"a": {"VCPU": 3}}))
    write(store, allocate("c", {"a": {"VCPU": 2}}))


def test_a_lapsed_hold_does_not_count_the_moment_it_lapses(store: Ledger, clock: SetClock) -> None:
    write(store, hold("h", "a", 8, period=Period(1_000), lapses_at=1_010))
    clock.instant = 1_009
    with pytest.raises(CapacityExceeded):
        write(store, allocate("c", {"a": {"VCPU": 1}}))
    assert len(store.bookings()) == 1
    clock.instant = 1_010
    assert store.snapshot().classes["VCPU"].peak.tolist() == [0, 0]
    assert store.bookings() == []
    write(store, allocate("c", {"a": {"VCPU": 8}}))
    with pytest.raises(HoldExpired):
        write(store, SwapHold("h", Consumer("s")))


def test_a_future_booking_protects_its_period(store: Ledger, clock: SetClock) -> None:
    write(store, hold("lease", "a", 6, period=Period(5_000, 6_000)))
    write(store, hold("short", "a", 8, period=Period(1_000, 5_000)))
    with pytest.raises(CapacityExceeded):
        write(store, hold("long", "a", 3, period=Period(5_500, 7_000)))
    with pytest.raises(CapacityExceeded):
        write(store, allocate("c", {"a": {"VCPU": 1}}))
    clock.instant = 6_000
    write(store, allocate("c", {"a": {"VCPU": 8}}))


def test_holds_are_replaced_and_dropped(store: Ledger) -> None:
    write(store, hold("h", "a", 8, period=Period(1_000)))
    write(store, hold("h", "b", 8, period=Period(1_000)))
    write(store, allocate("c", {"a": {"VCPU": 8}}))
    assert [booking.provider for _, booking in store.bookings(consumer="h")] == ["b"]
    write(store, DropBookings(frozenset({"h", "nobody"})))
    assert store.bookings(consumer="h") == []
    write(store, allocate("d", {"b": {"VCPU": 8}}))
    write(store, PutBookings(Consumer("h"), ()))


def test_unit_rules_that_changed_judge_only_what_changes(store: Ledger) -> None:
    write(store, hold("h", "a", 6, period=Period(1_000)), allocate("c", {"a": {"VCPU": 1}}))
    write(store, PutInventories("a", (Inventory("VCPU", 8, max_unit=4),), None))
    write(store, hold("h", "a", 6, period=Period(1_000), lapses_at=9_000))
    for change in (
        hold("h", "a", 5, period=Period(1_000)),
        hold("h2", "a", 6, period=Period(1_000)),
        allocate("h", {"a": {"VCPU": 6}}),
    ):
        with pytest.raises(ConstraintViolated):
            write(store, DropBookings(frozenset({"h"})), change)
    assert [booking.lapses_at for _, booking in store.bookings(consumer="h")] == [9_000]
    done = write(store, SwapHold("h", Consumer("s")))
    assert done.consumer_generations == {"s": 1}


def test_dropping_holds_leaves_allocations(store: Ledger) -> None:
    write(store, allocate("c", {"a": {"VCPU": 2}}), hold("c", "a", 3, period=Period(1_000)))
    write(store, DropBookings(frozenset({"c"})))
    assert [booking.state for _, booking in store.bookings()] == [BookingState.ALLOCATED]


def test_a_consumer_of_holds_is_new_to_the_wire(store: Ledger) -> None:
    write(store, hold("c", "a", 3, period=Period(1_000)))
    done = write(store, allocate("c", {"a": {"VCPU": 2}}, None))
    assert done.consumer_generations == {"c": 1}
    write(store, DeleteAllocations("c"))
    assert len(store.bookings(consumer="c")) == 1
    assert write(store, allocate("c", {"a": {"VCPU": 2}}, None)).consumer_generations == {"c": 1}


def test_a_hold_becomes_the_servers_allocation(store: Ledger) -> None:
    write(store, hold("h", "a", 8, period=Period(1_000, 9_000), lapses_at=2_000))
    done = write(store, SwapHold("h", Consumer("s", "p", "u", "INSTANCE")))
    assert done.consumer_generations == {"s": 1}
    assert done.provider_generations == {"a": 2}
    found = store.consumer("s")
    assert found is not None
    (booking,) = found[1]
    assert (booking.amounts, booking.period) == ({"VCPU": 8}, Period(1_000, 9_000))
    assert (booking.state, booking.lapses_at) == (BookingState.ALLOCATED, FOREVER)
    assert store.bookings(consumer="h") == []
    assert used(store)["a"] == 8
    with pytest.raises(HoldExpired):
        write(store, SwapHold("h", Consumer("s2")))


@pytest.mark.parametrize(
    "there",
    [allocate("s", {"b": {"VCPU": 1}}, project_id="q"), hold("s", "b", 1, period=Period(1_000))],
    ids=["another project's server", "a member whose place is held"],
)
def test_a_hold_goes_to_no_consumer_but_a_server_of_its_project(
    store: Ledger, there: Change
) -> None:
    write(store, hold("h", "a", 1, period=Period(1_000)), there)
    before = store.bookings()
    with pytest.raises(NotFound):
        write(store, SwapHold("h", Consumer("s", "p")))
    assert store.bookings() == before


def test_only_what_a_decision_holds_itself_is_dropped(store: Ledger) -> None:
    for name, state, decision in (
        ("own", BookingState.HELD, "d1"),
        ("claimed", BookingState.CLAIMED, "d1"),
        ("other", BookingState.HELD, "d2"),
    ):
        booking = Booking(
            name, "a", {"VCPU": 1}, Period(1_000), state, lapses_at=9_000, decision=decision
        )
        write(store, PutBookings(Consumer(name, "p"), (booking,)))
    write(store, DropBookings(frozenset({"own", "claimed", "other", "nobody"}), decision="d1"))
    assert [booking.consumer for _, booking in store.bookings()] == ["claimed", "other"]


def test_a_server_with_allocations_takes_no_hold(store: Ledger) -> None:
    write(store, hold("h", "a", 1, period=Period(1_000)), allocate("s", {"b": {"VCPU": 1}}))
    with pytest.raises(ConsumerConflict):
        write(store, SwapHold("h", Consumer("s")))
    write(store, allocate("h", {"b": {"VCPU": 1}}))
    assert len(store.bookings(consumer="h")) == 2


def test_an_overrun_allocation_occupies_until_deleted(store: Ledger, clock: SetClock) -> None:
    write(store, hold("h", "a", 8, period=Period(1_000, 2_000)), SwapHold("h", Consumer("s")))
    clock.instant = 3_000
    with pytest.raises(CapacityExceeded):
        write(store, allocate("c", {"a": {"VCPU": 1}}))
    assert store.snapshot().classes["VCPU"].peak.tolist() == [8, 0]


@pytest.mark.parametrize(
    "change",
    [
        PutBookings(Consumer("h"), (Booking("x", "a", {"VCPU": 1}, Period(0), BookingState.HELD),)),
        PutBookings(Consumer("h"), (Booking("h", "a", {"VCPU": 1}, Period(0)),)),
        PutBookings(
            Consumer("h"), (Booking("h", "a", {"VCPU": 1}, Period(0), BookingState.HELD),) * 2
        ),
    ],
    ids=["another's", "allocated", "twice"],
)
def test_holds_that_are_none_are_refused(store: Ledger, change: Change) -> None:
    with pytest.raises(InvalidDescription):
        write(store, change)


def test_bookings_are_listed_by_consumer(store: Ledger) -> None:
    write(store, *(hold(f"h{n}", "ab"[n % 2], 1, period=Period(1_000)) for n in range(5)))
    write(store, allocate("c", {"a": {"VCPU": 1}, "b": {"VCPU": 1}}))
    assert [one.consumer for _, one in store.bookings(page=Page(2))] == ["c", "c", "h0"]
    after = store.bookings(page=Page(2, marker="h0"))
    assert [one.consumer for _, one in after] == ["h1", "h2"]
    assert len(store.bookings(provider="a")) == 4
    assert len(store.bookings(decision="d")) == 5
    assert store.bookings(decision="x") == []


def test_many_rows_are_written_whole_and_in_their_order(store: Ledger) -> None:
    """More than one insertion takes at a time, whichever way it is worded; and one row more."""
    names = [f"many-{number:02}" for number in range(33)]
    for name in names:
        write(store, CreateProvider(name, name))
        write(store, PutInventories(name, (Inventory("VCPU", 100),), None))
    wanted = {name: {"VCPU": number + 1} for number, name in enumerate(names)}
    write(store, allocate("wide", wanted))
    found = store.consumer("wide")
    assert found is not None
    assert {one.provider: dict(one.amounts) for one in found[1]} == wanted
    shown = used(store)
    assert [shown[name] for name in names] == list(range(1, 34))


def test_a_hold_is_taken_for_what_is_written_instead(store: Ledger) -> None:
    write(store, hold("h", "a", 6, period=Period(1_000)), allocate("c", {"a": {"VCPU": 2}}))
    before = store.snapshot().generation.tolist()
    with pytest.raises(CapacityExceeded):
        write(store, TakeHold("h"), allocate("s", {"a": {"VCPU": 7}}, None))
    assert len(store.bookings(consumer="h")) == 1
    done = write(store, TakeHold("h"), allocate("s", {"a": {"VCPU": 6}}, None))
    assert done.consumer_generations == {"s": 1}
    assert done.provider_generations == {"a": before[0] + 1}
    assert store.bookings(consumer="h") == []
    assert used(store)["a"] == 8
    with pytest.raises(HoldExpired):
        write(store, TakeHold("h"), allocate("s2", {"b": {"VCPU": 1}}, None))
    assert store.consumer("s2") is None


def test_a_lapsed_hold_is_not_taken(store: Ledger, clock: SetClock) -> None:
    write(store, hold("h", "a", 6, period=Period(1_000), lapses_at=2_000))
    clock.instant = 2_000
    with pytest.raises(HoldExpired):
        write(store, TakeHold("h"), allocate("s", {"a": {"VCPU": 6}}, None))
    assert store.consumer("s") is None
