"""The store contract: providers that consumers offer."""

from dataclasses import replace

import pytest
from tests.contract.conftest import SetClock

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    AdoptProviders,
    Change,
    Changeset,
    CreateProvider,
    DeleteAllocations,
    DeleteProvider,
    PutBookings,
    PutInventories,
    PutServerProvider,
    ReplaceAllocations,
    UpdateProvider,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.errors import (
    ConcurrentUpdate,
    DuplicateName,
    InvalidDescription,
    NotFound,
    OfferCycle,
    ProviderInUse,
)
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.server_providers import ServerProvider
from moorage.engine.state.server_locations import NOWHERE, host_of, usable_servers
from moorage.engine.state.snapshot import Snapshot
from moorage.store import Ledger, open_store


def stock(provider: str) -> PutInventories:
    return PutInventories(provider, (Inventory("VCPU", 8),), None)


def write(store: Ledger, *changes: Change) -> None:
    store.commit(Changeset(changes))


def put(consumer: str, *providers: str) -> ReplaceAllocations:
    who = Consumer(consumer, "project", "user")
    return ReplaceAllocations(who, {one: {"VCPU": 1} for one in providers}, ANY_GENERATION)


def where(snapshot: Snapshot, provider: str) -> str | None:
    row = host_of(snapshot, snapshot.row(provider))
    return None if row == NOWHERE else snapshot.uuids[row]


def usable(store: Ledger, project_id: str) -> set[str]:
    snapshot = store.snapshot()
    return {snapshot.uuids[row] for row in usable_servers(snapshot, project_id)}


@pytest.fixture(autouse=True)
def offers(store: Ledger) -> None:
    """Two hosts, and what the servers a, b and c offer."""
    for host in ("h1", "h2"):
        write(store, CreateProvider(host, host), stock(host))
    for server in "abc":
        name = f"of-{server}"
        write(store, CreateProvider(name, f"server:{server}", None, server), stock(name))


def test_the_snapshot_knows_who_offers_and_where_that_is(
    store: Ledger, database_url: str, clock: SetClock
) -> None:
    write(store, put("a", "h1"))
    found = store.snapshot()
    assert {found.uuids[row]: who for row, who in found.offered_by.items()} == {
        "of-a": "a",
        "of-b": "b",
        "of-c": "c",
    }
    assert (where(found, "of-a"), where(found, "of-b")) == ("h1", None)
    write(store, put("x", "of-a"))
    write(store, put("a", "h2"))
    assert where(store.snapshot(), "of-a") == "h2"
    write(store, DeleteAllocations("a"))
    assert where(store.snapshot(), "of-a") is None
    with pytest.raises(ProviderInUse):
        write(store, DeleteProvider("of-a"))
    write(store, DeleteAllocations("x"), DeleteProvider("of-a"))
    assert sorted(store.snapshot().offered_by.values()) == ["b", "c"]
    if database_url != "sqlite://":
        again = open_store(database_url, clock=clock)
        assert sorted(again.snapshot().offered_by.values()) == ["b", "c"]
        assert again.provider("of-b").offered_by == "b"
        again.close()


def test_it_is_a_root_and_no_parent_and_keeps_its_name(store: Ledger) -> None:
    for change in (
        CreateProvider("new", "new", "h1", "d"),
        CreateProvider("new", "new", "of-a"),
        UpdateProvider("of-a", "server:a", "h1", set_parent=True),
        UpdateProvider("h2", "h2", "of-a", set_parent=True),
    ):
        with pytest.raises(InvalidDescription) as refused:
            write(store, change)
        assert refused.value.path == "parent_provider_uuid"
    with pytest.raises(InvalidDescription) as refused:
        write(store, UpdateProvider("of-a", "renamed"))
    assert refused.value.path == "name"
    assert store.provider("of-a").name == "server:a"


@pytest.mark.parametrize("alone", [True, False])
def test_nobody_stands_on_itself(store: Ledger, *, alone: bool) -> None:
    """By one change, whose questions go ahead, and by several."""
    more = () if alone else (CreateProvider("other", "other"),)
    with pytest.raises(OfferCycle) as refused:
        write(store, put("a", "of-a"), *more)
    assert (refused.value.consumer, refused.value.provider) == ("a", "of-a")
    write(store, put("b", "of-a"))
    write(store, put("c", "of-b"))
    with pytest.raises(OfferCycle):
        write(store, put("a", "of-c"), *more)
    write(store, put("a", "h1"))
    found = store.snapshot()
    assert [where(found, f"of-{one}") for one in "abc"] == ["h1", "h1", "h1"]


def test_holds_make_no_circle_either(store: Ledger) -> None:
    write(store, put("b", "of-a"))
    who = Consumer("a", "project", "user")
    held = Booking("a", "of-b", {"VCPU": 1}, Period(0), BookingState.HELD, lapses_at=FOREVER)
    with pytest.raises(OfferCycle):
        write(store, PutBookings(who, (held,)))


def test_who_leaves_in_the_same_commit_stands_there_no_longer(store: Ledger) -> None:
    write(store, put("b", "of-a"))
    write(store, DeleteAllocations("b"), put("a", "of-b"))
    with pytest.raises(OfferCycle):
        write(store, put("b", "of-a"))


def test_what_is_adopted_keeps_who_offers_it(store: Ledger) -> None:
    one = ResourceProvider("of-d", "server:d", None, "of-d", offered_by="d")
    write(store, AdoptProviders((one,)))
    assert store.provider("of-d").offered_by == "d"


def test_whose_one_is_is_known_until_it_is_deleted(store: Ledger) -> None:
    first = ServerProvider("of-a", "a", "project", frozenset({"q", "r"}), created_at=5)
    second = ServerProvider("of-b", "b", "project", None)
    write(store, PutServerProvider(first, None), PutServerProvider(second, None))
    assert store.server_providers() == [first, second]
    assert usable(store, "project") == usable(store, "q") == {"of-a", "of-b"}
    assert usable(store, "stranger") == {"of-b"}
    with pytest.raises(DuplicateName):
        write(store, PutServerProvider(first, None))
    write(store, PutServerProvider(replace(first, shared_with=frozenset()), 0))
    (found,) = store.server_providers(server_id="a")
    assert (found.shared_with, found.generation) == (frozenset(), 1)
    write(store, put("x", "of-a"))
    assert usable(store, "project") == {"of-a", "of-b"}
    assert usable(store, "q") == {"of-b"}
    write(store, DeleteAllocations("x"))
    with pytest.raises(ConcurrentUpdate):
        write(store, PutServerProvider(first, 0))
    write(store, DeleteProvider("of-a"))
    assert store.server_providers() == [second]
    assert store.server_providers(server_id="a") == []
    with pytest.raises(NotFound):
        write(store, PutServerProvider(first, 1))
