"""Pairs of demands that exclude each other, and what of a conflict shows that they do.

An operator reads a conflict and nothing else: each part's own number is there, and what is left of
all parts together.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from tests.engine.test_conflict_sentences import check, explained

from moorage.domain.ensembles import MemberKind, PolicyStatement, Role
from moorage.domain.explain import Conflict
from moorage.domain.placement import Occupant
from moorage.domain.request_groups import Group
from moorage.domain.topology import EMPTY, Attachment, Domain, Topology
from moorage.engine.joint.build import build, build_on_terrain
from moorage.engine.joint.terrain import Terrain
from moorage.testing.problems import (
    OTHER_PROJECT,
    PARAMETERS,
    Host,
    random_built,
    statement,
    terrain,
)
from moorage.testing.trees import Needed, Node, asked, snapshot

FIRST = frozenset({"CUSTOM_A"})
SECOND = frozenset({"CUSTOM_B"})
AGGREGATE = frozenset({"agg-1"})
FOREIGN = (Occupant("x", OTHER_PROJECT),)


def role(name: str, vcpu: int = 1, *required: frozenset[str]) -> Role:
    return Role(name, {"VCPU": vcpu}, required=required)


def near(level: str = "rack") -> PolicyStatement:
    return statement("near", "proximity", "a", "b", level=level, between=[["a"], ["b"]])


def fence(name: str, whom: str, *domains: str, traits: Sequence[str] = ()) -> PolicyStatement:
    chosen: dict[str, object] = {"traits": list(traits)} if traits else {}
    return replace(statement(name, "fence", whom), parameters={"domains": list(domains), **chosen})


def fleet(host: Callable[[Host, int], Host] = lambda one, _: one) -> Terrain:
    """Three racks of two hosts with 4 VCPU each; each of the first two racks has a trait."""
    traits = {0: FIRST, 1: SECOND}
    domains = [
        *(Domain(zone, "zone") for zone in ("z0", "z1")),
        *(Domain(f"r{n}", "rack", parent="z1" if n > 1 else "z0") for n in range(3)),
    ]
    hosts = [
        host(Host(f"h{n}{i}", {"VCPU": 4}, traits=traits.get(n, frozenset())), n)
        for n in range(3)
        for i in range(2)
    ]
    stands = [Attachment(one.name, f"r{one.name[1]}") for one in hosts]
    return terrain(hosts, Topology.build({"location": ("zone", "rack")}, domains, stands))


def in_use(rack: int, vcpu: int = 4) -> Terrain:
    return fleet(lambda one, n: replace(one, used={"VCPU": vcpu}) if n == rack else one)


PLAIN = fleet()
ANTI = statement("apart", "anti-affinity", "a")
RACK = statement("rack", "affinity", "a", level="rack")
NONE = "hosts usable for a: 0 of 1"
CASES: Mapping[str, tuple[list[Needed], list[PolicyStatement], Terrain, list[str]]] = {
    "two fences": (
        [(role("a"), 2)],
        [fence("f1", "a", "r0"), fence("f2", "a", "r1")],
        PLAIN,
        ["hosts that f1 allows for a: 2", "hosts that f2 allows for a: 2", NONE],
    ),
    "a fence and an exclusive host": (
        [(role("a"), 2)],
        [fence("f1", "a", "r0"), statement("alone", "exclusive", "a")],
        fleet(lambda one, n: one if n else replace(one, occupants=FOREIGN)),
        ["hosts that f1 allows for a: 2", "hosts that alone allows for a: 4", NONE],
    ),
    "a fence and traits": (
        [(role("a", 1, SECOND), 2)],
        [fence("f1", "a", "r0")],
        PLAIN,
        ["hosts that meet the traits of a: 2", "hosts that f1 allows for a: 2", NONE],
    ),
    "resources and traits": (
        [(role("a", 3, FIRST), 1)],
        [],
        in_use(0),
        ["hosts with room for one a: 4", "hosts that meet the traits of a: 2", NONE],
    ),
    "resources and aggregates": (
        [(Role("a", {"VCPU": 3}, member_of=(AGGREGATE,)), 1)],
        [],
        fleet(lambda one, n: one if n else replace(one, used={"VCPU": 2}, aggregates=AGGREGATE)),
        ["hosts with room for one a: 4", "hosts in the aggregates of a: 2", NONE],
    ),
    "alternatives with resources and traits": (
        [(replace(role("a", 4, FIRST), alternatives=(role("a", 2, SECOND),)), 1)],
        [],
        fleet(lambda one, n: replace(one, used={"VCPU": {0: 2, 1: 3}.get(n, 0)})),
        [
            "hosts with room for one a (alternative 0): 2",
            "hosts with room for one a (alternative 1): 4",
            "hosts that meet the traits of a (alternative 0): 2",
            "hosts that meet the traits of a (alternative 1): 2",
            NONE,
        ],
    ),
    "fences and proximity between roles": (
        [(role("a"), 2), (role("b"), 2)],
        [fence("f1", "a", "r0", "r1"), fence("f2", "b", "r2"), near()],
        PLAIN,
        [
            "racks usable for 1 x a: 2 (r0, r1)",
            "racks usable for 2 x b: 1 (r2)",
            "racks usable for all of 1 x a and 2 x b: 0 of 1",
        ],
    ),
    "fences and affinity": (
        [(role("a"), 4)],
        [fence("f1", "a[0]", "r0"), fence("f2", "a[1]", "r1"), RACK],
        PLAIN,
        [
            "racks usable for a[0]: 1 (r0)",
            "racks usable for a[1]: 1 (r1)",
            "racks usable for a[2] and a[3]: 3 (r0, r1, r2)",
            "racks usable for all of 4 x a: 0 of 1",
        ],
    ),
    "traits and proximity by pairs": (
        [(role("a", 1, FIRST), 1), (role("b", 1, SECOND), 1)],
        [statement("pairs", "proximity", "a", "b", zip_=True, level="rack")],
        PLAIN,
        [
            "racks usable for 1 x a: 1 (r0)",
            "racks usable for 1 x b: 1 (r1)",
            "racks usable for all of a[0] and b[0]: 0 of 1",
        ],
    ),
    "proximity and separation": (
        [(role("a"), 1), (role("b"), 1)],
        [near(), statement("far", "separation", "a", "b", level="rack", between="roles")],
        PLAIN,
        ["1 x a cannot be in a rack with 1 x b and in one without"],
    ),
    "proximity and anti-affinity": (
        [(role("a"), 3), (role("b"), 2)],
        [near(), statement("apart", "anti-affinity", "a", level="rack")],
        PLAIN,
        ["racks in which 2 x b can be, at most: 2 of 3"],
    ),
    "proximity and resources": (
        [(role("a", 4), 2), (role("b", 4), 1)],
        [near()],
        PLAIN,
        ["places for 2 x a in 1 rack beside 1 x b, at most: 1 of 2"],
    ),
    "one rack and a host each": (
        [(role("a"), 3)],
        [RACK, ANTI],
        PLAIN,
        ["hosts usable for a in any one rack, at most: 2 of 3"],
    ),
    "one zone and three racks": (
        [(role("a"), 3)],
        [
            statement("zone", "affinity", "a", level="zone"),
            statement("racks", "spread", "a", level="rack", min_domains=3),
        ],
        PLAIN,
        ["racks usable for a in any one zone, at most: 2 of 3"],
    ),
    "one rack and what survives one": (
        [(role("a"), 3)],
        [statement("ha", "survive", "a", level="rack", keep=2), RACK],
        PLAIN,
        ["3 x a cannot be in 1 rack and in 3 racks"],
    ),
    "one rack and even": (
        [(role("a"), 3)],
        [RACK, statement("even", "spread", "a", level="rack", max_skew=1)],
        PLAIN,
        ["3 x a cannot be in 1 rack without a skew above 1"],
    ),
    "one rack and resources": (
        [(role("a", 2), 5)],
        [RACK],
        PLAIN,
        ["VCPU free on hosts usable for a in any one rack, at most: 8 of 10"],
    ),
    "even and a full rack": (
        [(role("a"), 4)],
        [statement("even", "spread", "a", level="rack", max_skew=1)],
        in_use(2),
        ["places for a if no rack holds over 1, as one rack that counts can hold none: 2 of 4"],
    ),
    "even and a rack with little room": (
        [(role("a", 2), 9)],
        [statement("even", "spread", "a", level="rack", max_skew=1)],
        in_use(2, 2),
        [
            "places for a in the rack that counts and has the fewest: 2",
            "places for a with at most 1 more in any other: 8 of 9",
        ],
    ),
    "two roles on hosts of one": (
        [(role("a", 3), 3), (role("b", 3), 4)],
        [],
        PLAIN,
        ["places for a and b together on hosts usable for a and b: 6 of 7"],
    ),
}


def told(conflict: Conflict) -> list[str]:
    """The facts as operators read them."""
    return [_told(*one) for one in conflict.facts]


def _told(text: str, have: int | None, needed: int | None, exact: str) -> str:
    names = exact.removeprefix(text)
    number = "" if have is None else f": {have}"
    return f"{text}{number}{f' of {needed}' if needed else ''}{names}"


@pytest.mark.parametrize("name", CASES)
def test_a_conflict_tells_what_each_part_leaves_and_that_all_leave_too_little(name: str) -> None:
    roles, policies, hosts, facts = CASES[name]
    built = build_on_terrain(replace(asked(roles), policies=tuple(policies)), hosts)
    (conflict,) = explained(built).conflicts
    assert told(conflict) == facts
    assert conflict.minimal


def test_closed_hosts_alone_are_a_conflict_with_their_numbers() -> None:
    shut = {"disabled": frozenset({"h0", "h1"}), "exclusive": frozenset({"h2"})}
    hosts = terrain([Host(f"h{n}", {"VCPU": 4}) for n in range(3)], EMPTY)
    (conflict,) = explained(build_on_terrain(asked([(role("a"), 1)]), hosts, closed=shut)).conflicts
    assert told(conflict) == [
        "disabled hosts: 2",
        "hosts that other ensembles keep to themselves: 1",
        NONE,
    ]


def test_bare_metal_nodes_are_no_hosts_for_servers() -> None:
    taken = Occupant("other", OTHER_PROJECT)
    hosts = terrain(
        [
            Host("h0", {"VCPU": 4}, occupants=(taken,)),
            *(Host(f"n{n}", {"CUSTOM_NODE": 1}, traits=frozenset({"CUSTOM_A"})) for n in range(3)),
        ],
        EMPTY,
    )
    alone = statement("alone", "exclusive", "a")
    for wanted, policies, fact in (
        (role("a"), (alone,), "hosts that alone allows for a: 0"),
        (role("a", 1, frozenset({"CUSTOM_A"})), (), "hosts that meet the traits of a: 0"),
    ):
        built = build_on_terrain(replace(asked([(wanted, 1)]), policies=policies), hosts)
        (conflict,) = explained(built).conflicts
        assert told(conflict) == ["hosts with room for one a: 1", fact, NONE]


def test_closed_pools_are_called_pools() -> None:
    nodes = [Node("h0", "h0", {"VCPU": 4}), Node("pool0", None, {"DISK": 9}, lends_to=("h0",))]
    volume = Role("v", {"DISK": 1}, kind=MemberKind.VOLUME)
    shut = {"exclusive": frozenset({"pool0"})}
    built = build(asked([(volume, 1)]), snapshot(nodes), closed=shut)
    conflicts = explained(built).conflicts
    (closed,) = (one for found in conflicts for one in found.elements if one.kind == "closed")
    assert closed.said == "pools that other ensembles keep to themselves"


def test_members_of_one_kind_that_have_too_few_hosts_are_told_apart() -> None:
    hosts = [Host(f"h{n}", {"VCPU": 4}) for n in range(4)]
    servers = [Host(f"s{n}", {"SESSION": 9}, standing_on="h0") for n in range(2)]
    slices = Role("b", {"SESSION": 1}, kind=MemberKind.SLICE)
    apart = (statement("apart", "anti-affinity", "a", "b"),)
    wanted = replace(asked([(role("a"), 2), (slices, 2)]), policies=apart)
    built = build_on_terrain(wanted, terrain([*hosts, *servers], EMPTY))
    (conflict,) = explained(built).conflicts
    assert told(conflict) == ["hosts usable for b: 1 of 2"]


def test_a_group_that_no_provider_has_enough_for_is_told_the_most() -> None:
    cards = [Node(f"gpu{n}", "h0", {"VGPU": 2 + n}, parent="h0") for n in range(2)]
    nodes = [Node("h0", "h0", {"VCPU": 8}), *cards]
    group = Group("g", {"VGPU": 4})
    for needed in (
        Role("w", {"VCPU": 1}, groups=(group,)),
        Role("w", {"VCPU": 1, "VGPU": 4}),
    ):
        (conflict,) = explained(build(asked([(needed, 1)]), snapshot(nodes))).conflicts
        assert told(conflict) == ["most VGPU free of one provider, for 4 VGPU: 3 of 4"]


def test_roles_beside_alternatives_are_counted() -> None:
    nodes = [Node("h0", "h0", {"VCPU": 9}), Node("gpu", "h0", {"VGPU": 3}, parent="h0")]
    either = (Role("", {"VCPU": 1}), Role("", {"VGPU": 1}))
    plain = Role("w", {"VCPU": 1}, groups=(Group("g", {"VGPU": 2}),))
    mixed = replace(Role("v", {}), alternatives=either)
    built = build(asked([(plain, 2), (mixed, 1)]), snapshot(nodes))
    (conflict,) = explained(built).conflicts
    assert told(conflict) == ["VGPU free on hosts usable for w: 3 of 4"]


def test_racks_and_hosts_of_a_fence_are_named_to_operators_only() -> None:
    policies = (
        fence("f1", "a", "r0", "z1", traits=["CUSTOM_A"]),
        statement("b", "ban", "a", domains=["h00", "h01", "z1"]),
    )
    built = build_on_terrain(replace(asked([(role("a"), 1)]), policies=policies), PLAIN)
    (conflict,) = explained(built).conflicts
    assert conflict.needs == (
        "hosts in z1, the places it names and with CUSTOM_A for 1 x a",
        "hosts outside z1, the places it names for 1 x a",
    )
    assert conflict.exact_needs == (
        "hosts in r0, z1 and with CUSTOM_A for 1 x a",
        "hosts outside h00, h01, z1 for 1 x a",
    )
    every = [*conflict.needs, *(one.text for one in conflict.facts)]
    assert not any(name in text for text in every for name in ("r0", "h00", "h01"))


def test_every_pair_of_policies_is_told_by_numbers_and_names_no_rack_to_tenants() -> None:
    said: Counter[str] = Counter()
    inner = {"r0", "r1", "r2", "h0", "h1", "h2", "h3", "h4"}
    for first, second in ((a, b) for a in PARAMETERS for b in PARAMETERS if a <= b):
        known = {first: PARAMETERS[first], second: PARAMETERS[second]}
        for seed in range(12):
            built = random_built(seed, parameters=known, fixed=0.0)
            for conflict in explained(built).conflicts:
                check(built, conflict)
                said["all"] += 1
                for text in (*conflict.needs, *(one.text for one in conflict.facts)):
                    assert not inner & set(text.replace(",", " ").split())
                    said["tried"] += "ruled out" in text
    assert said["all"] > 50 * said["tried"], said
