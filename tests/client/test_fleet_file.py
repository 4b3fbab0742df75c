"""Fleet files: what is shipped, and errors that name path and line."""

from contextlib import suppress
from pathlib import Path

import os_traits
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.client.fleet_body import body
from moorage.client.fleet_file import read_fleet
from moorage.domain.errors import InvalidDescription
from moorage.domain.fleet_expansion import ExpandedFleet, expand
from moorage.domain.fleet_parts import parts
from moorage.domain.topology import Level

FLEETS = Path(__file__).parents[2] / "fleets"

SMALLEST = """\
fleet: one
topology:
  location:
    levels: [rack]
    domains:
      - {name: r1, level: rack}
hosts:
  - name: h1
    inventories: {VCPU: 4}
    traits: [CUSTOM_X]
    place: {location: r1}
flavors:
  - {name: 1, resources: {VCPU: 1}, required: [CUSTOM_X, [CUSTOM_Y, CUSTOM_Z]]}
load:
  - {name: old, on: h1, resources: {VCPU: 2}}
"""


def shipped(name: str) -> ExpandedFleet:
    return expand(read_fleet((FLEETS / name).read_text(encoding="utf-8")))


def used(fleet: ExpandedFleet, resource_class: str) -> dict[str, int]:
    names = {one.uuid: one.name for one in fleet.providers}
    found = dict.fromkeys(names.values(), 0)
    for load in fleet.load:
        for uuid, amounts in load.allocations.items():
            found[names[uuid]] += amounts.get(resource_class, 0)
    return found


def test_three_racks_is_the_first_storys_fleet() -> None:
    fleet = shipped("three-racks.yaml")
    rack, zone = Level("location", "rack"), Level("location", "zone")
    racks = {one.name: fleet.topology.domain_of(one.name, rack) for one in fleet.providers}
    assert racks == {f"h{n}": f"r{(n + 2) // 3}" for n in range(1, 10)}
    assert {fleet.topology.domain_of(name, zone) for name in racks} == {"az1"}
    assert {one.capacity for host in fleet.providers for one in host.inventories[:1]} == {16}
    free = {name: 16 - amount for name, amount in used(fleet, "VCPU").items()}
    assert free == {**{f"h{n}": 16 for n in range(1, 7)}, "h7": 8, "h8": 6, "h9": 6}
    sizes = {one.name: one.resources["VCPU"] for one in fleet.flavors}
    assert sizes == {"m1.small": 1, "m1.medium": 2, "m1.xlarge": 8, "m1.2xlarge": 16}


def test_on_three_racks_only_vcpu_binds() -> None:
    fleet = shipped("three-racks.yaml")
    for host in fleet.providers:
        capacity = {one.resource_class: one.capacity for one in host.inventories}
        for flavor in fleet.flavors:
            copies = 16 // flavor.resources["VCPU"]
            for name, amount in flavor.resources.items():
                assert name == "VCPU" or 3 * copies * amount <= capacity[name]


def test_the_thousand_hosts_are_as_described() -> None:
    fleet = shipped("thousand-hosts.yaml")
    assert len(fleet.providers) == 1000
    levels = [(tree, one.level) for (tree, _), one in fleet.topology.domains.items()]
    assert levels.count(("location", "rack")) == 40
    assert levels.count(("location", "zone")) == 3
    standard = set(os_traits.get_traits())
    names = {name for host in fleet.providers for name in host.traits}
    assert {name for name in names if name not in standard} == {
        f"CUSTOM_GEN_{n}" for n in range(1, 5)
    }
    memory = {
        one.name: next(i.capacity for i in one.inventories if i.resource_class == "MEMORY_MB")
        for one in fleet.providers
    }
    fill = used(fleet, "MEMORY_MB")
    assert 0.6 < sum(fill.values()) / sum(memory.values()) < 0.7
    shares = sorted(fill[name] / memory[name] for name in memory)
    assert shares[100] < 0.5
    assert shares[900] > 0.8


def test_power_runs_across_the_racks() -> None:
    fleet = shipped("thousand-hosts.yaml")
    rack, pdu = Level("location", "rack"), Level("power", "pdu")
    pairs = {
        (fleet.topology.domain_of(one.name, rack), fleet.topology.domain_of(one.name, pdu))
        for one in fleet.providers
    }
    assert len({pdu for rack, pdu in pairs if rack == "r01"}) > 1


def test_a_flavor_may_be_called_by_a_number() -> None:
    fleet = read_fleet(SMALLEST)
    assert fleet.flavors[0].name == "1"
    assert fleet.flavors[0].required == (
        frozenset({"CUSTOM_X"}),
        frozenset({"CUSTOM_Y", "CUSTOM_Z"}),
    )


