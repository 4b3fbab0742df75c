"""Meaning and compilation agree: what is violated is what the primitives exceed, by as much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.engine.joint.policy_rules import resolve_policies
from moorage.policies import discover
from moorage.testing.policy_checks import check_meaning, check_slack, check_weaker_forms
from moorage.testing.problems import PARAMETERS, random_built


@given(seed=st.integers(0, 10**6))
def test_violations_amount_to_the_excess_of_the_primitives(seed: int) -> None:
    check_meaning(random_built(seed, policies=6), seed)


@given(seed=st.integers(0, 10**6))
def test_slack_is_below_zero_exactly_where_the_measure_is_violated(seed: int) -> None:
    check_slack(random_built(seed, policies=6), seed)


@given(seed=st.integers(0, 10**6))
def test_weaker_forms_are_few_and_can_be_read_and_hold_where_the_policy_does(seed: int) -> None:
    check_weaker_forms(random_built(seed, policies=6))


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
