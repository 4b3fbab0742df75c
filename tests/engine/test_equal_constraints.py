"""What several policies require alike is required once; preferences add up."""

from moorage.domain.topology import EMPTY
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.problem import Problem
from moorage.engine.joint.problem_index import index_problem
from moorage.testing.problems import Host, request, statement, terrain


def problem(count: int, *, weight: int | None = None, limits: int = 1) -> Problem:
    policies = [
        statement(
            f"p{n}",
            "anti-affinity",
            "a",
            level="host",
            max_per_domain=1 + n % limits,
            weight=weight,
        )
        for n in range(count)
    ]
    hosts = [Host(f"h{n}", {"VCPU": 8}) for n in range(40)]
    asked = request({"a": (30, {"VCPU": 1})}, policies)
    return build_on_terrain(asked, terrain(hosts, EMPTY)).problem


def test_equal_requirements_are_one_constraint() -> None:
    assert len(index_problem(problem(7)).constraints) == 1
    assert len(index_problem(problem(8, limits=4)).constraints) == 4


def test_equal_preferences_stay_several() -> None:
    found = index_problem(problem(7, weight=2))
    assert len(found.constraints) == 7
    assert {c.primitive.policy for c in found.constraints} == {f"p{n}" for n in range(7)}


def test_the_tightest_limit_on_all_members_counts() -> None:
    found = index_problem(problem(8, limits=4))
    assert found.host_limit(tuple(range(30))) == 1
    assert index_problem(problem(0)).host_limit((0, 1)) is None
    assert not refuted(found.problem)