@pytest.mark.parametrize(
    ("before", "after", "path", "line"),
    [
        ("fleet: one", "fleets: one", "fleets", 1),
        ("levels: [rack]", "levels: [host]", "topology.location.levels", 4),
        ("levels: [rack]", "levels: [rack, rack]", "topology.location.levels", 4),
        ("level: rack", "levle: rack", "topology.location.domains[0].levle", 6),
        ("VCPU: 4", "VCPU: four", "hosts[0].inventories.VCPU", 9),
        ("VCPU: 4", "VCPU: 0", "hosts[0].inventories.VCPU", 9),
        ("VCPU: 4", "vcpu: 4", "hosts[0].inventories.vcpu", 9),
        ("VCPU: 4", "VCPU: {total: 4, ratio: 2}", "hosts[0].inventories.VCPU.ratio", 9),
        ("VCPU: 4", "VCPU: {total: 4, reserved: 5}", "hosts[0].inventories.VCPU.reserved", 9),
        (
            "VCPU: 4",
            "VCPU: {total: 4, allocation_ratio: .nan}",
            "hosts[0].inventories.VCPU",
            9,
        ),
        ("name: h1", "name: h{n}", "hosts[0].name", 8),
        ("name: h1\n", "name: h{n}\n    count: 999999999\n", "hosts[0].count", 9),
        ("[CUSTOM_X]", "[custom-x]", "hosts[0].traits[0]", 10),
        ("[CUSTOM_X]", "CUSTOM_X", "hosts[0].traits", 10),
        ("location: r1", "location: []", "hosts[0].place.location", 11),
        ("on: h1", "on: h1, seed: 3", "load[0]", 15),
        ("resources: {VCPU: 2}", "resources: {VCPU: -2}", "load[0].resources.VCPU", 15),
        ("name: old,", "nmae: old,", "load[0].nmae", 15),
    ],
)
def test_an_error_names_path_and_line(before: str, after: str, path: str | None, line: int) -> None:
    assert before in SMALLEST
    with pytest.raises(InvalidDescription) as caught:
        read_fleet(SMALLEST.replace(before, after, 1))
    assert (caught.value.path, caught.value.line) == (path, line), caught.value


def test_what_only_expansion_finds_has_its_line_too() -> None:
    text = SMALLEST.replace("place: {location: r1}", "place: {location: r2}")
    with pytest.raises(InvalidDescription, match="unknown domain r2") as caught:
        expand(read_fleet(text))
    assert caught.value.line == 8


@given(st.text(max_size=60), st.integers(0, len(SMALLEST)))
def test_broken_text_is_never_anything_but_invalid(noise: str, at: int) -> None:
    text = SMALLEST[:at] + noise + SMALLEST[at + len(noise) // 2 :]
    with suppress(InvalidDescription):
        expand(read_fleet(text))


def test_the_body_carries_every_value() -> None:
    (part,) = parts(expand(read_fleet(SMALLEST)))
    sent = body(part)
    assert [one["name"] for one in sent["providers"]] == ["h1"]
    assert sent["providers"][0]["inventories"]["VCPU"]["total"] == 4
    assert sent["topology"]["attachments"] == [
        {"host": "h1", "domain": "r1", "tree": "location", "line": 8}
    ]
    assert sent["providers"][0]["line"] == 8
    assert sent["flavors"][0]["required"] == [["CUSTOM_X"], ["CUSTOM_Y", "CUSTOM_Z"]]
    (consumer,) = sent["consumers"]
    assert consumer["allocations"] == {sent["providers"][0]["uuid"]: {"VCPU": 2}}


TREES = """
fleet: trees
hosts:
  - name: "n{n}"
    count: 2
    inventories: {MEMORY_MB: 1024}
    aggregates: [store]
    children:
      - name: "numa{n}"
        first: 0
        count: 2
        inventories: {VCPU: 8}
        children:
          - {name: pf, inventories: {SRIOV_NET_VF: 4}, traits: [CUSTOM_PHYSNET_A]}
sharing:
  - {name: nfs, inventories: {DISK_GB: 100}, aggregates: [store]}
"""


def test_children_stand_below_their_hosts_and_are_called_after_them() -> None:
    fleet = expand(read_fleet(TREES))
    names = {one.uuid: one.name for one in fleet.providers}
    found = {
        one.name: (names.get(one.parent_uuid or ""), names[one.root_uuid])
        for one in fleet.providers
    }
    assert found == {
        "n1": (None, "n1"),
        "n1/numa0": ("n1", "n1"),
        "n1/numa0/pf": ("n1/numa0", "n1"),
        "n1/numa1": ("n1", "n1"),
        "n1/numa1/pf": ("n1/numa1", "n1"),
        "n2": (None, "n2"),
        "n2/numa0": ("n2", "n2"),
        "n2/numa0/pf": ("n2/numa0", "n2"),
        "n2/numa1": ("n2", "n2"),
        "n2/numa1/pf": ("n2/numa1", "n2"),
        "nfs": (None, "nfs"),
    }
    store = fleet.providers[0]
    assert store.traits == {"MISC_SHARES_VIA_AGGREGATE"}
    assert store.aggregates == fleet.providers[1].aggregates


def test_a_pool_may_have_a_place() -> None:
    placed = TREES.replace("aggregates: [store]}", "aggregates: [store], place: {location: r1}}")
    tree = "topology: {location: {levels: [rack], domains: [{name: r1, level: rack}]}}\n"
    fleet = expand(read_fleet(placed + tree))
    assert fleet.topology.attachments == {("location", "nfs"): "r1"}
    with pytest.raises(InvalidDescription, match="nfs is placed in unknown tree") as refused:
        expand(read_fleet(placed))
    assert refused.value.path == "sharing.place"


def test_a_part_never_cuts_a_tree_apart() -> None:
    pieces = [[one.name for one in part.providers] for part in parts(expand(read_fleet(TREES)), 3)]
    assert [piece[0] for piece in pieces] == ["nfs", "n1", "n2"]
    assert [len(piece) for piece in pieces] == [1, 5, 5]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: pf,", "name: pf, place: r1,", "place"),
        ('- name: "numa{n}"\n        first: 0\n        count: 2', "- name: numa", ""),
        ("name: nfs,", "name: n1,", "n1 is declared twice"),
        ("aggregates: [store]}", "traits: []}", "aggregates"),
    ],
    ids=["place-of-a-child", "one-child", "a-name-taken", "sharing-with-nobody"],
)
def test_trees_are_read_with_care(old: str, new: str, message: str) -> None:
    assert old in TREES
    text = TREES.replace(old, new)
    if not message:
        assert "n2/numa/pf" in {one.name for one in expand(read_fleet(text)).providers}
        return
    with pytest.raises(InvalidDescription, match=message):
        expand(read_fleet(text))
