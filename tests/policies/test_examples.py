"""Every policy's examples, as printed in the reference, are true."""

import pytest

from moorage.domain.ensembles import MemberName, PolicyStatement
from moorage.domain.placement import Occupant, Placement
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.policy_view import TerrainView
from moorage.policies import discover, parse
from moorage.policies.contract import Example
from moorage.testing.problems import OTHER_PROJECT, PROJECT, Host, terrain

EXAMPLES = [
    pytest.param(type_, example, id=f"{type_}: {example.title}")
    for type_, policy in discover().items()
    for example in policy.examples
]


def example_fleet(foreign: tuple[str, ...]) -> TerrainView:
    """The fleet of `contract.Example`: racks r1..r3 of h1..h3, zones z1 (r1, r2) and z2 (r3)."""
    racks = {"r1": "z1", "r2": "z1", "r3": "z2"}
    names = [f"{rack}/h{i}" for rack in racks for i in (1, 2, 3)]
    topology = Topology.build(
        {"location": ("zone", "rack")},
        [
            Domain("z1", "zone"),
            Domain("z2", "zone"),
            *(Domain(rack, "rack", parent=zone) for rack, zone in racks.items()),
        ],
        [Attachment(name, name.split("/")[0]) for name in names],
    )
    occupant = Occupant("somebody", OTHER_PROJECT)
    hosts = [
        Host(name, {"VCPU": 8}, occupants=(occupant,) if name in foreign else ()) for name in names
    ]
    fleet = terrain(hosts, topology)
    everywhere = fleet.capacity[:, 0] > 0
    return TerrainView(fleet, PROJECT, frozenset(), {"m": everywhere})


@pytest.mark.parametrize(("type_", "example"), EXAMPLES)
def test_an_example_is_as_good_as_it_says(type_: str, example: Example) -> None:
    fleet = example_fleet(example.foreign)
    policy = parse(PolicyStatement("p", type_, (), parameters=example.parameters))
    policy.check(fleet.topology)
    edge = tuple(MemberName("m", i) for i in range(len(example.hosts)))
    rows = [fleet.terrain.row_of[name] for name in example.hosts]
    placement = Placement(fleet, dict(zip(edge, rows, strict=True)))
    found = policy.violations(edge, placement)
    assert (not found) == example.good, [violation.text for violation in found]


@pytest.mark.parametrize("type_", list(discover()))
def test_a_policy_shows_a_good_and_a_bad_placement(type_: str) -> None:
    assert {example.good for example in discover()[type_].examples} == {True, False}
