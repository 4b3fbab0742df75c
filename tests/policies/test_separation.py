"""Separation between roles: tiers that are close in themselves, and far from each other."""

from typing import Any

import pytest

from moorage.domain.period import SECOND
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.verify import verify
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, request, statement, terrain

ROLES = {"east": (2, {"VCPU": 1}), "west": (2, {"VCPU": 1}), "db": (1, {"VCPU": 1})}
APART = {"level": "rack", "between": "roles"}


def built(racks: int, *policies: tuple[str, str, dict[str, Any]]) -> BuiltProblem:
    """Clusters east and west, and a database, on racks of two hosts."""
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain(f"r{i}", "rack") for i in range(racks)],
        [Attachment(f"h{i}", f"r{i // 2}") for i in range(2 * racks)],
    )
    fleet = terrain([Host(f"h{i}", {"VCPU": 4}) for i in range(2 * racks)], topology)
    stated = [
        statement(name, type_, *members.split(), **parameters)
        for name, (type_, members, parameters) in zip("abcdef", policies, strict=False)
    ]
    return build_on_terrain(request(ROLES, stated), fleet)


def test_each_cluster_has_racks_of_its_own() -> None:
    problem = built(
        2,
        ("separation", "east west", APART),
        ("affinity", "east", {"level": "rack"}),
        ("anti-affinity", "east west", {}),
    )
    found = Portfolio(CpSat()).solve(problem.problem, time_limit=5 * SECOND, seed=0)
    assert found.hosts is not None
    verify(problem, found.hosts)
    rack = {
        str(name): int(row) // 2
        for name, row in zip(problem.problem.members, found.hosts, strict=True)
    }
    assert rack["east[0]"] == rack["east[1]"]
    assert rack["east[0]"] not in {rack["west[0]"], rack["west[1]"]}


@pytest.mark.parametrize(("racks", "verdict"), [(2, "infeasible"), (3, "feasible")])
def test_every_two_roles_are_apart(racks: int, verdict: str) -> None:
    problem = built(racks, ("separation", "east west db", APART)).problem
    for solver in (Exhaustive(), Portfolio(CpSat())):
        found = solver.solve(problem, time_limit=5 * SECOND, seed=0)
        assert found.verdict is Verdict(verdict)


def test_members_of_one_role_may_be_together() -> None:
    problem = built(2, ("separation", "east", APART)).problem
    assert Exhaustive().solve(problem, time_limit=SECOND, seed=0).verdict is Verdict.FEASIBLE
    assert not any(type(one).__name__ == "Apart" for one in problem.primitives)


def test_the_need_is_said_in_domains() -> None:
    problem = built(2, ("separation", "east west db", APART))
    [rule] = problem.rules
    [edge] = rule.edges
    said = rule.policy.requirement(edge, problem.policy_view)
    assert said == "3 racks for east and west and db (no rack holds two of these roles)"
