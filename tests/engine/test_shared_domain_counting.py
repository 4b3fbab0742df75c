"""Policies that cross are refuted by counting, however large the fleet, and never without proof."""

from dataclasses import replace

import pytest

from moorage.domain.ensembles import PolicyStatement
from moorage.domain.explain import Element
from moorage.domain.period import SECOND
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.explain.refusal import explain
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.problem import Outcome, Problem, Verdict
from moorage.engine.joint.problem_index import index_problem
from moorage.engine.joint.shared_domain_counting import joined_members_refute
from moorage.policies.primitives import OnlyOn
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, random_built, request, statement, terrain

LIMIT = 20 * SECOND
RACKS = 4


class NeverAsked:
    """An exact solver that must not be needed."""

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        raise AssertionError


def built(
    *policies: PolicyStatement, zone_of: str = "0011", homeless: bool = False
) -> BuiltProblem:
    """Two roles of three, on four racks of two hosts in two zones, all with plenty of room."""
    hosts = [f"h{i}" for i in range(2 * RACKS)]
    zones = (Domain("z0", "zone"), Domain("z1", "zone"))
    racks = [Domain(f"r{i}", "rack", parent=f"z{zone_of[i]}") for i in range(RACKS)]
    attached = [Attachment(name, f"r{i // 2}") for i, name in enumerate(hosts)]
    topology = Topology.build(
        {"location": ("zone", "rack")}, [*zones, *racks], attached[: -1 if homeless else None]
    )
    asked = request({"a": (3, {"VCPU": 1}), "b": (3, {"VCPU": 1})}, policies)
    return build_on_terrain(asked, terrain([Host(one, {"VCPU": 64}) for one in hosts], topology))


def near(*roles: str, level: str = "rack") -> PolicyStatement:
    return statement("near", "affinity", *roles, level=level)


CROSSING = [
    [near("a"), statement("far", "spread", "a", level="rack", min_domains=2)],
    [near("a"), statement("far", "anti-affinity", "a", level="rack", max_per_domain=2)],
    # A rack lies in one zone, and a host in one rack.
    [near("a"), statement("far", "spread", "a", level="zone", min_domains=2)],
    [
        near("a", level="host"),
        statement("far", "anti-affinity", "a", level="zone", max_per_domain=2),
    ],
    [
        statement("near", "proximity", "a", "b", zip_=True, level="rack"),
        statement("far", "separation", "a", "b", zip_=True, level="rack"),
    ],
]


@pytest.mark.parametrize("policies", CROSSING)
def test_crossing_policies_need_no_search_and_are_the_minimal_conflict(
    policies: list[PolicyStatement],
) -> None:
    crossed = built(*policies)
    solver = Portfolio(NeverAsked())
    found = solver.solve(crossed.problem, time_limit=LIMIT, seed=0)
    assert (found.verdict, found.solver) == (Verdict.INFEASIBLE, "counting")
    (conflict,) = explain(crossed, solver, remaining=lambda: 20.0).conflicts
    assert set(conflict.elements) == {Element("policy", "near"), Element("policy", "far")}
    assert conflict.minimal


@pytest.mark.parametrize("policies", CROSSING)
@pytest.mark.parametrize("left", [0, 1])
def test_each_of_them_alone_is_not_refuted(policies: list[PolicyStatement], left: int) -> None:
    alone = built(policies[left]).problem
    assert not refuted(alone)


def test_preferences_join_nobody() -> None:
    soft = replace(near("a"), weight=1)
    apart = statement("far", "anti-affinity", "a", level="rack")
    assert not joined_members_refute(index_problem(built(soft, apart).problem))


def test_a_zone_may_be_shared_by_members_in_different_racks() -> None:
    wide = [near("a", level="zone"), statement("far", "anti-affinity", "a", level="rack")]
    assert not joined_members_refute(index_problem(built(*wide, zone_of="0001").problem))


def test_members_on_hosts_without_a_rack_count_nowhere() -> None:
    """Without the filter that keeps them to hosts in a rack, nothing joins them."""
    problem = built(*CROSSING[1], homeless=True).problem
    assert joined_members_refute(index_problem(problem))
    open_to_all = tuple(one for one in problem.primitives if not isinstance(one, OnlyOn))
    lax = replace(problem, primitives=open_to_all)
    assert not joined_members_refute(index_problem(lax))
    truth = Exhaustive().solve(lax, time_limit=LIMIT, seed=0)
    assert truth.verdict is Verdict.FEASIBLE


@pytest.mark.parametrize("partial", [False, True])
def test_only_what_is_impossible_is_refuted(partial: bool) -> None:  # noqa: FBT001 - a case
    found = 0
    for seed in range(90_000, 92_500):
        problem = random_built(seed, policies=5, partial=partial).problem
        if joined_members_refute(index_problem(problem)):
            found += 1
            truth = Exhaustive().solve(problem, time_limit=LIMIT, seed=0)
            assert truth.verdict is Verdict.INFEASIBLE, seed
    assert found > 10
