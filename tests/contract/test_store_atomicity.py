"""The store contract: all or nothing, and nothing at all when stale."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    CreateResourceClass,
    CreateTrait,
    DeleteAllocations,
    DeleteProvider,
    PutAggregates,
    PutBookings,
    PutFlavor,
    PutInventories,
    PutTopology,
    PutTraits,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.errors import Conflict, MoorageError, NotFound, ProviderConflict
from moorage.domain.flavors import Flavor
from moorage.domain.period import Period
from moorage.domain.providers import Inventory
from moorage.domain.topology import EMPTY
from moorage.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.conftest import SetClock

GOOD: tuple[Change, ...] = (
    CreateProvider("new", "new", "a"),
    CreateResourceClass("CUSTOM_A"),
    CreateTrait("CUSTOM_T"),
    PutInventories("a", (Inventory("VCPU", 99), Inventory("CUSTOM_A", 5)), None),
    PutTraits("a", frozenset({"CUSTOM_T"}), None),
    PutAggregates("a", frozenset({"agg"}), 1),
    ReplaceAllocations(Consumer("c1"), {"a": {"VCPU": 3, "CUSTOM_A": 1}}, None),
    ReplaceAllocations(Consumer("c0"), {}, 1),
    PutBookings(Consumer("h1"), (Booking("h1", "a", {"VCPU": 2}, Period(5), BookingState.HELD),)),
    PutFlavor(Flavor("1", "small", {"VCPU": 1})),
    PutTopology(EMPTY),
)
BAD: tuple[Change, ...] = (
    DeleteProvider("nobody"),
    DeleteAllocations("nobody"),
    ReplaceAllocations(Consumer("big"), {"a": {"VCPU": 10_000}}, None),
)


def everything(path: Path) -> list[str]:
    """Every row of every table, as SQLite writes it."""
    with sqlite3.connect(path) as connection:
        found = list(connection.iterdump())
    connection.close()
    return found


@pytest.mark.parametrize("place", [0, 3, len(GOOD)])
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_a_failing_change_leaves_nothing_behind(
    tmp_path: Path, clock: SetClock, place: int, bad: Change
) -> None:
    path = tmp_path / "ledger.db"
    store = open_store(f"sqlite:///{path}", clock=clock)
    store.commit(
        Changeset(
            (
                CreateProvider("a", "a"),
                PutInventories("a", (Inventory("VCPU", 8),), 0),
                ReplaceAllocations(Consumer("c0"), {"a": {"VCPU": 1}}, None),
            )
        )
    )
    # 1 after the inventory, 2 after the allocation: `GOOD` names neither wrongly below.
    good = tuple(
        PutAggregates("a", one.aggregates, 2) if isinstance(one, PutAggregates) else one
        for one in GOOD
    )
    before, snapshot = everything(path), store.snapshot()
    with pytest.raises(MoorageError):
        store.commit(Changeset((*good[:place], bad, *good[place:])))
    assert everything(path) == before
    assert store.snapshot().revision == snapshot.revision
    store.commit(Changeset(good))
    assert everything(path) != before
    store.close()


def test_a_stale_revision_changes_nothing(tmp_path: Path, clock: SetClock) -> None:
    path = tmp_path / "ledger.db"
    store = open_store(f"sqlite:///{path}", clock=clock)
    store.commit(
        Changeset(
            tuple(CreateProvider(name, name) for name in "ab")
            + tuple(PutInventories(name, (Inventory("VCPU", 8),), None) for name in "ab")
        )
    )
    seen = store.snapshot()
    relied = {name: int(seen.revisions[seen.row(name)]) for name in "ab"}
    mine = (ReplaceAllocations(Consumer("c"), {"a": {"VCPU": 1}}, None),)
    theirs = ReplaceAllocations(Consumer("d"), {"b": {"VCPU": 1}}, None)
    store.commit(Changeset((theirs,)))
    before = everything(path)
    with pytest.raises(ProviderConflict) as refused:
        store.commit(Changeset(mine, relies_on=relied))
    assert refused.value.subject == "b"
    assert everything(path) == before
    store.commit(Changeset(mine, relies_on={"a": relied["a"]}))
    with pytest.raises(ProviderConflict):
        store.commit(Changeset((), relies_on={"nobody": 0}))
    store.close()


def test_an_acknowledged_commit_is_there_after_reopening(tmp_path: Path, clock: SetClock) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    store = open_store(url, clock=clock)
    done = store.commit(Changeset((CreateProvider("a", "a"),)))
    store.close()
    again = open_store(url, clock=clock)
    assert again.snapshot().revision == done.revision
    assert again.snapshot().uuids == ("a",)
    again.close()


def test_two_stores_on_one_database_see_each_other(tmp_path: Path, clock: SetClock) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    one, other = open_store(url, clock=clock), open_store(url, clock=clock)
    one.commit(Changeset((CreateProvider("a", "a"),)))
    assert other.snapshot().uuids == ("a",)
    other.commit(Changeset((PutInventories("a", (Inventory("VCPU", 8),), 0),)))
    assert one.snapshot().classes["VCPU"].capacity.tolist() == [8]
    with pytest.raises(Conflict):
        one.commit(Changeset((PutInventories("a", (Inventory("VCPU", 8),), 0),)))
    with pytest.raises(NotFound):
        one.commit(Changeset((DeleteAllocations("c"),)))
    one.close()
    other.close()
