"""Separation between roles: tiers that are close in themselves, and far from each other."""

from dataclasses import replace
from typing import Any

import pytest

from moorage.domain.ensembles import PolicyStatement
from moorage.domain.errors import Contradiction, InvalidDescription
from moorage.domain.period import SECOND
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.verify import verify
from moorage.policies.contradiction import refuse_contradictions
from moorage.policies.primitives import Apart, AtMost
from moorage.policies.separation import Separation
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, request, statement, terrain

ROLES = {"east": (2, {"VCPU": 1}), "west": (2, {"VCPU": 1}), "db": (1, {"VCPU": 1})}
APART: dict[str, Any] = {"level": "rack", "between": "roles"}


def built(racks: int, *policies: tuple[str, str, dict[str, Any]]) -> BuiltProblem:
    """Clusters east and west, and a database, on racks of two hosts."""
    stated = [
        statement(name, type_, *members.split(), **parameters)
        for name, (type_, members, parameters) in zip("abcdef", policies, strict=False)
    ]
    return built_of(ROLES, racks, *stated)


def built_of(
    roles: dict[str, tuple[int, dict[str, int]]], racks: int, *stated: PolicyStatement
) -> BuiltProblem:
    """Members of these roles on racks of two hosts."""
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain(f"r{i}", "rack") for i in range(racks)],
        [Attachment(f"h{i}", f"r{i // 2}") for i in range(2 * racks)],
    )
    fleet = terrain([Host(f"h{i}", {"VCPU": 4}) for i in range(2 * racks)], topology)
    return build_on_terrain(request(roles, list(stated)), fleet)


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


COPIES = ("east/0", "east/1", "west")
CLUSTERS = {f"{copy}/{role}": (1, {"VCPU": 1}) for copy in COPIES for role in "ab"}


def between(sides: Any, *, racks: int = 3, roles: Any = CLUSTERS) -> BuiltProblem:
    fleet = built(racks).terrain
    names = ["*"] if isinstance(sides, str) else [name for side in sides for name in side]
    stated = statement("s", "separation", *names, level="rack", between=sides)
    return build_on_terrain(request(roles, [stated]), fleet)


@pytest.mark.parametrize(
    ("sides", "least"),
    [
        ("groups", 3),
        ([["east"], ["west"]], 2),
        ([["east[0]"], ["east[1]", "west"]], 2),
        ([["east[0]"], ["east[1]"], ["west"]], 3),
        ([["east/a"], ["west/a"]], 2),
    ],
)
def test_sides_have_racks_of_their_own(sides: object, least: int) -> None:
    for racks in (least - 1, least):
        problem = between(sides, racks=racks).problem
        for solver in (Exhaustive(), Portfolio(CpSat())):
            found = solver.solve(problem, time_limit=5 * SECOND, seed=0)
            assert (found.verdict is Verdict.FEASIBLE) == (racks == least)


def test_a_hundred_sides_are_placed_each_in_a_rack_of_its_own() -> None:
    roles = {f"cell{n}": (2, {"VCPU": 1}) for n in range(100)}
    problem = between([[name] for name in roles], racks=100, roles=roles)
    found = Portfolio(CpSat()).solve(problem.problem, time_limit=20 * SECOND, seed=0)
    assert found.hosts is not None
    verify(problem, found.hosts)
    short = between([[name] for name in roles], racks=99, roles=roles)
    assert refuted(short.problem)


def test_the_need_of_sides_is_said_in_domains() -> None:
    for sides, said in (
        ("groups", "3 racks for east/0 and east/1 and west (no rack holds two of these groups)"),
        ([["west", "east[1]"], ["east[0]"]],
         "2 racks for east[1] with west and east[0] (no rack holds two of these sides)"),
    ):  # fmt: skip
        problem = between(sides)
        [rule] = problem.rules
        assert rule.policy.requirement(rule.edges[0], problem.policy_view) == said


def test_what_is_in_no_group_is_a_side_of_groups() -> None:
    problem = between("groups", racks=1, roles={"lb": (2, {"VCPU": 1}), "a/w": (1, {"VCPU": 1})})
    assert Exhaustive().solve(problem.problem, time_limit=SECOND, seed=0).verdict is (
        Verdict.INFEASIBLE
    )
    [rule] = problem.rules
    said = rule.policy.requirement(rule.edges[0], problem.policy_view)
    assert said.startswith("2 racks for a and what is in no group")


