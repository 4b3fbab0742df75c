"""The pauses and limits of a retry policy."""

from math import inf

import pytest

from moorage.domain.retry_policy import Retries, RetryPolicy


def test_pauses_grow_up_to_the_longest() -> None:
    policy = RetryPolicy(0.5, 3.0)
    assert [policy.pause(failures) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_failure_that_lasts_for_days_overflows_nothing() -> None:
    assert RetryPolicy(0.1, 30.0).pause(100_000) == 30.0
    assert RetryPolicy(0.1).pause(100_000) < inf


def test_the_first_retry_may_be_made_at_once() -> None:
    policy = RetryPolicy(0.5, at_once=True)
    assert [policy.pause(failures) for failures in (1, 2, 3)] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(("chance", "pause"), [(0.0, 3.0), (0.5, 3.5), (1.0, 4.0)])
def test_jitter_shortens_a_pause(chance: float, pause: float) -> None:
    assert RetryPolicy(4.0, jitter=0.25).pause(1, chance) == pause


def test_the_pause_of_an_id_is_the_same_everywhere_and_differs_from_others() -> None:
    policy = RetryPolicy(1_000_000, jitter=0.5)
    pauses = {id_: policy.pause_of(id_, 1) for id_ in "abcdefgh"}
    assert pauses == {id_: policy.pause_of(id_, 1) for id_ in "abcdefgh"}
    assert len(set(pauses.values())) > 1
    assert all(500_000 <= pause <= 1_000_000 for pause in pauses.values())


def test_attempts_are_used_up() -> None:
    policy, retries = RetryPolicy(1.0, attempts=3), Retries()
    assert [retries.next_pause(policy, 0.0) for _ in range(4)] == [1.0, 2.0, None, None]
    assert retries.attempts == 3


def test_time_is_used_up_and_no_pause_is_longer_than_what_is_left() -> None:
    policy, retries = RetryPolicy(1.0, limit=4.0), Retries()
    found = [retries.next_pause(policy, now) for now in (10.0, 11.5, 13.5, 14.0, 10.0)]
    assert found == [1.0, 2.0, 0.5, None, 4.0]
