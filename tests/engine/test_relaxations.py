"""Fewer members: the nearest count that fits, and none that a policy's words forbid."""

import pytest

from moorage.domain.topology import EMPTY
from moorage.engine.explain.refusal import explain
from moorage.engine.joint.build import build_on_terrain
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, request, statement, terrain


@pytest.mark.parametrize("count", [59, 100, 130, 200])
def test_as_few_are_given_up_as_must_be(count: int) -> None:
    fleet = terrain([Host("h1", {"VCPU": 30}), Host("h2", {"VCPU": 28})], EMPTY)
    built = build_on_terrain(request({"a": (count, {"VCPU": 1})}), fleet)
    found = explain(built, Portfolio(CpSat()), remaining=lambda: 30.0)
    assert [str(one.change) for one in found.relaxations] == [f"a count {count}->58"]


def test_a_member_that_a_policy_names_is_not_given_up() -> None:
    fleet = terrain([Host("h1", {"VCPU": 3})], EMPTY)
    soft = statement("soft", "fence", "a[3]", weight=2, domains=["h1"])
    built = build_on_terrain(request({"a": (4, {"VCPU": 1})}, [soft]), fleet)
    found = explain(built, Portfolio(CpSat()), remaining=lambda: 30.0)
    assert found.verdict == "infeasible"
    assert found.relaxations == ()
