"""The store contract: resource providers, their trees, and what they have."""

import pytest
from tests.contract.conftest import SetClock

from moorage.domain.changes import (
    Change,
    Changeset,
    Committed,
    CreateProvider,
    CreateResourceClass,
    CreateTrait,
    DeleteInventories,
    DeleteProvider,
    DeleteResourceClass,
    DeleteTrait,
    PutAggregates,
    PutInventories,
    PutTraits,
    RenameResourceClass,
    ReplaceAllocations,
    UpdateProvider,
)
from moorage.domain.consumers import Consumer
from moorage.domain.errors import (
    DuplicateName,
    InUse,
    InvalidDescription,
    InventoryInUse,
    NotFound,
    ProviderConflict,
    ProviderHasChildren,
    ProviderInUse,
    UnknownName,
)
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.store import Ledger


def write(store: Ledger, *changes: Change) -> Committed:
    return store.commit(Changeset(changes))


def provider(store: Ledger, uuid: str) -> ResourceProvider:
    snapshot = store.snapshot()
    return snapshot.state(snapshot.row(uuid)).provider


def test_a_provider_is_born_with_generation_zero(store: Ledger, clock: SetClock) -> None:
    done = write(store, CreateProvider("a", "host-a"))
    assert done.created == {"a"}
    assert done.at == clock.now()
    assert done.provider_generations == {"a": 0}
    born = provider(store, "a")
    assert (born.name, born.parent_uuid, born.root_uuid) == ("host-a", None, "a")
    assert (born.generation, born.created_at, born.updated_at) == (0, 1_000, 1_000)


@pytest.mark.parametrize(("uuid", "name"), [("a", "other"), ("b", "host-a")])
def test_uuid_and_name_are_taken_once(store: Ledger, uuid: str, name: str) -> None:
    write(store, CreateProvider("a", "host-a"))
    with pytest.raises(DuplicateName):
        write(store, CreateProvider(uuid, name))


def test_trees_have_roots(store: Ledger) -> None:
    write(
        store,
        CreateProvider("a", "a"),
        CreateProvider("b", "b", "a"),
        CreateProvider("c", "c", "b"),
    )
    assert provider(store, "c").root_uuid == "a"
    with pytest.raises(UnknownName):
        write(store, CreateProvider("d", "d", "nobody"))
    with pytest.raises(InvalidDescription):
        write(store, CreateProvider("d", "d", "d"))


def test_moving_a_provider_moves_its_descendants(store: Ledger) -> None:
    write(
        store,
        CreateProvider("a", "a"),
        CreateProvider("b", "b", "a"),
        CreateProvider("c", "c", "b"),
        CreateProvider("z", "z"),
    )
    write(store, UpdateProvider("b", "b", "z", set_parent=True))
    assert {provider(store, one).root_uuid for one in "bc"} == {"z"}
    write(store, UpdateProvider("b", "b", None, set_parent=True))
    assert {provider(store, one).root_uuid for one in "bc"} == {"b"}
    assert provider(store, "b").generation == 0, "moving moves no generation"
    for parent in ("b", "c"):
        with pytest.raises(InvalidDescription, match="loop"):
            write(store, UpdateProvider("b", "b", parent, set_parent=True))
    with pytest.raises(UnknownName):
        write(store, UpdateProvider("b", "b", "nobody", set_parent=True))


def test_renaming_keeps_parent_and_generation(store: Ledger, clock: SetClock) -> None:
    write(store, CreateProvider("a", "a"), CreateProvider("b", "b", "a"))
    clock.instant += 5
    write(store, UpdateProvider("b", "new"))
    renamed = provider(store, "b")
    assert (renamed.name, renamed.parent_uuid, renamed.generation) == ("new", "a", 0)
    assert renamed.updated_at == clock.now()
    with pytest.raises(DuplicateName):
        write(store, UpdateProvider("b", "a"))
    with pytest.raises(NotFound):
        write(store, UpdateProvider("nobody", "x"))


def test_deleting_needs_an_empty_leaf(store: Ledger) -> None:
    write(
        store,
        CreateProvider("a", "a"),
        CreateProvider("b", "b", "a"),
        PutInventories("b", (Inventory("VCPU", 4),), None),
        PutTraits("b", frozenset({"HW_CPU_X86_AVX2"}), None),
        PutAggregates("b", frozenset({"agg"}), None),
        ReplaceAllocations(Consumer("c"), {"b": {"VCPU": 1}}, None),
    )
    with pytest.raises(ProviderHasChildren):
        write(store, DeleteProvider("a"))
    with pytest.raises(ProviderInUse):
        write(store, DeleteProvider("b"))
    write(store, ReplaceAllocations(Consumer("c"), {}, 1), DeleteProvider("b"))
    snapshot = store.snapshot()
    assert "b" not in snapshot.row_of
    assert "VCPU" not in snapshot.classes
    assert "agg" not in snapshot.aggregates
    write(store, DeleteProvider("a"))
    with pytest.raises(NotFound):
        write(store, DeleteProvider("a"))


