"""Loading fleets into a real ledger."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from moorage.client.fleet_file import read_fleet
from moorage.domain.errors import Conflict, Forbidden, InvalidDescription, UnknownName
from moorage.domain.fleet_expansion import ExpandedFleet, expand, provider_uuid
from moorage.domain.fleet_parts import FleetPart, parts
from moorage.domain.providers import Inventory
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.domain.virtual_classes import HOURS
from moorage.store import Ledger, open_store
from moorage.testing.ledger_copy import new_database
from moorage.usecases.ledger.fleet_loading import load_fleet
from moorage.usecases.ports import Caller

OPERATOR = Caller("root", "ops", frozenset({"admin"}))
THREE_RACKS = Path(__file__).parents[2] / "fleets" / "three-racks.yaml"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_store(new_database(tmp_path))
    yield ledger
    ledger.close()


@pytest.fixture(scope="module")
def fleet() -> ExpandedFleet:
    return expand(read_fleet(THREE_RACKS.read_text(encoding="utf-8")))


def changed(part: FleetPart, **changes: object) -> FleetPart:
    first, *others = part.providers
    other = replace(first, **changes)  # type: ignore[arg-type] # a test's shorthand
    return replace(part, providers=(other, *others))


def test_what_is_loaded_is_there(store: Ledger, fleet: ExpandedFleet) -> None:
    for part in parts(fleet, hosts_per_part=4):
        load_fleet(store, OPERATOR, part)
    snapshot = store.snapshot()
    for host in fleet.providers:
        there = snapshot.state(snapshot.row_of[host.uuid]).provider
        assert (there.name, there.traits, there.aggregates) == (
            host.name,
            host.traits,
            host.aggregates,
        )
        assert {(one.resource_class, one.capacity) for one in there.inventories} == {
            (one.resource_class, one.capacity) for one in host.inventories
        }
    assert dict(snapshot.topology.attachments) == dict(fleet.topology.attachments)
    assert {one.name for one in store.flavors()} == {one.name for one in fleet.flavors}
    _, ((consumer, booking),) = store.allocations_of_provider(provider_uuid("h7"))
    assert (consumer.type, booking.amounts["VCPU"]) == ("INSTANCE", 8)


def test_loading_again_writes_nothing(store: Ledger, fleet: ExpandedFleet) -> None:
    (part,) = parts(fleet)
    first = load_fleet(store, OPERATOR, part)
    assert (first.hosts, first.consumers, first.flavors, first.unchanged) == (9, 3, 4, 0)
    again = load_fleet(store, OPERATOR, part)
    assert (again.hosts, again.consumers, again.flavors, again.unchanged) == (0, 0, 0, 16)
    assert again.revision == first.revision == store.snapshot().revision


def test_loading_again_adds_what_is_missing(store: Ledger, fleet: ExpandedFleet) -> None:
    (part,) = parts(fleet)
    load_fleet(store, OPERATOR, replace(part, providers=part.providers[:4], load=(), topology=None))
    rest = load_fleet(store, OPERATOR, part)
    assert (rest.hosts, rest.consumers, rest.unchanged) == (5, 3, 8)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inventories": (Inventory("VCPU", 32),)}, "h1 DISK_GB is 4000"),
        ({"traits": frozenset({"COMPUTE_NODE"})}, "h1 differs in traits HW_CPU_X86_AVX2"),
        ({"name": "other"}, "other is called h1"),
        ({"aggregates": frozenset({provider_uuid("x")})}, "h1 differs in aggregates"),
    ],
)
def test_a_difference_is_refused_as_a_whole(
    store: Ledger, fleet: ExpandedFleet, changes: dict[str, object], said: str
) -> None:
    (part,) = parts(fleet)
    load_fleet(store, OPERATOR, replace(part, providers=part.providers[:2], load=(), topology=None))
    before = store.snapshot().revision
    with pytest.raises(Conflict, match=said):
        load_fleet(store, OPERATOR, changed(part, **changes))
    assert store.snapshot().revision == before
    assert provider_uuid("h9") not in store.snapshot().row_of


def test_other_flavors_topologies_and_load_are_differences(
    store: Ledger, fleet: ExpandedFleet
) -> None:
    (part,) = parts(fleet)
    load_fleet(store, OPERATOR, part)
    topology = replace(fleet.topology, attachments={("location", "h1"): "r2"})
    load = replace(part.load[0], allocations={provider_uuid("h7"): {"VCPU": 1}})
    flavor = replace(part.flavors[0], resources={"VCPU": 3})
    other = replace(part, topology=topology, load=(load,), flavors=(flavor,))
    with pytest.raises(Conflict) as caught:
        load_fleet(store, OPERATOR, other)
    for word in ("consumer", "flavor m1.small", "another topology"):
        assert word in caught.value.message


def test_an_inventory_of_a_virtual_class_is_refused(store: Ledger, fleet: ExpandedFleet) -> None:
    (part, *_) = parts(fleet, hosts_per_part=4)
    stocked = changed(part, inventories=(Inventory(HOURS, 1),))
    with pytest.raises(InvalidDescription, match=f"{HOURS} is a virtual resource class"):
        load_fleet(store, OPERATOR, stocked)
    assert not store.snapshot().alive.any()


def test_a_tenant_may_not(store: Ledger, fleet: ExpandedFleet) -> None:
    (part,) = parts(fleet)
    with pytest.raises(Forbidden):
        load_fleet(store, Caller("u", "p", frozenset({"member"})), part)


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ("HW_CPU_X86_AVX2", "HW_NOPE", "providers.h1.traits"),
        ("VCPU", "VCPUS", "providers.h1.inventories"),
    ],
)
def test_an_unknown_name_is_refused_with_the_line_of_its_hosts(
    store: Ledger, before: str, after: str, path: str
) -> None:
    text = """\
fleet: small
hosts:
  - name: h1
    inventories: {VCPU: 4}
    traits: [HW_CPU_X86_AVX2, CUSTOM_OWN]
""".replace(before, after)
    (part,) = parts(expand(read_fleet(text)))
    with pytest.raises(UnknownName) as refused:
        load_fleet(store, OPERATOR, part)
    assert (refused.value.path, refused.value.line) == (path, 3)


def test_a_host_that_is_not_there_is_refused_with_the_line_that_places_it(store: Ledger) -> None:
    topology = Topology.build(
        {"location": ("rack",)}, [Domain("r1", "rack")], [Attachment("h77", "r1", line=12)]
    )
    with pytest.raises(UnknownName) as refused:
        load_fleet(store, OPERATOR, FleetPart(topology=topology))
    assert (refused.value.path, refused.value.line) == ("attachments.h77", 12)
