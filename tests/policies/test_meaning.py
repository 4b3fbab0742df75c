"""Meaning and compilation agree: what is violated is what the primitives exceed, by as much."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.placement import Placement
from moorage.engine.joint.cost import excess
from moorage.engine.joint.policy_rules import resolve_policies
from moorage.policies import discover
from moorage.testing.problems import PARAMETERS, random_built


@given(seed=st.integers(0, 10**6))
def test_violations_amount_to_the_excess_of_the_primitives(seed: int) -> None:
    built = random_built(seed, policies=6)
    problem = built.problem
    dice = random.Random(seed)
    for _ in range(20):
        rows = [dice.randrange(len(problem.hosts)) for _ in problem.members]
        placement = Placement(built.policy_view, dict(zip(problem.members, rows, strict=True)))
        for rule in built.rules:
            meant = sum(
                violation.amount
                for edge in rule.edges
                for violation in rule.policy.violations(edge, placement)
            )
            posted = sum(
                int(excess(problem, one, problem.fixed[None, :] * 0 + rows)[0])
                for one in rule.post(built.policy_view)
            )
            assert meant == posted, (rule, rows)


@given(seed=st.integers(0, 10**6))
def test_slack_is_below_zero_exactly_where_the_measure_is_violated(seed: int) -> None:
    built = random_built(seed, policies=6)
    dice = random.Random(seed)
    rows = [dice.randrange(len(built.problem.hosts)) for _ in built.problem.members]
    placement = Placement(built.policy_view, dict(zip(built.problem.members, rows, strict=True)))
    for rule in built.rules:
        for edge in rule.edges:
            slack = rule.policy.slack(edge, placement)
            if slack is not None and slack < 0:
                assert rule.policy.violations(edge, placement)
            elif slack is not None:
                # What is violated all the same are members that stand in no domain.
                assert all(
                    "stands in no" in one.text for one in rule.policy.violations(edge, placement)
                )


@given(seed=st.integers(0, 10**6))
def test_weaker_forms_are_few_and_can_be_read(seed: int) -> None:
    built = random_built(seed, policies=6)
    for rule in built.rules:
        for edge in rule.edges:
            steps = list(rule.policy.weaker(edge))
            assert len(steps) <= 12
            for step in steps:
                assert step.cost >= 1
                assert bool(step.parameters) != bool(step.grow)
                changed = dict(rule.statement.parameters) | dict(step.parameters)
                type(rule.policy).parse(changed, path="p")
            assert rule.policy.requirement(edge, built.policy_view)


def test_the_random_problems_know_every_policy() -> None:
    assert set(PARAMETERS) == set(discover())


@pytest.mark.parametrize("seed", range(20))
def test_a_policy_for_another_phase_posts_nothing(seed: int) -> None:
    from dataclasses import replace

    from moorage.domain.ensembles import Phase

    built = random_built(seed)
    later = tuple(
        replace(one, phases=frozenset({Phase.TRANSITION})) for one in built.request.policies
    )
    assert not resolve_policies(replace(built.request, policies=later), built.terrain.topology)
