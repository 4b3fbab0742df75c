"""Taking over into a ledger that has a life of its own."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    CreateTrait,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.content import AllocationSet, Content, differences, with_true_roots
from moorage.domain.errors import (
    Conflict,
    ConsumerConflict,
    DuplicateName,
    Forbidden,
    InvalidDescription,
)
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.store import Ledger
from moorage.testing.ledger_copy import private_ledger
from moorage.testing.service import OPERATOR, TENANT
from moorage.usecases.ledger import placement_takeover as use_case
from moorage.usecases.ledger.content import ledger_content
from moorage.usecases.ledger.placement_takeover import (
    TakeoverPermission,
    TakeoverPlan,
    plan,
    take_over,
)

ADD, UPDATE, MIRROR = TakeoverPermission


def provider(uuid: str, parent: str | None = None, root: str | None = None) -> ResourceProvider:
    stock = (Inventory("VCPU", 4),)
    return ResourceProvider(uuid, f"name of {uuid}", parent, root or uuid, 3, inventories=stock)


def server(uuid: str, *hosts: str) -> AllocationSet:
    return AllocationSet(
        Consumer(uuid, "project", "user", "INSTANCE", 2), {host: {"VCPU": 1} for host in hosts}
    )


# Children before their parents, as a source may list them.
PROVIDERS = [provider("c", "b", "a"), provider("b", "a", "a"), provider("a"), provider("d")]
SOURCE = Content(
    providers={one.uuid: one for one in PROVIDERS},
    consumers={uuid: server(uuid, host) for uuid, host in (("s1", "a"), ("s2", "c"), ("s3", "d"))},
    traits=frozenset({"CUSTOM_OLD"}),
)
RACKS = Topology.build(
    {"location": ("rack",)}, [Domain("r", "rack")], [Attachment("name of a", "r")]
)


@pytest.fixture
def store() -> Iterator[Ledger]:
    ledger = private_ledger()
    yield ledger
    ledger.close()


def planned(
    store: Ledger, source: Content = SOURCE, topology: Topology | None = None
) -> TakeoverPlan:
    return plan(store, OPERATOR, source, topology=topology)


def unlike(store: Ledger, source: Content = SOURCE) -> list[str]:
    return [one.subject for one in differences(source, ledger_content(store))]


def test_only_operators(store: Ledger) -> None:
    with pytest.raises(Forbidden):
        plan(store, TENANT, SOURCE, topology=None)


def test_pages_leave_a_sound_ledger(store: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use_case, "PROVIDERS_AT_ONCE", 1)
    monkeypatch.setattr(use_case, "CONSUMERS_AT_ONCE", 2)
    seen: list[int] = []
    commits = take_over(store, planned(store, topology=RACKS), ADD, advance=seen.append)
    assert commits == 1 + 4 + 2 + 1
    assert sum(seen) == planned(store, Content()).removed(MIRROR) == 7
    assert unlike(store) == []
    assert planned(store, topology=RACKS).topology is None
    assert take_over(store, planned(store), ADD) == 0


def test_what_is_there_besides_is_refused_and_mirrored_away(store: Ledger) -> None:
    own = (CreateProvider("own", "own"), PutInventories("own", (Inventory("VCPU", 1),), None))
    store.commit(Changeset((*own, CreateTrait("CUSTOM_OWN"))))
    found = planned(store)
    with pytest.raises(Conflict, match="resource provider own is not in the source"):
        take_over(store, found, ADD)
    assert ledger_content(store).providers.keys() == {"own"}
    take_over(store, found, UPDATE)
    assert unlike(store) == ["CUSTOM_OWN", "own"]
    take_over(store, planned(store), MIRROR)
    assert unlike(store) == ["CUSTOM_OWN"]


def test_what_differs_is_refused_and_updated_at_once(store: Ledger) -> None:
    take_over(store, planned(store), ADD)
    later = replace(
        SOURCE,
        providers={
            **SOURCE.providers,
            "d": replace(provider("d"), generation=9, inventories=(Inventory("DISK_GB", 5),)),
            "e": provider("e"),
        },
        consumers={
            **SOURCE.consumers,
            "s3": AllocationSet(
                replace(server("s3").consumer, generation=7), {"d": {"DISK_GB": 5}}
            ),
            "s4": server("s4", "e", "a"),
        },
    )
    found = planned(store, later)
    with pytest.raises(Conflict, match="resource provider d differs; consumer s3 differs"):
        take_over(store, found, ADD)
    assert unlike(store) == []
    assert take_over(store, found, UPDATE) == 1
    assert unlike(store, later) == []


def test_what_comes_in_between_is_kept(store: Ledger) -> None:
    found = planned(store)
    stock = PutInventories("d", (Inventory("VCPU", 99),), None)
    store.commit(Changeset((CreateProvider("d", "name of d"), stock)))
    with pytest.raises(DuplicateName):
        take_over(store, found, ADD)
    assert ledger_content(store).providers["d"].inventories[0].total == 99
    later = planned(store)
    mine = Consumer("s3", "mine", "me", "INSTANCE")
    store.commit(Changeset((ReplaceAllocations(mine, {"d": {"VCPU": 2}}, None),)))
    with pytest.raises(ConsumerConflict):
        take_over(store, later, UPDATE)
    assert ledger_content(store).consumers["s3"].consumer.project_id == "mine"
    take_over(store, planned(store), UPDATE)
    assert unlike(store) == []


def test_what_stays_gets_another_parent_than_who_goes(store: Ledger) -> None:
    take_over(store, planned(store), ADD)
    others = {
        "e": provider("e"),
        "a": SOURCE.providers["a"],
        "c": replace(SOURCE.providers["c"], parent_uuid="a"),
        "d": replace(SOURCE.providers["d"], parent_uuid="e", root_uuid="e"),
    }
    later = replace(SOURCE, providers=others)
    assert take_over(store, planned(store, later), MIRROR) == 1
    assert unlike(store, later) == []


def test_another_topology_is_refused(store: Ledger) -> None:
    take_over(store, planned(store, topology=RACKS), ADD)
    other = replace(RACKS, attachments={})
    with pytest.raises(Conflict, match="another topology"):
        take_over(store, planned(store, topology=other), ADD)
    take_over(store, planned(store, topology=other), UPDATE)
    assert store.snapshot().topology.attachments == {}


def test_all_that_no_ledger_can_hold_is_told_by_the_plan(store: Ledger) -> None:
    source = replace(
        SOURCE,
        providers={
            "x": replace(provider("x"), parent_uuid="y"),
            "y": replace(provider("y"), parent_uuid="x"),
            "z": replace(provider("z"), parent_uuid="gone"),
        },
        consumers={"c": AllocationSet(Consumer("c"), {"x": {"VCPU": 0}})},
        resource_classes=(*SOURCE.resource_classes, "lower", "NEWER"),
        traits=SOURCE.traits | {"HW BLANK"},
        broken=("torn",),
        remarks=("left out",),
    )
    with pytest.raises(InvalidDescription) as told:
        planned(store, source)
    faults, remarks = told.value.message.split(". Remarks: ")
    assert faults.split("; ") == [
        "torn",
        "no name of a resource class: lower",
        "no name of a trait: HW BLANK",
        "resource provider x: it is below itself",
        "resource provider y: it is below itself",
        "resource provider z: its parent gone is not there",
        "consumer c: allocated 0 of VCPU on x, not at least 1",
    ]
    assert remarks.startswith("left out; resource class names newer")
    assert remarks.endswith(": NEWER")


def test_inventories_that_the_api_would_refuse_are_told_by_the_plan(store: Ledger) -> None:
    stock = (Inventory("VCPU", 0, -1, 0, 0, 0), Inventory("DISK_GB", 4, allocation_ratio=0.0))
    odd = replace(provider("x"), inventories=stock)
    source = Content(providers={"x": odd}, resource_classes=("",))
    with pytest.raises(InvalidDescription) as told:
        planned(store, source)
    of_x = "resource provider x: {} of its VCPU is {}, not {} to 2147483647"
    values = {"total": 0, "reserved": -1, "min_unit": 0, "max_unit": 0, "step_size": 0}
    assert told.value.message.split("; ") == [
        "no name of a resource class: ''",
        *(of_x.format(name, value, int(name != "reserved")) for name, value in values.items()),
    ]


def test_a_root_is_the_top_of_its_tree_whatever_the_source_says(store: Ledger) -> None:
    wrong = {"a": "a", "b": "d", "c": "c", "d": "d"}
    roots = {uuid: replace(SOURCE.providers[uuid], root_uuid=at) for uuid, at in wrong.items()}
    source = with_true_roots(replace(SOURCE, providers=roots))
    assert source.remarks == (
        "root is not the top of the tree, which is taken over, of resource provider b, c",
    )
    assert source.providers == {one.uuid: one for one in PROVIDERS}
    assert with_true_roots(SOURCE) is SOURCE
    many = {f"n{number}": provider(f"n{number}", None, "other") for number in range(7)}
    (remark,) = with_true_roots(Content(providers=many)).remarks
    assert remark.endswith("of resource provider n0, n1, n2, n3, n4, and 2 more")
    take_over(store, planned(store, source), ADD)
    assert unlike(store, source) == []
    assert planned(store, source).differences == ()
    loop = {"x": replace(provider("x"), parent_uuid="y"), "y": provider("y", "x", "x")}
    assert with_true_roots(Content(providers=loop)).providers == loop, "a fault"


def test_texts_that_are_longer_than_the_api_takes_are_told_by_the_plan(store: Ledger) -> None:
    long = "x" * 256
    source = replace(
        SOURCE,
        providers={
            **SOURCE.providers,
            "n": replace(provider("n"), name=long[:201], aggregates=frozenset({"a" * 37})),
            "u" * 37: provider("u" * 37),
            "fits": replace(provider("fits"), name=long[:200], aggregates=frozenset({"a" * 36})),
        },
        consumers={
            "o": AllocationSet(Consumer("o", long, long, f"T{long}"), {"a": {"VCPU": 1}}),
            "fits": AllocationSet(Consumer("fits", long[:255], long[:255]), {"a": {"VCPU": 1}}),
        },
    )
    with pytest.raises(InvalidDescription) as told:
        planned(store, source)
    assert told.value.message.split("; ") == [
        "resource provider n: name has 201 characters, 200 at most",
        f"resource provider n: aggregate {'a' * 36} has 37 characters, 36 at most",
        f"resource provider {'u' * 36}: uuid has 37 characters, 36 at most",
        "consumer o: project_id has 256 characters, 255 at most",
        "consumer o: user_id has 256 characters, 255 at most",
        "consumer o: consumer_type has 257 characters, 255 at most",
    ]


def test_standard_names_that_are_not_known_here_are_taken_over(store: Ledger) -> None:
    strange = replace(
        provider("x"), inventories=(Inventory("NEWER", 1),), traits=frozenset({"HW_NEWER"})
    )
    source = replace(
        SOURCE,
        providers={**SOURCE.providers, "x": strange},
        resource_classes=(*SOURCE.resource_classes, "NEWER", "NEWEST"),
        traits=SOURCE.traits | {"HW_NEWER"},
    )
    found = planned(store, source)
    told = " names newer than this program's, taken over as they are: "
    assert found.remarks == (f"resource class{told}NEWER, NEWEST", f"trait{told}HW_NEWER")
    take_over(store, found, UPDATE)
    again = planned(store, source)
    assert (again.steps, again.remarks) == (0, ())
