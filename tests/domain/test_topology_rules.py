"""Where hosts stand, by rules over names, aggregates and traits."""

import pytest

from moorage.client.fleet_file import read_places
from moorage.domain.errors import InvalidDescription
from moorage.domain.fleet_expansion import aggregate_uuid
from moorage.domain.topology import Level
from moorage.domain.topology_rules import HostFacts, apply, unplaced

RACK, ZONE = Level("location", "rack"), Level("location", "zone")
HOSTS = (
    HostFacts("az1-r1-n1"),
    HostFacts("az1-r2-n1", frozenset({"CUSTOM_PDU_7"})),
    HostFacts("az2-r1-n1", frozenset({"CUSTOM_PDU_8"}), frozenset({aggregate_uuid("gold")})),
    HostFacts("odd", frozenset(), frozenset({aggregate_uuid("gold")})),
)
HEAD = "topology: {location: {levels: [zone, rack]}, power: {levels: [pdu]}}\n"


def places(text: str, hosts: tuple[HostFacts, ...] = HOSTS) -> dict[str, tuple[str | None, ...]]:
    topology = apply(read_places(HEAD + text), hosts)
    return {
        one.name: (topology.domain_of(one.name, ZONE), topology.domain_of(one.name, RACK))
        for one in hosts
    }


def test_groups_named_like_levels_say_the_domains() -> None:
    found = places("rules:\n  - {name: '(?P<zone>az.)-(?P<r>r.)-.*', rack: '{zone}-{r}'}\n")
    assert found == {
        "az1-r1-n1": ("az1", "az1-r1"),
        "az1-r2-n1": ("az1", "az1-r2"),
        "az2-r1-n1": ("az2", "az2-r1"),
        "odd": (None, None),
    }


def test_the_first_rule_that_speaks_of_a_level_is_right() -> None:
    found = places(
        "rules:\n"
        "  - {aggregate: gold, zone: golden}\n"
        "  - {name: '(?P<zone>az.)-(?P<rack>r.)-.*', rack: '{zone}{rack}'}\n"
        "  - {name: '.*', rack: attic}\n"
    )
    assert found["az2-r1-n1"] == ("golden", "az2r1")
    assert found["az1-r1-n1"] == ("az1", "az1r1")
    assert found["odd"] == ("golden", "attic")


def test_traits_and_trees_and_conditions_together() -> None:
    rules = read_places(
        HEAD
        + "rules:\n"
        + "  - {tree: power, trait: 'CUSTOM_PDU_(?P<n>.*)', pdu: 'pdu-{n}'}\n"
        + "  - {trait: 'CUSTOM_PDU_.', aggregate: [gold, silver], zone: both}\n"
    )
    topology = apply(rules, HOSTS)
    assert topology.attachments == {
        ("power", "az1-r2-n1"): "pdu-7",
        ("power", "az2-r1-n1"): "pdu-8",
        ("location", "az2-r1-n1"): "both",
    }
    assert unplaced(topology, HOSTS)["power"] == ["az1-r1-n1", "odd"]


