"""The store contract: who has closed a host and what Nova says of it come with the provider."""

import pytest
from tests.contract.test_store_bookings import write

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    CloseHost,
    CreateProvider,
    DeleteProvider,
    PutBookings,
    PutHostService,
    PutInventories,
)
from moorage.domain.consumers import Consumer
from moorage.domain.errors import NotFound
from moorage.domain.host_states import HostRecord, OperatorClosing, ServiceReport
from moorage.domain.period import Period
from moorage.domain.providers import Inventory
from moorage.store import Ledger

HOST, CHILD = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"
MEMBER = Consumer("00000000-0000-4000-8000-00000000000c", "p")
CLOSING = OperatorClosing("memory errors", "op", 5)
DOWN = ServiceReport(enabled=True, up=False, forced_down=False, since=7)


@pytest.fixture
def host(store: Ledger) -> Ledger:
    write(
        store,
        CreateProvider(HOST, "h", None),
        CreateProvider(CHILD, "h_cell", HOST),
        PutInventories(HOST, (Inventory("VCPU", 8),), 0),
    )
    return store


def record(store: Ledger, uuid: str = HOST) -> HostRecord | None:
    snapshot = store.snapshot()
    return snapshot.state(snapshot.row(uuid)).host


def test_both_parts_come_and_go_by_themselves(host: Ledger) -> None:
    assert record(host) is None
    assert host.snapshot().noted_hosts == frozenset()
    write(host, CloseHost(HOST, CLOSING))
    assert record(host) == HostRecord(CLOSING)
    write(host, PutHostService(HOST, DOWN))
    assert record(host) == HostRecord(CLOSING, DOWN)
    assert record(host, CHILD) is None
    write(host, CloseHost(HOST, None))
    assert record(host) == HostRecord(service=DOWN)
    write(host, PutHostService(HOST, None))
    assert record(host) is None
    assert host.snapshot().noted_hosts == frozenset()


def test_one_commit_may_write_both(host: Ledger) -> None:
    write(host, CloseHost(HOST, CLOSING), PutHostService(HOST, DOWN))
    assert record(host) == HostRecord(CLOSING, DOWN)


def test_bookings_leave_the_record(host: Ledger) -> None:
    write(host, CloseHost(HOST, CLOSING))
    one = Booking(MEMBER.uuid, HOST, {"VCPU": 1}, Period(host.now()), BookingState.HELD)
    write(host, PutBookings(MEMBER, (one,)))
    assert record(host) == HostRecord(CLOSING)


def test_the_whole_tree_is_changed(host: Ledger) -> None:
    before = host.snapshot()
    write(host, CloseHost(HOST, CLOSING))
    after = host.snapshot()
    for uuid in (HOST, CHILD):
        row = after.row(uuid)
        assert after.revisions[row] > before.revisions[row]
        assert after.generation[row] == before.generation[row]


def test_only_a_root_has_one(host: Ledger) -> None:
    for uuid in (CHILD, "00000000-0000-4000-8000-0000000000ff"):
        with pytest.raises(NotFound, match="host"):
            write(host, CloseHost(uuid, CLOSING))


def test_it_goes_with_the_host(host: Ledger) -> None:
    write(host, CloseHost(HOST, CLOSING))
    write(host, DeleteProvider(CHILD), DeleteProvider(HOST))
    write(host, CreateProvider(HOST, "h", None))
    assert record(host) is None
