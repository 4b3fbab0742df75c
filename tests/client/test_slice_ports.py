"""Which ports belong to the slices on a server, and which to none."""

from dataclasses import dataclass
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from moorage.client.neutron import Port
from moorage.client.slice_ports import VNIC_SLICE, SortedPorts, sort_ports
from moorage.wire.server_providers import Slice

CLAIMS = [f"cccccccc-0000-4000-8000-{number:012}" for number in range(4)]


def port(id_: str, claim: str = CLAIMS[0], number: int = 0) -> Port:
    return Port(id_, f"slice-{claim}-{number}")


def building(units: int = 1, claim: str = CLAIMS[0]) -> Slice:
    return Slice(claim, "building", None, {VNIC_SLICE: units}, None)


def active(slice_id: str, units: int = 1, claim: str = CLAIMS[0]) -> Slice:
    return Slice(claim, "active", slice_id, {VNIC_SLICE: units}, None)


def surplus(found: SortedPorts) -> list[str]:
    return sorted(one.id for one in found.surplus)


def test_what_was_made_already_is_used() -> None:
    found = sort_ports([port("a"), port("b", number=1)], [building(units=3)], frozenset())
    assert {number: one.id for number, one in found.building[CLAIMS[0]].items()} == {0: "a", 1: "b"}
    assert not found.surplus


def test_of_two_the_attached_one_is_kept() -> None:
    found = sort_ports([port("a"), port("b")], [building()], frozenset({"b"}))
    assert found.building[CLAIMS[0]][0].id == "b"
    assert surplus(found) == ["a"]


def test_an_active_slice_keeps_its_own_ports() -> None:
    """Also where its claim is forgotten, and where another port of the claim is attached."""
    ports = [port("a"), port("b"), port("c", number=1), port("d", number=2)]
    for claim in (CLAIMS[0], "b"):
        found = sort_ports(ports, [active("b", 2, claim)], frozenset({"a"}))
        assert surplus(found) == ["a", "d"]


def test_a_slice_that_was_reported_with_another_id_has_no_ports_of_ours() -> None:
    found = sort_ports([port("a"), port("b", number=1)], [active("x", 2)], frozenset({"a", "b"}))
    assert surplus(found) == ["a", "b"]


def test_other_ports_are_left_alone() -> None:
    others = [Port("a", "eth0"), Port("b", f"slice-{CLAIMS[0]}"), Port("c", "slice-x-0"), Port("d")]
    assert sort_ports(others, [], frozenset()) == SortedPorts({}, ())


def test_slices_without_the_class_have_no_ports() -> None:
    session = Slice(CLAIMS[0], "building", None, {"CUSTOM_SESSION": 1}, None)
    assert surplus(sort_ports([port("a")], [session], frozenset())) == ["a"]


@dataclass(frozen=True)
class Situation:
    ports: list[Port]
    slices: list[Slice]
    attached: frozenset[str]


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """Ports of four claims, some made twice, whose slices are building, active or over."""
    ids = (f"p{number}" for number in count())
    ports: list[Port] = []
    slices = []
    for claim in CLAIMS:
        numbers = draw(st.lists(st.integers(0, 3), max_size=5))
        own = [port(next(ids), claim, number) for number in numbers]
        ports += own
        units = draw(st.integers(0, 3))
        state = draw(st.sampled_from(["building", "active", "over"]))
        if state == "building":
            slices.append(building(units, claim))
        elif state == "active":
            slice_id = draw(st.sampled_from([one.id for one in own] or ["other"]))
            slices.append(active(slice_id, units, claim))
    attached = draw(st.frozensets(st.sampled_from([one.id for one in ports]))) if ports else ()
    return Situation(draw(st.permutations(ports)), slices, frozenset(attached))


@given(situations())
def test_each_port_is_a_slices_or_none(now: Situation) -> None:
    found = sort_ports(now.ports, now.slices, now.attached)
    loose = surplus(found)
    assert len(set(loose)) == len(loose)
    units = {one.id: one.resources[VNIC_SLICE] for one in now.slices if one.status == "building"}
    for claim, kept in found.building.items():
        assert set(kept) <= set(range(units[claim]))
        for number, its in kept.items():
            assert its.name == f"slice-{claim}-{number}"
            assert its.id not in loose
    for one in now.slices:
        own = [each for each in now.ports if each.name.startswith(f"slice-{one.id}")]
        there = {each.name for each in own if each.id not in loose}
        if one.status == "building":
            needed = {f"slice-{one.id}-{number}" for number in range(units[one.id])}
            assert there == needed & {each.name for each in own}
        elif one.resources[VNIC_SLICE]:
            first = f"slice-{one.id}-0"
            kept_ids = {each.id for each in own if each.id not in loose}
            is_first = any((each.id, each.name) == (one.slice_id, first) for each in own)
            assert (one.slice_id in kept_ids) == is_first
            assert is_first or not there
    over = set(CLAIMS) - {one.id for one in now.slices}
    assert {each.id for each in now.ports if each.name[6:42] in over} <= set(loose)
    # Once what is surplus is gone, nothing more is.
    rest = [each for each in now.ports if each.id not in loose]
    assert not sort_ports(rest, now.slices, now.attached).surplus
