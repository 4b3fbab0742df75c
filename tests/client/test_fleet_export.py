"""A fleet that is exported is the fleet that was there, whatever it is called."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from moorage.client.fleet_export import Exported, fleet_lines, topology_lines
from moorage.client.fleet_file import read_fleet
from moorage.domain.consumers import Consumer
from moorage.domain.content import AllocationSet, Content
from moorage.domain.fleet_expansion import expand, provider_uuid
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.wire.flavors import FlavorSize, FlavorValue

NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
) | st.from_regex(r"[a-z][a-z0-9/.]{0,8}", fullmatch=True)
UUIDS = st.uuids().map(str)
TRAITS = st.frozensets(
    st.sampled_from(["CUSTOM_A", "HW_NUMA_ROOT", "MISC_SHARES_VIA_AGGREGATE"]), max_size=3
)
AGGREGATES = st.frozensets(st.sampled_from([str(UUID(int=n)) for n in range(1, 4)]), max_size=2)


@st.composite
def inventories(draw: st.DrawFn) -> tuple[Inventory, ...]:
    classes = draw(st.lists(st.sampled_from(["VCPU", "DISK_GB", "CUSTOM_X"]), unique=True))
    return tuple(
        Inventory(
            name,
            total := draw(st.integers(1, 1000)),
            reserved=draw(st.integers(0, total)),
            min_unit=1,
            max_unit=draw(st.sampled_from([5, 2**31 - 1])),
            allocation_ratio=draw(st.sampled_from([0.5, 1.0, 16.0])),
        )
        for name in sorted(classes)
    )


@st.composite
def contents(draw: st.DrawFn) -> Content:
    """Trees with names and UUIDs as a cloud has them, or as a fleet file has made them."""
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    made: list[ResourceProvider] = []
    for own in names:
        parent = draw(st.sampled_from([None, *made]))
        prefixed = parent is not None and draw(st.booleans())
        name = f"{parent.name}/{own}" if parent and prefixed else own
        if any(one.name == name for one in made):
            continue
        uuid = provider_uuid(name) if draw(st.booleans()) else draw(UUIDS)
        made.append(
            ResourceProvider(
                uuid,
                name,
                None if parent is None else parent.uuid,
                uuid if parent is None else parent.root_uuid,
                inventories=draw(inventories()),
                traits=draw(TRAITS),
                aggregates=draw(AGGREGATES),
            )
        )
    return Content({one.uuid: one for one in made}, draw(consumers(made)))


def consumers(providers: list[ResourceProvider]) -> st.SearchStrategy[dict[str, AllocationSet]]:
    """At most one consumer, which takes one of everything there is room for."""
    taken = {
        one.uuid: {item.resource_class: 1 for item in one.inventories if item.capacity > 0}
        for one in providers
    }
    allocations = {uuid: amounts for uuid, amounts in taken.items() if amounts}
    if not allocations:
        return st.just({})
    return st.builds(
        lambda uuid, project, kind: {
            uuid: AllocationSet(Consumer(uuid, project, "someone", kind), allocations)
        },
        UUIDS,
        NAMES,
        st.sampled_from(["INSTANCE", "MIGRATION", "unknown"]),
    )


def no_topology() -> dict[str, Any]:
    return {"levels": {}, "domains": [], "attachments": [], "revision": 3}


@given(contents())
def test_a_content_comes_back(content: Content) -> None:
    text = "\n".join(fleet_lines(Exported("cloud", no_topology(), content)))
    again = expand(read_fleet(text))
    assert {one.uuid: one for one in again.providers} == {
        uuid: replace(one, inventories=tuple(one.inventories))
        for uuid, one in content.providers.items()
    }
    assert {
        one.consumer.uuid: AllocationSet(one.consumer, dict(one.allocations)) for one in again.load
    } == {
        uuid: replace(one, allocations=dict(one.allocations))
        for uuid, one in content.consumers.items()
    }


TOPOLOGY: dict[str, Any] = {
    "levels": {"location": ["zone", "rack"], "power": ["pdu"]},
    "domains": [
        {"name": "az 1", "level": "zone", "tree": "location", "parent": None},
        {"name": "r1", "level": "rack", "tree": "location", "parent": "az 1"},
        {"name": "7", "level": "pdu", "tree": "power", "parent": None},
    ],
    "attachments": [
        {"host": "h:1 (left)", "domain": "r1", "tree": "location"},
        {"host": "h:1 (left)", "domain": "7", "tree": "power"},
    ],
    "revision": 12,
}


def test_the_topology_comes_back_alone_and_with_its_hosts() -> None:
    host = ResourceProvider(str(UUID(int=9)), "h:1 (left)", None, str(UUID(int=9)))
    whole = Exported("cloud", TOPOLOGY, Content({host.uuid: host}))
    alone = read_fleet("\n".join(topology_lines(whole)))
    assert alone.revision == 12
    found = [expand(alone), expand(read_fleet("\n".join(fleet_lines(whole))))]
    for one in found:
        assert one.topology.attachments == {
            ("location", "h:1 (left)"): "r1",
            ("power", "h:1 (left)"): "7",
        }
        assert one.topology.domains["location", "r1"].parent == "az 1"
    assert [len(one.providers) for one in found] == [0, 1]


def test_flavors_come_back_except_novas() -> None:
    own = FlavorValue(
        "1", "own", {"VCPU": 2}, ["CUSTOM_A", ["CUSTOM_B", "CUSTOM_C"]], ["CUSTOM_D"], {":x": "y"}
    )
    novas = FlavorValue("2", "novas", {"VCPU": 1}, [], [], {}, size=FlavorSize(1, 1, 1, 0, 0))
    exported = Exported("cloud", no_topology(), flavors=[own, novas])
    (flavor,) = read_fleet("\n".join(fleet_lines(exported))).flavors
    assert (flavor.id, flavor.name, dict(flavor.resources)) == ("1", "own", {"VCPU": 2})
    assert set(flavor.required) == {frozenset({"CUSTOM_A"}), frozenset({"CUSTOM_B", "CUSTOM_C"})}
    assert flavor.forbidden == {"CUSTOM_D"}
    assert flavor.extra_specs == {":x": "y"}
