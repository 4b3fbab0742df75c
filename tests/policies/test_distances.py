"""Distances as the concept page defines them, in `proximity` and `separation` alike.

The judge counts the levels at which two hosts differ, in trees with gaps; a host in no domain is as
far from all others as the tree goes.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.ensembles import PolicyStatement
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import SECOND
from moorage.domain.placement import Placement
from moorage.domain.topology import Attachment, Domain, Level, Topology
from moorage.engine.explain.refusal import explain
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.cost import satisfies
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.terrain import Terrain
from moorage.engine.joint.verify import verify
from moorage.policies import parse
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, request, statement, terrain

HOSTS = tuple(f"h{number}" for number in range(5))
PAIRS = [(one, other) for one in HOSTS for other in HOSTS]
LEVELS = ("region", "zone", "rack")
PAIR = {"a": (2, {"VCPU": 1})}


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Trees of up to three levels, with domains without a parent and hosts without a domain."""
    levels = LEVELS[3 - draw(st.integers(0, 3)) :]
    domains: list[Domain] = []
    for name in levels:
        above = [None, *(one.name for one in domains)]
        for number in range(2):
            parent = draw(st.sampled_from(above))
            domains.append(Domain(f"{name}{number}", name, parent=parent))
    places = [None, *(one.name for one in domains)]
    attached = [Attachment(host, at) for host in HOSTS if (at := draw(st.sampled_from(places)))]
    return Topology.build({"location": levels}, domains, attached)


def distance(topology: Topology, one: str, other: str) -> int:
    """By the definition, level by level."""
    if one == other:
        return 0
    upwards = [Level("location", name) for name in reversed(topology.levels["location"])]
    for number, level in enumerate(upwards, start=1):
        shared = topology.domain_of(one, level)
        if shared is not None and shared == topology.domain_of(other, level):
            return number
    return len(upwards) + 1


def fleet(topology: Topology) -> Terrain:
    return terrain([Host(name, {"VCPU": 9}) for name in HOSTS], topology)


def allowed(on: Terrain, stated: PolicyStatement) -> set[tuple[str, str]]:
    """The pairs of hosts without violations; the primitives must say the same."""
    built = build_on_terrain(request(PAIR, [stated]), on)
    found = set()
    for pair in PAIRS:
        rows = [on.row_of[name] for name in pair]
        members = dict(zip(built.problem.members, rows, strict=True))
        placement = Placement(built.policy_view, members)
        good = not parse(stated).violations(built.problem.members, placement)
        assert bool(satisfies(built.problem, np.array([rows]))[0]) == good, (stated, pair)
        if good:
            found.add(pair)
    return found


@given(topologies())
def test_policies_judge_by_the_distance_as_defined(topology: Topology) -> None:
    on = fleet(topology)
    apart = {pair: distance(topology, *pair) for pair in PAIRS}
    farthest = len(topology.levels["location"]) + 1
    for most in range(farthest + 2):
        near = {pair for pair, far in apart.items() if far <= most}
        assert allowed(on, statement("p", "proximity", "a", max_distance=most)) == near
    for least in range(1, farthest + 1):
        away = {pair for pair, far in apart.items() if far >= least}
        assert allowed(on, statement("p", "separation", "a", min_distance=least)) == away
    beyond = parse(statement("p", "separation", "a", min_distance=farthest + 1))
    with pytest.raises(InvalidDescription, match="no two hosts are"):
        beyond.check(topology)


@pytest.mark.parametrize(
    ("most", "verdict"), [(0, Verdict.INFEASIBLE), (1, Verdict.INFEASIBLE), (2, Verdict.FEASIBLE)]
)
def test_search_verification_and_refusal_agree_about_a_host_in_no_rack(
    most: int, verdict: Verdict
) -> None:
    """With racks only, hosts are two apart at most, those in no rack too."""
    topology = Topology.build(
        {"location": ("rack",)}, [Domain("r0", "rack")], [Attachment("h0", "r0")]
    )
    on = terrain([Host("h0", {"VCPU": 1}), Host("h1", {"VCPU": 1})], topology)
    policies = [
        statement("near", "proximity", "a", "b", max_distance=most),
        statement("outside", "fence", "a", domains=["h1"]),
    ]
    roles: dict[str, Any] = {"a": (1, {"VCPU": 1}), "b": (1, {"VCPU": 1})}
    built = build_on_terrain(request(roles, policies), on)
    found = Exhaustive().solve(built.problem, time_limit=5 * SECOND, seed=0)
    assert found.verdict is verdict
    if found.hosts is not None:
        verify(built, found.hosts)
    else:
        refusal = explain(built, Portfolio(CpSat()), remaining=lambda: 30.0)
        assert f"near max_distance {most}->2" in [str(one.change) for one in refusal.relaxations]
