"""What if some bookings were otherwise: views of a snapshot, and who is there in a period."""

import pytest

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.period import FOREVER, Instant, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.engine.state.overlay import (
    first_shortage,
    with_bookings,
    without_bookings,
    worsens_overage,
)
from moorage.engine.state.snapshot import ProviderState, Snapshot

NOW = 1_000


def booking(
    consumer: str,
    vcpu: int,
    start: Instant,
    end: Instant = FOREVER,
    *,
    preemptible: bool = False,
    state: BookingState = BookingState.ALLOCATED,
) -> Booking:
    return Booking(
        consumer, "a", {"VCPU": vcpu}, Period(start, end), state, preemptible=preemptible
    )


def fleet(*bookings: Booking) -> Snapshot:
    provider = ResourceProvider("a", "a", None, "a", inventories=(Inventory("VCPU", 10),))
    occupants = tuple(Occupant(one, "p") for one in sorted({b.consumer for b in bookings}))
    return Snapshot.empty(now=NOW).with_states([ProviderState(provider, bookings, occupants)])


def peak(snapshot: Snapshot, period: Period) -> int:
    return int(snapshot.peak_over("VCPU", period)[0])


def test_a_view_differs_from_its_snapshot_in_bookings_alone() -> None:
    first = fleet(booking("x", 4, 0), booking("y", 3, 0, 5_000))
    view = without_bookings(first, [0], lambda one: one.consumer == "x")
    assert peak(view, Period(NOW)) == 3
    assert peak(first, Period(NOW)) == 7
    assert (view.revision, view.revisions.tolist()) == (first.revision, first.revisions.tolist())
    assert without_bookings(first, [0], lambda one: one.consumer == "z") is first
    longer = with_bookings(first, {"y": (booking("y", 3, 0, 9_000), booking("y", 1, 9_000))})
    assert peak(longer, Period(5_000, 6_000)) == 7
    assert peak(longer, Period(9_000)) == 5
    assert peak(with_bookings(first, {"y": (), "x": ()}), Period(NOW)) == 0


def test_a_later_end_is_worse_only_where_others_are() -> None:
    mine = booking("x", 6, 0, 4_000)
    snapshot = fleet(mine, booking("y", 6, 5_000, 7_000))
    assert not worsens_overage(snapshot, {"x": (booking("x", 6, 0, 5_000),)})
    assert worsens_overage(snapshot, {"x": (booking("x", 6, 0, 5_001),)})
    assert not worsens_overage(snapshot, {"x": (booking("x", 6, 7_000, 9_000),)})


def test_what_is_over_full_may_stay_but_not_grow() -> None:
    snapshot = fleet(booking("x", 8, 0, 4_000), booking("y", 8, 0, 6_000))
    assert not worsens_overage(snapshot, {"x": (booking("x", 8, 0, 3_000),)})
    assert worsens_overage(snapshot, {"x": (booking("x", 8, 0, 5_000),)})


@pytest.mark.parametrize(
    ("amount", "period", "at"),
    [
        (4, Period(0), None),
        (5, Period(0), 5_000),
        (5, Period(0, 5_000), None),
        (5, Period(7_000), None),
        (5, Period(6_000), 6_000),
        (11, Period(8_000, 9_000), 8_000),
    ],
)
def test_the_first_instant_without_room(amount: int, period: Period, at: int | None) -> None:
    snapshot = fleet(booking("y", 6, 5_000, 7_000))
    state = snapshot.state(0)
    found = first_shortage(state, state.bookings, {"VCPU": amount}, period, snapshot.taken_at)
    assert found == at


def test_of_several_classes_without_room_the_first_instant_counts() -> None:
    inventories = (Inventory("VCPU", 10), Inventory("MEMORY_MB", 10))
    provider = ResourceProvider("a", "a", None, "a", inventories=inventories)
    for vcpu_from, memory_from in ((5_000, 3_000), (3_000, 5_000)):
        bookings = (
            Booking("x", "a", {"VCPU": 8}, Period(vcpu_from)),
            Booking("y", "a", {"MEMORY_MB": 8}, Period(memory_from)),
        )
        state = ProviderState(provider, bookings, ())
        asked = {"VCPU": 4, "MEMORY_MB": 4}
        assert first_shortage(state, bookings, asked, Period(NOW), NOW) == 3_000


def test_who_is_there_in_a_period() -> None:
    snapshot = fleet(
        booking("now", 1, 0, 2_000),
        booking("later", 1, 4_000, 6_000),
        booking("overrun", 1, 0, 500),
    )

    def there(start: int, end: int = FOREVER) -> set[str]:
        return {one.consumer for one in snapshot.occupants(0, Period(start, end))}

    assert there(NOW, 2_000) == {"now", "overrun"}
    assert there(2_000, 4_000) == {"overrun"}
    assert there(3_999, 4_001) == {"later", "overrun"}
    assert there(6_000) == {"overrun"}
    assert {one.consumer for one in snapshot.occupants(0)} == {"now", "later", "overrun"}


def test_rows_with_preemptible_bookings_are_known() -> None:
    snapshot = fleet(booking("x", 1, 0))
    assert snapshot.preemptible.tolist() == [False]
    state = snapshot.state(0)
    yielding = ProviderState(state.provider, (booking("x", 1, 0, preemptible=True),))
    after = snapshot.with_states([yielding])
    assert after.preemptible.tolist() == [True]
    assert after.with_states([state]).preemptible.tolist() == [False]
