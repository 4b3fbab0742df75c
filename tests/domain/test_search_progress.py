"""What solvers report: merged over the solvers of one problem, and heard only by who listens."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.search_progress import (
    SearchProgress,
    listener,
    listening,
    one_search,
    report,
)

COSTS = st.lists(st.tuples(st.none() | st.integers(10, 20), st.integers(0, 10)), min_size=1)


@given(COSTS)
def test_the_solvers_of_one_problem_only_ever_improve(
    reports: list[tuple[int | None, int]],
) -> None:
    heard: list[SearchProgress] = []
    with listening(heard.append), one_search():
        for number, (value, bound) in enumerate(reports):
            report(f"solver {number}", value, bound)
    values = [value for value, _ in reports if value is not None]
    assert [one.solver for one in heard] == [f"solver {n}" for n in range(len(reports))]
    assert heard[-1].value == min(values, default=None)
    assert heard[-1].bound == max(bound for _, bound in reports)
    for before, after in pairwise(heard):
        assert after.bound >= before.bound
        assert before.value is None or (after.value is not None and after.value <= before.value)


def test_the_bound_is_never_above_a_placement() -> None:
    heard: list[SearchProgress] = []
    with listening(heard.append), one_search():
        report("a", 12, 10)
        report("b", 11, 12)
    assert heard[-1] == SearchProgress("b", 11, 11)


def test_each_search_begins_anew() -> None:
    heard: list[SearchProgress] = []
    with listening(heard.append):
        for value in (12, 15):
            with one_search():
                report("a", value, 10)
    assert [one.value for one in heard] == [12, 15]


def test_who_does_not_listen_hears_nothing() -> None:
    heard: list[SearchProgress] = []
    report("a", 1, 0)
    with listening(heard.append):
        with listening(None), one_search():
            report("b", 1, 0)
        assert listener() is not None
    report("c", 1, 0)
    assert listener() is None
    assert heard == []


def test_the_gap_is_a_share_of_the_value() -> None:
    assert SearchProgress("a", 12, 9).gap == 0.25
    assert SearchProgress("a", 12, 12).gap == 0
    assert SearchProgress("a", 0, 0).gap == 0
    assert SearchProgress("a", None, 9).gap is None
