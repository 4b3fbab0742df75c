"""Instances read back as they were written, byte for byte; damaged ones are refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription
from moorage.engine.joint.instance import (
    dumps,
    dumps_outcome,
    dumps_request,
    loads,
    loads_outcome,
    loads_request,
    recorded_verdict,
    with_verdict,
)
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.engine.joint.verify import verify
from moorage.solver.greedy import Greedy
from moorage.testing.problems import random_built, story_a


@given(seed=st.integers(0, 10**6))
def test_the_same_content_gives_the_same_bytes(seed: int) -> None:
    built = random_built(seed)
    saved, bare = dumps_request(built), dumps(built.problem)
    again = loads_request(saved)
    assert dumps_request(again) == saved
    assert dumps(again.problem) == bare
    assert dumps(loads(bare)) == bare
    assert dumps(loads(saved)) == bare
    assert again.rejected == built.rejected


def test_a_verified_answer_stays_verified_through_json() -> None:
    built = story_a()
    outcome = Greedy().solve(built.problem, time_limit=5_000_000, seed=0)
    again = loads_request(dumps_request(built))
    answer = loads_outcome(dumps_outcome(outcome))
    assert answer.hosts is not None
    assert verify(again, answer.hosts)
    assert (answer.value, answer.bound, answer.proven) == (0, 0, True)


def test_an_outcome_without_hosts_reads_back() -> None:
    found = loads_outcome(dumps_outcome(Outcome(Verdict.INFEASIBLE, "counting", wall_ms=0.5)))
    assert found == Outcome(Verdict.INFEASIBLE, "counting", wall_ms=0.5)


def _changed(**fields: object) -> str:
    document = json.loads(dumps_request(story_a()))
    return json.dumps(document | fields)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("", "not an instance"),
        ("[]", "no format"),
        ('{"format": "other"}', "no format"),
        (_changed(version=99), "version 99"),
        (_changed(kind="outcome"), "no body"),
        (_changed(request={}), "damaged"),
        (_changed(request=None), "damaged"),
        (_changed(outcome={}), "unknown key 'outcome'"),
    ],
)
def test_what_is_no_instance_is_refused(data: str, text: str) -> None:
    with pytest.raises(InvalidDescription, match=text):
        loads_request(data)


def test_a_verdict_is_kept_with_an_instance_of_either_kind() -> None:
    built = story_a()
    for bare in (dumps_request(built), dumps(built.problem)):
        assert recorded_verdict(bare) is None
        kept = with_verdict(bare, Verdict.INFEASIBLE)
        assert recorded_verdict(kept) is Verdict.INFEASIBLE
        assert recorded_verdict(with_verdict(kept, Verdict.FEASIBLE)) is Verdict.FEASIBLE
        assert dumps(loads(kept)) == dumps(built.problem)


def test_a_recorded_verdict_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="recorded 'maybe'"):
        recorded_verdict(_changed(recorded="maybe"))


def test_a_bare_problem_cannot_be_explained() -> None:
    with pytest.raises(InvalidDescription, match="a problem"):
        loads_request(dumps(story_a().problem))


def test_arrays_keep_their_types() -> None:
    problem = loads(dumps(story_a().problem))
    assert problem.allowed.dtype == np.bool_
    assert problem.free.dtype == problem.fixed.dtype == np.int64
