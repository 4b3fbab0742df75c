"""Wrong answers are caught by meaning and by sums, whoever gave them."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.member_names import MemberName
from moorage.engine.joint.cost import cost, preference_scale, satisfies
from moorage.engine.joint.verify import WrongAnswer, verify
from moorage.testing.problems import random_built, story_a

GOOD = [1, 4, 7, 0, 3, 6, 2, 5, 8]
"""app, db and web of the shop, three each, on h1..h9."""


def test_a_right_answer_says_how_it_stands_to_every_policy() -> None:
    built = story_a()
    found = {one.name: one for one in verify(built, GOOD)}
    assert all(one.satisfied and not one.penalty for one in found.values())
    assert {name: one.slack for name, one in found.items()} == {
        "db-ha": 0, "web-apart": 0, "web-racks": 1, "pair": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({5: 3}, "db-ha: losing one rack leaves 1 of 3"),
        ({0: 4}, "pair: app[0] and db[0] in different racks"),
        ({6: 3, 7: 3}, "web-apart: host h4 holds 2 of 3 x web"),
        ({0: 0, 6: 0, 2: 6}, "VCPU on h7: taken 10, free 8"),
        ({5: 7}, "db[2] may not stand on h8"),
        ({5: 99}, "db[2] has no host"),
        ({5: -1}, "db[2] has no host"),
    ],
)
def test_a_wrong_answer_is_refused_with_its_faults(changes: dict[int, int], fault: str) -> None:
    built = story_a()
    rows = [changes.get(index, row) for index, row in enumerate(GOOD)]
    with pytest.raises(WrongAnswer, match="the solver's answer is wrong") as caught:
        verify(built, rows)
    assert any(one.startswith(fault) for one in caught.value.faults), caught.value.faults


def test_an_answer_of_another_length_is_refused() -> None:
    built = story_a()
    with pytest.raises(WrongAnswer, match="9 members, 8 hosts"):
        verify(built, GOOD[:8])


def test_a_fixed_member_may_not_move() -> None:
    built = story_a(fixed={MemberName("web", 0): "h1"})
    with pytest.raises(WrongAnswer, match=r"web\[0\] stands on h1 and may not move"):
        verify(built, GOOD)


@given(seed=st.integers(0, 10**6))
def test_meanings_and_primitives_judge_alike(seed: int) -> None:
    built = random_built(seed)
    problem = built.problem
    dice = random.Random(seed)
    for _ in range(10):
        rows = np.array(
            [
                fixed if fixed >= 0 else dice.randrange(len(problem.hosts))
                for fixed in problem.fixed.tolist()
            ]
        )
        may = all(
            problem.fixed[m] >= 0 or problem.allowed[problem.role_of[m], rows[m]]
            for m in range(len(problem.members))
        )
        right = may and bool(satisfies(problem, rows[None, :])[0])
        try:
            statuses = verify(built, rows)
        except WrongAnswer:
            assert not right
            continue
        assert right
        bare = replace(problem, objective=None)
        penalty = preference_scale(problem) * sum(one.penalty for one in statuses)
        assert penalty == int(cost(bare, rows[None, :])[0])
