"""Fleets as values: names, dealing out, expansion, and load that can be repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription, UnknownName
from moorage.domain.flavors import Flavor
from moorage.domain.fleet import (
    MAX_HOSTS,
    DomainClass,
    DrawnLoad,
    Fleet,
    HostClass,
    Names,
    Order,
    Owner,
    PlacedLoad,
    Spread,
)
from moorage.domain.fleet_expansion import aggregate_uuid, expand, provider_uuid
from moorage.domain.fleet_parts import parts
from moorage.domain.providers import Inventory
from moorage.domain.topology import Level

SMALL = Flavor("1", "small", {"VCPU": 1, "MEMORY_MB": 1024})
LARGE = Flavor("2", "large", {"VCPU": 8, "MEMORY_MB": 2048}, required=(frozenset({"CUSTOM_BIG"}),))

ITSELF = Spread((Names("r1"),))


def hosts(count: int = 8, **changes: object) -> HostClass:
    fields: dict[str, object] = {
        "name": "plain",
        "names": Names("h{n}", count, line=7),
        "inventories": (Inventory("VCPU", 16), Inventory("MEMORY_MB", 65536)),
        "places": {"location": Spread((Names("r{n}", 2),))},
    }
    return HostClass(**{**fields, **changes})  # type: ignore[arg-type] # a test's shorthand


def fleet(**changes: object) -> Fleet:
    fields: dict[str, object] = {
        "name": "test",
        "hosts": (hosts(),),
        "levels": {"location": ("zone", "rack")},
        "domains": (
            DomainClass(Names("az1"), "zone"),
            DomainClass(Names("r{n}", 2), "rack", parents=Spread((Names("az1"),))),
        ),
        "flavors": (SMALL, LARGE),
    }
    return Fleet(**{**fields, **changes})  # type: ignore[arg-type] # a test's shorthand


def drawn(**changes: object) -> DrawnLoad:
    fields: dict[str, object] = {
        "name": "tenants",
        "seed": 1,
        "mean": 0.6,
        "flavors": {"small": 3, "large": 1},
        "uneven": {"rack": 0.2, "host": 0.2},
        "line": 40,
    }
    return DrawnLoad(**{**fields, **changes})  # type: ignore[arg-type] # a test's shorthand


def test_a_pattern_counts_and_pads() -> None:
    assert Names("h{n}", 3).expand() == ("h1", "h2", "h3")
    assert Names("h-{n:03}.lan", 2, first=9).expand() == ("h-009.lan", "h-010.lan")
    assert Names("solo").expand() == ("solo",)


@pytest.mark.parametrize(
    "names",
    [
        Names("h{n}"),
        Names("h", 2),
        Names("{n}-{n}", 2),
        Names("h{n}", 0),
        Names("h{n}", MAX_HOSTS + 1),
        Names(""),
        Names("has space"),
        Names("-h"),
        Names("h" * 129),
        Names("h" * 126 + "{n}", 1000),
    ],
)
def test_a_name_that_cannot_be_is_refused(names: Names) -> None:
    with pytest.raises(InvalidDescription):
        names.expand()


@given(st.integers(1, 30), st.integers(0, 200), st.sampled_from(Order))
def test_dealing_out_is_even(domains: int, count: int, order: Order) -> None:
    dealt = Spread((Names("d{n}", domains),), order).over(count)
    assert len(dealt) == count
    sizes = [dealt.count(f"d{i + 1}") for i in range(domains)]
    assert max(sizes) - min(sizes) <= 1
    if order is Order.BLOCK:
        runs = [name for i, name in enumerate(dealt) if i == 0 or dealt[i - 1] != name]
        assert len(runs) == len(set(runs))


def test_expansion_spells_everything_out() -> None:
    big = hosts(2, name="big", names=Names("b{n}", 2), traits=frozenset({"CUSTOM_BIG"}))
    expanded = expand(fleet(hosts=(hosts(aggregates=frozenset({"ssd"})), big)))
    assert [one.name for one in expanded.providers] == [*(f"h{n}" for n in range(1, 9)), "b1", "b2"]
    first = expanded.providers[0]
    assert first.uuid == first.root_uuid == provider_uuid("h1")
    assert first.aggregates == {aggregate_uuid("ssd")}
    assert expanded.topology.domain_of("h4", Level("location", "rack")) == "r1"
    assert expanded.topology.domain_of("h5", Level("location", "rack")) == "r2"
    assert expanded.topology.domain_of("b2", Level("location", "zone")) == "az1"
    assert expanded.class_of["b1"] == "big"


def test_an_aggregate_may_be_a_uuid() -> None:
    uuid = "6f5b7d5e-3c1a-5e0f-9a58-0d5c8a1f7e42"
    assert aggregate_uuid(uuid) == uuid


@pytest.mark.parametrize(
    ("changes", "text", "line"),
    [
        ({"hosts": (hosts(), hosts(1, names=Names("h3", line=9)))}, "h3 is declared twice", 9),
        ({"hosts": (hosts(places={"power": Spread((Names("x"),))}),)}, "unknown tree power", 7),
        ({"hosts": (hosts(places={"location": Spread((Names("r9"),))}),)}, "unknown domain r9", 7),
        ({"flavors": (SMALL, SMALL)}, "is declared twice", None),
        (
            {
                "domains": (
                    DomainClass(Names("r1", line=3), "rack", parents=Spread((Names("r1"),))),
                )
            },
            "cycles are not possible",
            3,
        ),
        ({"load": (PlacedLoad("x", (Names("h99"),), {"VCPU": 1}, line=5),)}, "host: h99", 5),
        ({"load": (PlacedLoad("x", (Names("h1"),), {"VCPU": 17}, line=5),)}, "does not fit", 5),
        ({"load": (PlacedLoad("x", (Names("h1"),), {"DISK_GB": 1}, line=5),)}, "no DISK_GB", 5),
        ({"load": (drawn(flavors={"huge": 1}),)}, "flavor: huge", 40),
        ({"load": (drawn(uneven={"row": 0.1}),)}, "level: row", 40),
        ({"load": (drawn(classes=frozenset({"gpu"})),)}, "host class: gpu", 40),
    ],
)
def test_what_does_not_fit_together_names_its_line(
    changes: dict[str, object], text: str, line: int | None
) -> None:
    with pytest.raises(InvalidDescription, match=text) as caught:
        expand(fleet(**changes))
    assert caught.value.line == line


def test_placed_load_is_on_its_hosts() -> None:
    load = PlacedLoad("batch", (Names("h{n}", 2), Names("h8")), {"VCPU": 4}, owner=Owner("p"))
    expanded = expand(fleet(load=(load,)))
    assert [list(one.allocations) for one in expanded.load] == [
        [provider_uuid(name)] for name in ("h1", "h2", "h8")
    ]
    assert len({one.consumer.uuid for one in expanded.load}) == 3
    assert len({one.consumer.project_id for one in expanded.load}) == 1


@given(seed=st.integers(0, 2**32), mean=st.floats(0, 1))
def test_drawn_load_repeats_and_fits(seed: int, mean: float) -> None:
    one = fleet(load=(drawn(seed=seed, mean=mean),))
    expanded = expand(one)
    assert expanded == expand(one)
    used: dict[str, int] = {}
    for load in expanded.load:
        for uuid, amounts in load.allocations.items():
            used[uuid] = used.get(uuid, 0) + amounts["VCPU"]
            assert amounts == SMALL.resources, "no host here has the trait that large needs"
    assert all(amount <= 0.98 * 16 for amount in used.values())


def test_another_seed_is_another_load() -> None:
    first, second = (expand(fleet(load=(drawn(seed=seed),))).load for seed in (1, 2))
    assert first != second


def test_drawn_load_comes_near_its_mean() -> None:
    many = hosts(400, places={})
    expanded = expand(fleet(hosts=(many,), load=(drawn(uneven={"host": 0.3}),)))
    used = sum(one["VCPU"] for load in expanded.load for one in load.allocations.values())
    assert 0.55 < used / (400 * 16) < 0.62


def test_drawn_load_leaves_room_for_what_is_placed() -> None:
    by_hand = PlacedLoad("archive", (Names("h1"),), {"VCPU": 12})
    expanded = expand(fleet(load=(by_hand, drawn(mean=0.5, uneven={}))))
    on_first = [one for one in expanded.load if provider_uuid("h1") in one.allocations]
    assert len(on_first) == 1, "h1 is past its target already"


def test_a_load_of_crumbs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.domain.fleet_load.MAX_CONSUMERS", 20)
    with pytest.raises(InvalidDescription, match="more than 20 consumers") as caught:
        expand(fleet(load=(drawn(mean=1.0),)))
    assert caught.value.line == 40


def test_an_unknown_name_is_an_unknown_name() -> None:
    with pytest.raises(UnknownName):
        expand(fleet(load=(drawn(classes=frozenset({"gpu"})),)))


@given(st.integers(1, 20))
def test_parts_are_the_whole_in_order(size: int) -> None:
    expanded = expand(fleet(load=(drawn(),)))
    cut = list(parts(expanded, size))
    assert [one for part in cut for one in part.providers] == list(expanded.providers)
    assert sorted(str(one) for part in cut for one in part.load) == sorted(map(str, expanded.load))
    assert cut[0].flavors == expanded.flavors
    assert [part.topology is not None for part in cut] == [False] * (len(cut) - 1) + [True]
    for part in cut:
        assert {uuid for one in part.load for uuid in one.allocations} <= {
            one.uuid for one in part.providers
        }
