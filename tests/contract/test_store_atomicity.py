"""The store contract: all or nothing, and nothing at all when stale."""

import pytest
from sqlalchemy import select
from tests.contract.conftest import SetClock

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
from moorage.store import Ledger, open_store
from moorage.store.schema.tables import metadata

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


def everything(store: Ledger) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    return store._backend.read(
        lambda connection: {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in metadata.sorted_tables
        }
    )


@pytest.mark.parametrize("place", [0, 3, len(GOOD)])
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_a_failing_change_leaves_nothing_behind(store: Ledger, place: int, bad: Change) -> None:
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
    before, snapshot = everything(store), store.snapshot()
    with pytest.raises(MoorageError):
        store.commit(Changeset((*good[:place], bad, *good[place:])))
    assert everything(store) == before
    assert store.snapshot().revision == snapshot.revision
    store.commit(Changeset(good))
    assert everything(store) != before


def test_a_stale_revision_changes_nothing(store: Ledger) -> None:
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
    before = everything(store)
    with pytest.raises(ProviderConflict) as refused:
        store.commit(Changeset(mine, relies_on=relied))
    assert refused.value.subject == "b"
    assert everything(store) == before
    store.commit(Changeset(mine, relies_on={"a": relied["a"]}))
    with pytest.raises(ProviderConflict):
        store.commit(Changeset((), relies_on={"nobody": 0}))


def test_an_acknowledged_commit_is_there_after_reopening(
    database_url: str, clock: SetClock
) -> None:
    url = database_url
    store = open_store(url, clock=clock)
    done = store.commit(Changeset((CreateProvider("a", "a"),)))
    store.close()
    again = open_store(url, clock=clock)
    assert again.snapshot().revision == done.revision
    assert again.snapshot().uuids == ("a",)
    again.close()


def test_two_stores_on_one_database_see_each_other(database_url: str, clock: SetClock) -> None:
    url = database_url
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