def test_a_provider_may_come_back(store: Ledger) -> None:
    write(store, CreateProvider("a", "a"))
    store.snapshot()
    write(store, DeleteProvider("a"))
    write(store, CreateProvider("a", "a2"))
    assert provider(store, "a").name == "a2"
    write(store, DeleteProvider("a"), CreateProvider("a", "a3"))
    assert provider(store, "a").name == "a3"


def test_inventories_are_written_and_move_the_generation(store: Ledger, clock: SetClock) -> None:
    write(store, CreateProvider("a", "a"))
    one = Inventory("VCPU", 16, 2, 1, 8, 2, 4.0, updated_at=clock.now())
    assert write(store, PutInventories("a", (one,), 0)).provider_generations == {"a": 1}
    assert provider(store, "a").inventories == (one,)
    with pytest.raises(ProviderConflict):
        write(store, PutInventories("a", (one,), 0))
    write(store, PutInventories("a", (one, Inventory("DISK_GB", 9)), 1, replace_all=True))
    assert provider(store, "a").generation == 2
    write(store, PutInventories("a", (Inventory("DISK_GB", 7),), 2, replace_all=True))
    assert [i.resource_class for i in provider(store, "a").inventories] == ["DISK_GB"]
    assert write(store, DeleteInventories("a")).provider_generations == {"a": 4}
    assert provider(store, "a").inventories == ()


def test_inventories_of_another_presence(store: Ledger) -> None:
    write(store, CreateProvider("a", "a"), PutInventories("a", (Inventory("VCPU", 1),), 0))
    with pytest.raises(ProviderConflict):
        write(store, PutInventories("a", (Inventory("VCPU", 1),), None, create=True))
    with pytest.raises(InvalidDescription):
        write(store, PutInventories("a", (Inventory("DISK_GB", 1),), 1, update=True))
    with pytest.raises(NotFound):
        write(store, DeleteInventories("a", "DISK_GB"))
    with pytest.raises(UnknownName):
        write(store, PutInventories("a", (Inventory("CUSTOM_NOT", 1),), 1))
    with pytest.raises(NotFound):
        write(store, PutInventories("nobody", (), None))
    twice = (Inventory("DISK_GB", 1), Inventory("DISK_GB", 2))
    with pytest.raises(InvalidDescription):
        write(store, PutInventories("a", twice, 1))


def test_an_inventory_in_use_stays_unless_the_use_goes_too(store: Ledger) -> None:
    write(
        store,
        CreateProvider("a", "a"),
        PutInventories("a", (Inventory("VCPU", 4), Inventory("DISK_GB", 9)), None),
        ReplaceAllocations(Consumer("c"), {"a": {"VCPU": 1}}, None),
    )
    for change in (
        DeleteInventories("a"),
        DeleteInventories("a", "VCPU"),
        PutInventories("a", (Inventory("DISK_GB", 9),), None, replace_all=True),
    ):
        with pytest.raises(InventoryInUse) as refused:
            write(store, change)
        assert refused.value.resource_classes == ("VCPU",)
    # The end state is judged, so the order within a changeset does not matter.
    write(store, DeleteInventories("a", "VCPU"), ReplaceAllocations(Consumer("c"), {}, 1))
    assert [i.resource_class for i in provider(store, "a").inventories] == ["DISK_GB"]


def test_shrinking_below_use_is_the_operators_right(store: Ledger) -> None:
    write(
        store,
        CreateProvider("a", "a"),
        PutInventories("a", (Inventory("VCPU", 4),), None),
        ReplaceAllocations(Consumer("c"), {"a": {"VCPU": 4}}, None),
    )
    write(store, PutInventories("a", (Inventory("VCPU", 2),), None))
    columns = store.snapshot().classes["VCPU"]
    assert (columns.capacity.tolist(), columns.used.tolist()) == ([2], [4])


def test_traits_move_the_generation_only_if_they_change(store: Ledger) -> None:
    write(store, CreateProvider("a", "a"), CreateTrait("CUSTOM_FAST"))
    fast = frozenset({"CUSTOM_FAST", "HW_CPU_X86_AVX2"})
    assert write(store, PutTraits("a", fast, 0)).provider_generations == {"a": 1}
    assert write(store, PutTraits("a", fast, 1)).provider_generations == {}
    assert provider(store, "a").traits == fast
    with pytest.raises(ProviderConflict):
        write(store, PutTraits("a", fast, 0))
    with pytest.raises(UnknownName):
        write(store, PutTraits("a", frozenset({"CUSTOM_NOT"}), 1))
    write(store, PutTraits("a", frozenset(), 1))
    assert store.snapshot().traits.get("CUSTOM_FAST") is None


