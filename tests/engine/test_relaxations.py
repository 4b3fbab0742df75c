"""Fewer members: the nearest count that fits, and none that a policy's words forbid."""

import itertools

import pytest

from moorage.domain import deadline
from moorage.domain.deadline import TimeExpired
from moorage.domain.explain import Element
from moorage.domain.topology import EMPTY
from moorage.engine.explain.conflicts import Core, Oracle
from moorage.engine.explain.elements import RESOURCES
from moorage.engine.explain.refusal import explain
from moorage.engine.explain.relaxation_candidates import ANY_CHANGE, ChangeProposals
from moorage.engine.explain.relaxations import find_relaxations
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


def many(count: int) -> ChangeProposals:
    """The proposals to a request of so many members, none of which fits."""
    fleet = terrain([Host("h1", {"VCPU": 30})], EMPTY)
    built = build_on_terrain(request({"a": (count, {"VCPU": 31})}), fleet)
    return ChangeProposals(built, [Core((Element(RESOURCES, "a"),), minimal=True)], ANY_CHANGE)


def test_of_thousands_of_members_only_what_is_tried_is_made() -> None:
    """As many requests of as many members took longer than any time limit."""
    found = many(3_000).skipped_counts()
    assert len(found) > 2_900
    assert not any("request" in vars(one) for one in found)
    least = found[0]
    assert len(least.request.members) == 3_000 - least.cost


def test_the_candidates_are_thought_of_within_the_time_limit() -> None:
    proposals = many(3_000)
    ticks = itertools.count()
    with (
        deadline.under(deadline.admitted(lambda: float(next(ticks)), 50.0)),
        pytest.raises(TimeExpired),
    ):
        proposals.skipped_counts()


def test_what_is_known_to_be_useless_is_not_tried_again() -> None:
    """A refusal tries changes on the empty fleet first, and only those that help on this one."""
    fleet = terrain([Host("h1", {"VCPU": 3}), Host("h2", {"VCPU": 3})], EMPTY)
    apart = statement("apart", "anti-affinity", "a", level="host")
    built = build_on_terrain(request({"a": (9, {"VCPU": 1})}, [apart]), fleet)
    oracle = Oracle(Portfolio(CpSat()), lambda: 30.0)
    cores = [Core((Element("policy", "apart"),), minimal=True)]
    first = find_relaxations(built, cores, oracle)
    assert {"a count 9->8", "apart max_per_domain 1->2"} <= first.useless
    known = frozenset(str(one.change) for one in first.relaxations)
    again = find_relaxations(built, cores, oracle, useless=first.useless | known)
    assert known
    assert known.isdisjoint(str(one.change) for one in again.relaxations)