def test_a_mapping_goes_before_rules_and_declared_parents_are_kept() -> None:
    text = (
        "topology:\n  location:\n    levels: [zone, rack]\n    domains:\n"
        "      - {name: z, level: zone}\n      - {name: cellar, level: rack, parent: z}\n"
        "hosts:\n  - {name: odd, place: {location: cellar}}\n"
        "rules:\n  - {name: '.*-(?P<x>r.)-.*', rack: cellar}\n  - {name: odd, rack: attic}\n"
    )
    topology = apply(read_places(text), HOSTS)
    assert {topology.domain_of(name, ZONE) for name in ("odd", "az1-r1-n1")} == {"z"}
    assert {topology.domain_of(name, RACK) for name in ("odd", "az1-r1-n1")} == {"cellar"}


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("rules:\n  - {name: '(?P<zone>az.)-(?P<rack>r.)-.*'}\n", 3, "stands in az1"),
        ("rules:\n  - {name: '(', rack: a}\n", 3, "not a regular expression"),
        ("rules:\n  - {rack: a}\n", 3, "needs at least one of"),
        ("rules:\n  - {name: x}\n", 3, "names a domain of at least one level"),
        ("rules:\n  - {name: x, shelf: a}\n", 3, "unknown key 'shelf'"),
        ("rules:\n  - {name: x, rack: '{y}'}\n", 3, "has a group 'y'"),
        ("rules:\n  - {name: x, rack: '{'}\n", 3, "not a template"),
        ("rules:\n  - {name: '(?P<y>a)?.*', rack: '{y}'}\n", 3, "matched for host"),
        ("rules:\n  - {tree: water, name: x, rack: a}\n", 3, "no such tree"),
        ("rules:\n  - {name: '(?P<rack>.*)', zone: '{rack}'}\n", 3, "is a zone"),
        ("hosts:\n  - {name: who, place: {location: r}}\n", 3, "no such host: who"),
        ("hosts:\n  - {name: odd, place: {location: r}}\n", 3, "unknown domain r"),
        ("unplaced: refuse\nrules:\n  - {name: 'az.*', rack: r}\n", None, "tree location: odd"),
        ("unplaced: perhaps\n", 2, "none of allow, refuse"),
    ],
)
def test_mistakes_are_named(text: str, line: int | None, told: str) -> None:
    with pytest.raises(InvalidDescription, match=told) as caught:
        places(text)
    assert caught.value.line == line


def test_traits_that_contradict_each_other() -> None:
    host = HostFacts("h", frozenset({"CUSTOM_R_1", "CUSTOM_R_2"}))
    with pytest.raises(InvalidDescription, match="say different things"):
        places("rules:\n  - {trait: 'CUSTOM_R_(?P<rack>.)'}\n", (host,))
    assert places("rules:\n  - {trait: 'CUSTOM_R_.', rack: x}\n", (host,))["h"][1] == "x"


NOVA = (
    HostFacts("c1", zone="az1", metadata={"rack": frozenset({"r1"})}),
    HostFacts("c2", zone="az1", metadata={"rack": frozenset({"r2"}), "ssd": frozenset({"true"})}),
    HostFacts("c3", zone="az2"),
    HostFacts("c4"),
)
BY_NOVA = """
rules:
  - {availability_zone: '(?P<zone>.+)'}
  - {metadata: {rack: '(?P<rack>.+)'}}
"""


def test_zones_and_metadata_of_aggregates_place_hosts() -> None:
    assert places(BY_NOVA, NOVA) == {
        "c1": ("az1", "r1"),
        "c2": ("az1", "r2"),
        "c3": ("az2", None),
        "c4": (None, None),
    }


def test_all_conditions_of_a_rule_hold() -> None:
    text = """
rules:
  - {availability_zone: az1, metadata: {rack: '(?P<n>.+)', ssd: 'true'}, rack: 'fast-{n}'}
  - {availability_zone: '(?P<zone>az.)', rack: slow}
"""
    found = places(text.replace("rack: slow", "rack: 'slow-{zone}'"), NOVA)
    assert [rack for _, rack in found.values()] == ["slow-az1", "fast-r2", "slow-az2", None]


def test_two_aggregates_that_say_different_racks_are_a_mistake() -> None:
    torn = HostFacts("c1", zone="az1", metadata={"rack": frozenset({"r1", "r2"})})
    with pytest.raises(InvalidDescription, match="several values of rack of host c1"):
        places(BY_NOVA, (torn,))


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("{metadata: rack, zone: z}", "mapping"),
        ("{metadata: {rack: '('}, zone: z}", "regular expression"),
        ("{availability_zone: [a], zone: z}", "text"),
    ],
)
def test_bad_conditions_about_nova(rule: str, told: str) -> None:
    with pytest.raises(InvalidDescription) as refused:
        read_places(f"{HEAD}rules:\n  - {rule}\n")
    assert refused.value.line == 3
    assert told in refused.value.message
