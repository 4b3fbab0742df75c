"""The store contract: hosts that are away have no capacity, whatever is written."""

import pytest
from tests.contract.test_store_bookings import write

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.capacity_windows import CapacityWindow, WindowKind
from moorage.domain.changes import (
    CreateProvider,
    DeleteProvider,
    DropCapacityWindow,
    PutBookings,
    PutCapacityWindow,
    PutInventories,
    ReplaceAllocations,
    UpdateProvider,
)
from moorage.domain.consumers import Consumer
from moorage.domain.errors import CapacityExceeded, DuplicateName, InvalidDescription, NotFound
from moorage.domain.period import HOUR, Period
from moorage.domain.providers import Inventory
from moorage.store import Ledger

HOST, CHILD = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"
WINDOW = "00000000-0000-4000-8000-00000000000c"


def consumer(number: int) -> Consumer:
    return Consumer(f"00000000-0000-4000-8000-{number:012d}", "p")


def planned(store: Ledger, hosts: tuple[str, ...] = (HOST,), start: int = 10) -> CapacityWindow:
    now = store.now()
    period = Period(now + start * HOUR, now + (start + 10) * HOUR)
    return CapacityWindow(WINDOW, WindowKind.MAINTENANCE, hosts, period, created_at=now)


@pytest.fixture
def host(store: Ledger) -> Ledger:
    write(
        store,
        CreateProvider(HOST, "h", None),
        PutInventories(HOST, (Inventory("VCPU", 8),), 0),
    )
    return store


def book(store: Ledger, number: int, start: int, end: int, *, provider: str = HOST) -> None:
    now = store.now()
    period = Period(now + start * HOUR, now + end * HOUR)
    name = "VCPU" if provider == HOST else "SRIOV_NET_VF"
    one = Booking(consumer(number).uuid, provider, {name: 1}, period, BookingState.RESERVED)
    write(store, PutBookings(consumer(number), (one,)))


def test_windows_come_back_and_go(host: Ledger) -> None:
    window = planned(host)
    write(host, PutCapacityWindow(window))
    assert host.capacity_windows() == [window]
    assert host.capacity_window(WINDOW) == window
    with pytest.raises(DuplicateName):
        write(host, PutCapacityWindow(window))
    write(host, DropCapacityWindow(WINDOW))
    assert host.capacity_windows() == []
    with pytest.raises(NotFound):
        write(host, DropCapacityWindow(WINDOW))
    with pytest.raises(NotFound):
        write(host, PutCapacityWindow(planned(host, (CHILD,))))


def test_nothing_is_booked_in_a_window_and_all_of_it_around(host: Ledger) -> None:
    write(host, PutCapacityWindow(planned(host)))
    book(host, 1, 1, 10)
    book(host, 2, 20, 30)
    for number, (start, end) in enumerate([(9, 11), (12, 13), (19, 21), (1, 30)], 3):
        with pytest.raises(CapacityExceeded):
            book(host, number, start, end)
    with pytest.raises(CapacityExceeded):
        write(host, ReplaceAllocations(consumer(9), {HOST: {"VCPU": 1}}, None))
    write(host, DropCapacityWindow(WINDOW))
    write(host, ReplaceAllocations(consumer(9), {HOST: {"VCPU": 1}}, None))


def test_who_is_there_stays_and_may_shrink_but_not_grow(host: Ledger) -> None:
    mine = consumer(1)
    write(host, ReplaceAllocations(mine, {HOST: {"VCPU": 4}}, None))
    write(host, PutCapacityWindow(planned(host)))
    with pytest.raises(CapacityExceeded):
        write(host, ReplaceAllocations(mine, {HOST: {"VCPU": 5}}, 1))
    write(host, ReplaceAllocations(mine, {HOST: {"VCPU": 3}}, 1))


def test_what_comes_to_the_tree_later_is_away_too(host: Ledger) -> None:
    write(host, PutCapacityWindow(planned(host)))
    write(
        host,
        CreateProvider(CHILD, "pf", HOST),
        PutInventories(CHILD, (Inventory("SRIOV_NET_VF", 8),), 0),
    )
    snapshot = host.snapshot()
    row = snapshot.row_of[CHILD]
    assert snapshot.state(row).down
    with pytest.raises(CapacityExceeded):
        book(host, 1, 11, 12, provider=CHILD)
    book(host, 2, 1, 2, provider=CHILD)
    assert host.snapshot().state(row).down, "a booking alone does not forget it"
    generation = host.provider(HOST).generation
    write(host, PutInventories(HOST, (Inventory("VCPU", 800),), generation))
    with pytest.raises(CapacityExceeded):
        book(host, 3, 11, 12)


def test_a_host_that_goes_takes_its_part_of_the_window_along(host: Ledger) -> None:
    write(host, PutCapacityWindow(planned(host)))
    write(host, DeleteProvider(HOST))
    write(host, CreateProvider(HOST, "h", None))
    assert not host.snapshot().state(host.snapshot().row_of[HOST]).down


def test_a_host_with_a_window_is_not_moved_below_another(host: Ledger) -> None:
    write(host, PutCapacityWindow(planned(host)), CreateProvider(CHILD, "other", None))
    below = UpdateProvider(HOST, "h", CHILD, set_parent=True)
    with pytest.raises(InvalidDescription, match="drop the window first"):
        write(host, below)
    assert host.snapshot().state(host.snapshot().row_of[HOST]).down
    write(host, UpdateProvider(HOST, "renamed"), DropCapacityWindow(WINDOW))
    write(host, below)
    assert host.provider(HOST).root_uuid == CHILD
