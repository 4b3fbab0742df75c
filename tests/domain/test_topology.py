from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription, UnknownName
from moorage.domain.topology import HOST, Attachment, Domain, Level, Topology

LEVELS = {"location": ("zone", "rack"), "power": ("pdu",)}
RACK = Level("location", "rack")
ZONE = Level("location", "zone")

DOMAINS = (
    Domain("z1", "zone"),
    Domain("r1", "rack", parent="z1"),
    Domain("r2", "rack", parent="z1"),
    Domain("r3", "rack"),
    Domain("p1", "pdu", tree="power"),
)
ATTACHED = (
    Attachment("h1", "r1"),
    Attachment("h2", "r2"),
    Attachment("h3", "r3"),
    Attachment("h4", "z1"),
    Attachment("h1", "p1", tree="power"),
)


@pytest.fixture
def topology() -> Topology:
    return Topology.build(LEVELS, DOMAINS, ATTACHED)


@pytest.mark.parametrize(
    ("host", "level", "domain"),
    [
        ("h1", RACK, "r1"),
        ("h1", ZONE, "z1"),
        ("h1", Level("power", "pdu"), "p1"),
        ("h1", Level("power", HOST), "h1"),
        ("h3", ZONE, None),
        ("h4", RACK, None),
        ("h4", ZONE, "z1"),
        ("h2", Level("power", "pdu"), None),
        ("unknown", RACK, None),
    ],
)
def test_a_host_stands_in_the_domains_above_it(
    topology: Topology, host: str, level: Level, domain: str | None
) -> None:
    assert topology.domain_of(host, level) == domain


def test_a_distance_names_the_level_within_which_hosts_are_that_near(topology: Topology) -> None:
    assert topology.level_within(0) == Level("location", HOST)
    assert topology.level_within(1) == replace(RACK, or_below=True)
    assert topology.level_within(2) == replace(ZONE, or_below=True)
    assert topology.level_within(3) is None
    assert topology.level_within(1, "power") == Level("power", "pdu", or_below=True)


def test_an_unknown_level_is_named(topology: Topology) -> None:
    with pytest.raises(UnknownName, match=r"row; there are: zone, rack, power:pdu, host, server$"):
        topology.find_level("row")
    with pytest.raises(UnknownName, match=r"no such level: racks; did you mean rack\?"):
        topology.find_level("racks")
    with pytest.raises(UnknownName, match=r"no such level: power:pd; did you mean power:pdu\?"):
        topology.find_level("pd", "power")
    assert topology.find_level(HOST, "power") == Level("power", HOST)


@pytest.mark.parametrize(
    ("domains", "attachments", "line"),
    [
        ((Domain("a", "row", line=7),), (), 7),
        ((Domain("a", "rack", line=1), Domain("a", "rack", line=2)), (), 2),
        ((Domain("a", "rack", parent="b", line=3),), (), 3),
        ((Domain("a", "rack", parent="a", line=4),), (), 4),
        ((Domain("a", "zone", parent="b", line=5), Domain("b", "zone", parent="a", line=6)), (), 5),
        ((Domain("a", "zone", parent="b", line=8), Domain("b", "rack")), (), 8),
        ((Domain("p", "pdu", tree="power"), Domain("a", "rack", parent="p", line=9)), (), 9),
        ((), (Attachment("h1", "nowhere", line=10),), 10),
        (
            (Domain("a", "rack"), Domain("b", "rack")),
            (Attachment("h", "a"), Attachment("h", "b", line=11)),
            11,
        ),
    ],
)
def test_a_broken_topology_names_the_line(
    domains: tuple[Domain, ...], attachments: tuple[Attachment, ...], line: int
) -> None:
    with pytest.raises(InvalidDescription) as refused:
        Topology.build(LEVELS, domains, attachments)
    assert refused.value.line == line
    assert refused.value.path is not None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.none() | st.integers(0, 5))))
def test_whatever_is_accepted_has_no_cycle(shapes: list[tuple[int, int, int | None]]) -> None:
    levels = {"location": ("top", "middle", "bottom")}
    domains = [
        Domain(f"d{name}", levels["location"][level], parent=None if up is None else f"d{up}")
        for name, level, up in shapes
    ]
    try:
        built = Topology.build(levels, domains)
    except InvalidDescription:
        return
    for domain in built.domains.values():
        assert built.ancestor("location", domain.name, domain.level) == domain.name
        assert built.ancestor("location", domain.name, "no such level") is None


@pytest.mark.parametrize("names", [("rack", "host"), ("host",), ("rack", "rack")])
def test_a_level_that_is_there_already_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidDescription) as refused:
        Topology.build({"location": names}, [])
    assert refused.value.path == "levels.location"


def test_a_domain_stands_below_the_nearest_that_is_shown(topology: Topology) -> None:
    line = (Domain("x", "a", "t"), Domain("y", "b", "t", "x"), Domain("z", "c", "t", "y"))
    built = Topology.build({"t": ("a", "b", "c")}, line, (Attachment("h1", "z", tree="t"),))
    seen = built.only(lambda one: one.level != "b")
    assert {one.name: one.parent for one in seen.domains.values()} == {"x": None, "z": "x"}
    assert (seen.levels, seen.attachments) == (built.levels, {})
    alone = built.only(lambda one: one.level == "c")
    assert {one.name: one.parent for one in alone.domains.values()} == {"z": None}
    assert topology.only(lambda _: True).domains == topology.domains