@pytest.mark.parametrize(
    ("sides", "path", "text"),
    [
        ([], "between", "2 to 1000 sides, not 0"),
        ([["east"]], "between", "2 to 1000 sides, not 1"),
        ([["a"]] * 1001, "between", "2 to 1000 sides, not 1001"),
        ([["east"], []], "between[1]", "a side is empty"),
        ([["east"], "west"], "between[1]", "must be a list"),
        ([["east"], [3]], "between[1][0]", "must be a string"),
        ([["east"], ["east"]], "between[1]", "east is on two sides"),
        ([["east"], ["tag:x"]], "between[1]", "not tag:x"),
        ([["east"], ["*"]], "between[1]", "not [*]"),
        ("group", "between", "must be one of members, roles, groups"),
        (3, "between", "must be a string"),
    ],
)
def test_sides_that_are_none_are_refused(sides: object, path: str, text: str) -> None:
    with pytest.raises(InvalidDescription, match=text) as refused:
        Separation.parse({"level": "rack", "between": sides}, path="p")
    assert refused.value.path == f"p.{path}"


@pytest.mark.parametrize(
    ("sides", "at", "text"),
    [
        ([["east"], ["east[1]"]], 1, "role east/1/a is on two sides"),
        ([["east/a"], ["west", "east[0]"]], 1, "role east/0/a is on two sides"),
        ([["east"], ["east/0/a"]], 1, "on two sides"),
        ([["east"], ["wset"]], 1, "wset is no role, group or copy"),
        ([["east"], ["west/a[0]"]], 1, r"west/a\[0\] is no role, group or copy"),
    ],
)
def test_sides_are_of_roles_that_there_are_and_disjoint(
    sides: list[list[str]], at: int, text: str
) -> None:
    asked = request(CLUSTERS)
    names = [name for side in sides for name in side]
    stated = statement("s", "separation", *names, level="rack", between=sides)
    with pytest.raises(InvalidDescription, match=text) as refused:
        refuse_contradictions(asked.roles, asked.members, [stated])
    assert refused.value.path == f"policies.s.between[{at}]"


def test_sides_that_must_be_together_contradict_their_separation() -> None:
    asked = request(CLUSTERS)
    apart = statement("s", "separation", "east", "west", level="rack", between=[["east"], ["west"]])
    near = statement("n", "affinity", "east/0", "west/a", level="rack")
    with pytest.raises(Contradiction) as refused:
        refuse_contradictions(asked.roles, asked.members, [apart, near])
    assert set(refused.value.policies) == {"s", "n"}


@pytest.mark.parametrize(("racks", "verdict"), [(3, "feasible"), (2, "infeasible")])
def test_sides_of_single_members_are_one_limit_for_each_domain(racks: int, verdict: str) -> None:
    """And not a rule for every two: of a thousand sides these would be half a million."""
    roles = {"east": (1, {"VCPU": 1}), "west": (1, {"VCPU": 1}), "db": (1, {"VCPU": 1})}
    found = built_of(roles, racks, statement("apart", "separation", "east", "west", "db", **APART))
    (limit,) = found.problem.primitives
    assert isinstance(limit, AtMost)
    assert (len(limit.members), limit.limit, limit.weight) == (3, 1, None)
    for solver in (Exhaustive(), Portfolio(CpSat())):
        assert solver.solve(found.problem, time_limit=5 * SECOND, seed=0).verdict.value == verdict


def test_a_side_of_two_members_and_a_preference_are_compared_pair_by_pair() -> None:
    roles = {"east": (2, {"VCPU": 1}), "west": (1, {"VCPU": 1}), "db": (1, {"VCPU": 1})}
    found = built_of(roles, 3, statement("apart", "separation", "east", "west", "db", **APART))
    assert sum(isinstance(one, Apart) for one in found.problem.primitives) == 3
    alone = {"east": (1, {"VCPU": 1}), "west": (1, {"VCPU": 1}), "db": (1, {"VCPU": 1})}
    preferred = replace(statement("apart", "separation", "east", "west", "db", **APART), weight=2)
    found = built_of(alone, 3, preferred)
    assert sum(isinstance(one, Apart) for one in found.problem.primitives) == 3
