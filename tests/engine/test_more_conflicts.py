"""Conflicts beside the first one are conflicts of the request, not of what is left of it."""

from dataclasses import replace

from moorage.domain.topology import DEFAULT_TREE, Attachment, Domain, Topology
from moorage.engine.explain.refusal import explain
from moorage.engine.joint.build import build_on_terrain
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, request, statement, terrain

RACKS = Topology.build(
    {DEFAULT_TREE: ("rack",)},
    (Domain("r1", "rack"), Domain("r2", "rack")),
    (Attachment("h1", "r1"), Attachment("h2", "r1"), Attachment("h3", "r2")),
)


def test_a_policy_that_the_request_meets_is_no_conflict() -> None:
    """Without the trait it would count a third host, over which two members cannot be even."""
    free = {"VCPU": 8}
    hosts = [Host("h1", free), Host("h2", free), Host("h3", free, traits=frozenset({"CUSTOM_A"}))]
    policies = [
        statement("apart", "anti-affinity", "a", level="rack"),
        statement("even", "spread", "a", level="host", max_skew=0),
    ]
    asked = request({"a": (2, {"VCPU": 2})}, policies)
    barred = replace(asked.roles[0], forbidden=frozenset({"CUSTOM_A"}))
    asked = replace(asked, roles=(barred,))
    found = explain(
        build_on_terrain(asked, terrain(hosts, RACKS)),
        Portfolio(CpSat()),
        remaining=lambda: 30.0,
    )
    [only] = found.conflicts
    assert sorted(one.name for one in only.elements) == ["a", "apart"]
    assert only.minimal
