"""The store contract: what is offered for reservation."""

from dataclasses import replace

import pytest
from tests.contract.test_store_bookings import write

from moorage.domain.changes import DropReservable, PutReservable
from moorage.domain.errors import DuplicateName, NotFound
from moorage.domain.reservables import Reservable, ReservableKind
from moorage.store import Ledger

HOST = Reservable(ReservableKind.HOST, "1", "n1", "p", {"gpu": "a100"}, 5, 6)


def test_records_come_back_by_kind_in_their_order(store: Ledger) -> None:
    address = Reservable(ReservableKind.FLOATING_IP, "1", "10.0.0.1", "q")
    second = replace(HOST, id="2", name="n0", properties={})
    write(store, *(PutReservable(one, new=True) for one in (HOST, address, second)))
    assert store.reservables(ReservableKind.HOST) == [HOST, second]
    assert store.reservables(ReservableKind.FLOATING_IP) == [address]
    assert store.reservables(ReservableKind.PROPERTY) == []


def test_ids_and_names_are_taken_once(store: Ledger) -> None:
    write(store, PutReservable(HOST, new=True))
    for other in (replace(HOST, id="2"), replace(HOST, name="n2")):
        with pytest.raises(DuplicateName):
            write(store, PutReservable(other, new=True))
    changed = replace(HOST, properties={"gpu": "h100", "rack": "r1"})
    write(store, PutReservable(changed, new=False))
    assert store.reservables(ReservableKind.HOST) == [changed]
    write(store, DropReservable(ReservableKind.HOST, "1"))
    assert store.reservables(ReservableKind.HOST) == []
    with pytest.raises(NotFound):
        write(store, PutReservable(changed, new=False))
    with pytest.raises(NotFound):
        write(store, DropReservable(ReservableKind.HOST, "1"))
