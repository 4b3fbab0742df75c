"""One deadline for all that a request does."""

import threading

import pytest

from moorage.domain import deadline
from moorage.domain.deadline import TimeExpired
from moorage.domain.period import SECOND


class Watch:
    """A stopwatch that somebody sets."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_without_a_deadline_nothing_expires() -> None:
    deadline.check()
    assert not deadline.passed()
    assert deadline.left(3.0) == 3.0
    assert deadline.bounded(7 * SECOND) == 7 * SECOND


def test_it_expires_and_is_gone_afterwards(watch: Watch) -> None:
    with deadline.within(watch, 5):
        watch.seconds += 4
        deadline.check()
        assert deadline.left(3.0) == 1.0
        assert deadline.bounded(7 * SECOND) == SECOND
        watch.seconds += 1
        assert deadline.passed()
        with pytest.raises(TimeExpired) as expired:
            deadline.check()
        assert expired.value.retry_after > 0
        with pytest.raises(TimeExpired):
            deadline.bounded(SECOND)
    deadline.check()


def test_a_limit_read_later_counts_from_the_beginning_and_only_tightens(watch: Watch) -> None:
    with deadline.within(watch, 60):
        watch.seconds += 4
        with deadline.within(watch, 5):
            assert deadline.left(100.0) == 1.0
        with deadline.within(watch, 600):
            assert deadline.left(100.0) == 56.0


def test_one_of_several_counts_from_its_own_beginning_within_the_whole(watch: Watch) -> None:
    with deadline.within(watch, 10):
        watch.seconds += 7
        with deadline.anew(), deadline.within(watch, 2):
            assert deadline.left(100.0) == 2.0
        with deadline.anew(), deadline.within(watch, 5):
            assert deadline.left(100.0) == 3.0


def test_what_follows_an_answer_has_a_little_in_any_case(watch: Watch) -> None:
    with deadline.within(watch, 5):
        with deadline.at_least(1.0):
            assert deadline.left(100.0) == 5.0
        watch.seconds += 6
        with deadline.at_least(1.0):
            assert deadline.left(100.0) == 1.0
            deadline.check()
        with deadline.over():
            deadline.check()
        assert deadline.passed()


def test_it_is_that_of_one_thread(watch: Watch) -> None:
    found: list[float] = []
    with deadline.within(watch, 5):
        other = threading.Thread(target=lambda: found.append(deadline.left(9.0)))
        other.start()
        other.join()
    assert found == [9.0]


def test_time_is_left_for_what_follows_but_no_more_than_half(watch: Watch) -> None:
    with deadline.leaving(1.0):
        assert deadline.left(100.0) == 100.0
    with deadline.within(watch, 5):
        watch.seconds += 1
        with deadline.leaving(1.5):
            assert deadline.left(100.0) == 2.5
            with deadline.within(watch, 5):
                assert deadline.left(100.0) == 2.5
        with deadline.leaving(3.0):
            assert deadline.left(100.0) == 2.0
        watch.seconds += 3.5
        with deadline.leaving(1.0):
            deadline.check()
            assert deadline.left(100.0) == 0.25


def test_a_limit_of_its_own_counts_from_now_but_not_past_what_was_admitted(watch: Watch) -> None:
    with deadline.allowing(2.0):
        assert deadline.left(100.0) == 100.0
    with deadline.within(watch, 5):
        watch.seconds += 4
        with deadline.allowing(3.0):
            assert deadline.left(100.0) == 3.0
        with deadline.allowing(0.5):
            assert deadline.left(100.0) == 0.5
    with deadline.under(deadline.admitted(watch, 10)), deadline.within(watch, 5):
        watch.seconds += 4
        with deadline.allowing(3.0):
            assert deadline.left(100.0) == 3.0
        with deadline.allowing(30.0):
            assert deadline.left(100.0) == 6.0
        with deadline.anew(), deadline.allowing(30.0):
            assert deadline.left(100.0) == 1.0


def test_what_is_around_a_step_with_more_time_is_over_after_it_at_the_earliest(
    watch: Watch,
) -> None:
    """Else a planner would be ended for a deadline that passed while the step had its own."""

    def promised() -> float:
        now = deadline.current()
        assert now is not None
        return now.promised

    with deadline.within(watch, 60), deadline.within(watch, 5):
        assert promised() == 105
        with deadline.leaving(2):
            assert (deadline.left(60), promised()) == (3, 105)
        with deadline.allowing(20):
            assert promised() == 120
            watch.seconds += 15
        assert promised() == 115
        with deadline.at_least(1):
            assert promised() == 116
        assert promised() == 115
        with deadline.over():
            watch.seconds += 10
        assert promised() == 125
