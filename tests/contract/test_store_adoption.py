"""The store contract: what another ledger has acknowledged is written as it stands."""

from dataclasses import replace

import pytest

from moorage.domain.changes import (
    AdoptAllocations,
    AdoptNames,
    AdoptProviders,
    Change,
    Changeset,
    Committed,
    CreateProvider,
    CreateResourceClass,
    DeleteAllocations,
    DeleteProvider,
    DeleteResourceClass,
    DeleteTrait,
    PutTopology,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.content import AllocationSet
from moorage.domain.errors import (
    CapacityExceeded,
    ConsumerConflict,
    DuplicateName,
    InvalidDescription,
    InventoryInUse,
    MoorageError,
    UnknownName,
)
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.store import Ledger
from moorage.usecases.ledger.content import ledger_content

ROOT = ResourceProvider(
    uuid="root",
    name="host",
    parent_uuid=None,
    root_uuid="root",
    generation=41,
    inventories=(Inventory("MEMORY_MB", 8, max_unit=4), Inventory("VCPU", 4, reserved=1)),
    traits=frozenset({"HW_CPU_X86_AVX2"}),
    aggregates=frozenset({"aggregate"}),
)
CHILD = ResourceProvider(
    "child", "card", "root", "root", generation=7, inventories=(Inventory("CUSTOM_CARD", 2),)
)
SERVER = AllocationSet(
    Consumer("server", "project", "user", "INSTANCE", generation=5),
    {"root": {"VCPU": 9, "MEMORY_MB": 6}, "child": {"CUSTOM_CARD": 1}},
)
KNOWN = frozenset({"root", "child"})


def write(store: Ledger, *changes: Change) -> Committed:
    return store.commit(Changeset(changes))


@pytest.fixture(autouse=True)
def adopted(store: Ledger) -> Committed:
    return write(
        store,
        CreateResourceClass("CUSTOM_CARD"),
        AdoptProviders((ROOT, CHILD)),
        AdoptAllocations((SERVER,)),
    )


def providers(store: Ledger) -> dict[str, ResourceProvider]:
    return {
        uuid: replace(
            one,
            revision=0,
            created_at=0,
            updated_at=0,
            inventories=tuple(replace(item, updated_at=0) for item in one.inventories),
        )
        for uuid, one in ledger_content(store).providers.items()
    }


def test_generations_terms_and_overages_are_kept(store: Ledger, adopted: Committed) -> None:
    assert providers(store) == {"root": ROOT, "child": CHILD}
    assert ledger_content(store).consumers == {"server": SERVER}
    assert adopted.provider_generations == {"root": 41, "child": 7}
    assert adopted.consumer_generations == {"server": 5}
    assert adopted.created == {"CUSTOM_CARD", "root", "child"}


def test_an_overage_may_not_grow_afterwards(store: Ledger) -> None:
    more = ReplaceAllocations(Consumer("other"), {"root": {"VCPU": 1}}, None)
    with pytest.raises(CapacityExceeded):
        write(store, more)
    less = {"root": {"VCPU": 8, "MEMORY_MB": 4}}
    done = write(store, ReplaceAllocations(SERVER.consumer, less, 5))
    assert done.consumer_generations == {"server": 6}
    assert done.provider_generations["root"] == 42


def test_adopting_again_makes_equal(store: Ledger) -> None:
    tree = Topology.build({"location": ("rack",)}, [Domain("r", "rack")], [Attachment("host", "r")])
    write(store, PutTopology(tree))
    moved = replace(
        ROOT,
        name="renamed",
        generation=3,
        inventories=(Inventory("VCPU", 2), ROOT.inventories[0]),
        traits=frozenset(),
        aggregates=frozenset({"another"}),
    )
    freed = replace(CHILD, parent_uuid=None, root_uuid="child")
    smaller = AllocationSet(
        replace(SERVER.consumer, type=None, generation=2), {"root": {"VCPU": 1}}
    )
    write(
        store,
        DeleteAllocations("server"),
        AdoptProviders((moved, freed), known=KNOWN),
        AdoptAllocations((smaller,)),
    )
    stock = tuple(sorted(moved.inventories, key=lambda one: one.resource_class))
    assert providers(store) == {"root": replace(moved, inventories=stock), "child": freed}
    found = ledger_content(store).consumers["server"]
    assert (found.consumer.type, found.consumer.generation) == ("unknown", 2)
    assert found.allocations == {"root": {"VCPU": 1}}
    assert store.snapshot().topology.attachments == {("location", "renamed"): "r"}


def test_names_are_exchanged_and_a_new_one_becomes_the_parent(store: Ledger) -> None:
    tree = Topology.build({"location": ("rack",)}, [Domain("r", "rack")], [Attachment("host", "r")])
    write(store, PutTopology(tree))
    stock = tuple(sorted(ROOT.inventories, key=lambda one: one.resource_class))
    root = replace(ROOT, name="card", inventories=stock)
    above = ResourceProvider("above", "above", "root", "root", generation=2)
    child = replace(CHILD, name="host", parent_uuid="above")
    write(store, AdoptProviders((root, above, child), known=KNOWN))
    assert providers(store) == {"root": root, "above": above, "child": child}
    assert store.snapshot().topology.attachments == {("location", "card"): "r"}
    alone = replace(above, parent_uuid=None, root_uuid="above")
    under = replace(child, root_uuid="above")
    write(store, AdoptProviders((alone, under), known=frozenset({"above", "child"})))
    assert providers(store) == {"root": root, "above": alone, "child": under}


def test_one_that_goes_leaves_its_name_to_another(store: Ledger) -> None:
    fresh = replace(ROOT, uuid="fresh", root_uuid="fresh")
    write(
        store,
        DeleteAllocations("server"),
        DeleteProvider("child"),
        DeleteProvider("root"),
        AdoptProviders((fresh,)),
        AdoptAllocations((AllocationSet(SERVER.consumer, {"fresh": {"VCPU": 1}}),)),
    )
    assert ledger_content(store).providers.keys() == {"fresh"}
    assert ledger_content(store).consumers["server"].consumer.generation == 5
    assert store.idle_consumers() == []


def test_names_are_written_with_their_times(store: Ledger) -> None:
    write(store, AdoptNames({"NEWER": 7, "CUSTOM_CARD": 0, "VCPU": 8}, {"HW_NEWER": 9}))
    write(store, AdoptNames({"NEWER": 0}, {"HW_NEWER": 10}))
    found = ledger_content(store)
    assert (found.class_times["NEWER"], found.class_times["VCPU"]) == (7, 8)
    assert found.class_times["CUSTOM_CARD"] > 8
    assert found.trait_times["HW_NEWER"] == 10
    stock = (Inventory("NEWER", 3),)
    write(store, AdoptProviders((replace(CHILD, inventories=(*CHILD.inventories, *stock)),), KNOWN))
    for change in (DeleteResourceClass("NEWER"), DeleteTrait("HW_NEWER")):
        with pytest.raises(InvalidDescription):
            write(store, change)


def test_providers_and_allocations_keep_their_times(store: Ledger) -> None:
    dated = replace(
        ROOT,
        created_at=5,
        updated_at=6,
        inventories=tuple(replace(one, updated_at=7) for one in ROOT.inventories),
    )
    write(store, AdoptProviders((dated,), known=KNOWN))
    found = ledger_content(store).providers["root"]
    assert (found.created_at, found.updated_at) == (5, 6)
    assert {one.updated_at for one in found.inventories} == {7}
    fresh = replace(dated, uuid="fresh", name="fresh", root_uuid="fresh", created_at=0)
    server = AllocationSet(Consumer("s"), {"fresh": {"VCPU": 1}}, {"fresh": 8})
    write(store, AdoptProviders((fresh,)), AdoptAllocations((server,)))
    found = ledger_content(store).providers["fresh"]
    assert (found.created_at, found.updated_at) == (6, 6)
    _, [(_, booking)] = store.allocations_of_provider("fresh")
    assert booking.period.start == 8


def test_all_names_that_are_none_are_told_at_once(store: Ledger) -> None:
    odd = AdoptNames({"lower": 0, "FINE": 0, "WITH-DASH": 0}, {"HW BLANK": 0, "": 0})
    with pytest.raises(InvalidDescription) as told:
        write(store, odd)
    classes, traits = (
        "no name of a resource class: WITH-DASH, lower",
        "no name of a trait: '', HW BLANK",
    )
    assert told.value.message == f"{classes}; {traits}"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (AdoptNames({"lower": 0}, {}), InvalidDescription),
        (AdoptProviders((replace(ROOT, uuid="x", root_uuid="x"),)), DuplicateName),
        (AdoptProviders((replace(CHILD, uuid="x", name="x", parent_uuid="who"),)), UnknownName),
        (
            AdoptProviders(tuple(ResourceProvider(one, "twice", None, one) for one in ("x", "y"))),
            DuplicateName,
        ),
        (
            AdoptProviders((replace(ROOT, inventories=(Inventory("NO_SUCH", 1),)),), known=KNOWN),
            UnknownName,
        ),
        (AdoptProviders((replace(ROOT, traits=frozenset({"NO_SUCH"})),), known=KNOWN), UnknownName),
        (AdoptProviders((replace(ROOT, inventories=()),), known=KNOWN), InventoryInUse),
        (AdoptProviders((replace(ROOT, parent_uuid="child"),), known=KNOWN), InvalidDescription),
        (AdoptAllocations((AllocationSet(Consumer("x"), {"who": {"VCPU": 1}}),)), UnknownName),
        (AdoptAllocations((replace(SERVER, allocations={"root": {"NO": 1}}),)), UnknownName),
        (AdoptAllocations((replace(SERVER, allocations={}),)), InvalidDescription),
        (
            AdoptAllocations((replace(SERVER, allocations={"root": {"VCPU": 0}}),)),
            InvalidDescription,
        ),
        (AdoptAllocations((SERVER, SERVER)), InvalidDescription),
        (AdoptProviders((CHILD,), known=frozenset({"root"})), DuplicateName),
        (AdoptAllocations((SERVER,)), ConsumerConflict),
    ],
)
def test_what_cannot_be_is_refused_whole(
    store: Ledger, change: Change, error: type[MoorageError]
) -> None:
    before = ledger_content(store)
    with pytest.raises(error):
        write(store, CreateProvider("new", "new"), change)
    assert ledger_content(store) == before