def test_aggregates_move_the_generation_if_one_is_named(store: Ledger) -> None:
    write(store, CreateProvider("a", "a"))
    write(store, PutAggregates("a", frozenset({"x"}), None))
    assert provider(store, "a").generation == 0
    write(store, PutAggregates("a", frozenset({"x"}), 0))
    assert provider(store, "a").generation == 1
    write(store, PutAggregates("a", frozenset({"y", "z"}), 1))
    assert provider(store, "a").aggregates == {"y", "z"}
    with pytest.raises(ProviderConflict):
        write(store, PutAggregates("a", frozenset(), 0))


def test_one_changeset_may_name_one_generation_for_several_changes(store: Ledger) -> None:
    write(store, CreateProvider("a", "a"))
    done = write(
        store,
        PutInventories("a", (Inventory("VCPU", 4),), 0),
        PutTraits("a", frozenset({"HW_CPU_X86_AVX2"}), 0),
        PutAggregates("a", frozenset({"x"}), 0),
    )
    assert done.provider_generations == {"a": 3}


def test_standard_names_come_first_in_their_order(store: Ledger) -> None:
    write(store, CreateResourceClass("CUSTOM_B"), CreateResourceClass("CUSTOM_A"))
    found = [one.name for one in store.resource_classes()]
    assert found[:3] == ["VCPU", "MEMORY_MB", "DISK_GB"]
    assert found[-2:] == ["CUSTOM_B", "CUSTOM_A"]
    assert "HW_CPU_X86_AVX2" in {one.name for one in store.traits()}


def test_custom_classes_come_change_and_go(store: Ledger) -> None:
    write(
        store,
        CreateResourceClass("CUSTOM_A"),
        CreateProvider("a", "a"),
        PutInventories("a", (Inventory("CUSTOM_A", 4),), None),
        ReplaceAllocations(Consumer("c"), {"a": {"CUSTOM_A": 1}}, None),
    )
    with pytest.raises(DuplicateName):
        write(store, CreateResourceClass("CUSTOM_A"))
    assert write(store, CreateResourceClass("CUSTOM_A", exist_ok=True)).created == frozenset()
    with pytest.raises(InUse):
        write(store, DeleteResourceClass("CUSTOM_A"))
    write(store, RenameResourceClass("CUSTOM_A", "CUSTOM_B"))
    assert store.snapshot().classes["CUSTOM_B"].used.tolist() == [1]
    assert "CUSTOM_A" not in store.snapshot().classes
    found = store.consumer("c")
    assert found is not None
    assert found[1][0].amounts == {"CUSTOM_B": 1}
    write(store, ReplaceAllocations(Consumer("c"), {}, 1), DeleteInventories("a"))
    write(store, DeleteResourceClass("CUSTOM_B"))
    with pytest.raises(NotFound):
        write(store, DeleteResourceClass("CUSTOM_B"))


@pytest.mark.parametrize(
    "change",
    [
        CreateResourceClass("custom_low"),
        CreateResourceClass("VCPU2"),
        DeleteResourceClass("VCPU"),
        RenameResourceClass("VCPU", "CUSTOM_VCPU"),
        CreateTrait("custom_low"),
        DeleteTrait("HW_CPU_X86_AVX2"),
    ],
)
def test_standard_and_odd_names_are_refused(store: Ledger, change: Change) -> None:
    with pytest.raises(InvalidDescription):
        write(store, change)


def test_custom_traits_come_and_go(store: Ledger) -> None:
    assert write(store, CreateTrait("CUSTOM_T")).created == {"CUSTOM_T"}
    assert write(store, CreateTrait("CUSTOM_T")).created == frozenset()
    write(store, CreateProvider("a", "a"), PutTraits("a", frozenset({"CUSTOM_T"}), None))
    with pytest.raises(InUse):
        write(store, DeleteTrait("CUSTOM_T"))
    write(store, PutTraits("a", frozenset(), None), DeleteTrait("CUSTOM_T"))
    with pytest.raises(NotFound):
        write(store, DeleteTrait("CUSTOM_T"))


def test_a_provider_may_be_renamed_in_the_commit_that_makes_it(store: Ledger) -> None:
    made = store.commit(Changeset((CreateProvider("p", "a"), UpdateProvider("p", "b"))))
    assert made.provider_generations["p"] == 0
    assert (store.provider("p").name, store.provider("p").generation) == ("b", 0)
    store.commit(Changeset((UpdateProvider("p", "c"),)))
    snapshot = store.snapshot()
    assert snapshot.revisions[snapshot.row("p")] == store.provider("p").revision


def test_a_commit_tells_when_the_newest_trait_was_made_that_it_gave(store: Ledger) -> None:
    write(store, CreateTrait("CUSTOM_OLD"))
    write(store, CreateTrait("CUSTOM_NEW"), CreateProvider("p", "p"))
    newest = {one.name: one.updated_at for one in store.traits()}["CUSTOM_NEW"]
    both = PutTraits("p", frozenset({"CUSTOM_OLD", "CUSTOM_NEW"}), None)
    for _ in range(2):  # also where it changes nothing
        assert store.commit(Changeset((both,))).traits_at == newest
    assert store.commit(Changeset((PutTraits("p", frozenset(), None),))).traits_at is None
