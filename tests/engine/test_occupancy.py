"""Peaks and levels against a brute force that looks at every instant."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.period import FOREVER, Period
from moorage.engine.time.occupancy import NO_SPANS, Spans, breakpoints, levels, peaks

LAST = 12
"""Instants 0..LAST; nothing changes later, so `FOREVER` is as good as LAST + 1."""

spans = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, LAST), st.integers(1, 6), st.integers(0, 9)).map(
        lambda one: (one[0], one[1], min(one[1] + one[2], LAST + 1), one[3])
    ),
    max_size=12,
)
windows = st.tuples(st.integers(0, LAST), st.integers(1, LAST)).map(
    lambda one: Period(one[0], FOREVER if one[0] + one[1] > LAST else one[0] + one[1])
)


def level_at(items: list[tuple[int, int, int, int]], owner: int, instant: int) -> int:
    return sum(n for o, start, end, n in items if o == owner and start <= instant < end)


@given(items=spans, window=windows)
def test_a_peak_is_the_highest_level_in_the_window(
    items: list[tuple[int, int, int, int]], window: Period
) -> None:
    instants = range(window.start, min(window.end, LAST + 2))
    expected = [max(level_at(items, owner, at) for at in instants) for owner in range(4)]
    assert peaks(Spans.of(items), 4, window).tolist() == expected


@given(items=spans)
def test_levels_are_sums_over_all_owners(items: list[tuple[int, int, int, int]]) -> None:
    instants = np.arange(LAST + 2, dtype=np.int64)
    expected = [sum(level_at(items, owner, at) for owner in range(4)) for at in range(LAST + 2)]
    assert levels(Spans.of(items), instants).tolist() == expected


@given(items=spans, since=st.integers(0, LAST))
def test_levels_change_at_breakpoints_only(
    items: list[tuple[int, int, int, int]], since: int
) -> None:
    points = breakpoints([Spans.of(items)], since)
    assert points[0] == since
    assert (np.diff(points) > 0).all()
    every = np.arange(since, LAST + 2, dtype=np.int64)
    nearest = points[np.searchsorted(points, every, side="right") - 1]
    assert np.array_equal(levels(Spans.of(items), every), levels(Spans.of(items), nearest))


def test_touching_spans_do_not_overlap() -> None:
    touching = Spans.of([(0, 0, 5, 3), (0, 5, 9, 3)])
    assert peaks(touching, 1, Period(0)).tolist() == [3]
    assert peaks(touching, 1, Period(9)).tolist() == [0]


def test_no_spans_no_peaks() -> None:
    assert peaks(NO_SPANS, 2, Period(0)).tolist() == [0, 0]
    assert levels(NO_SPANS, np.array([0, 5])).tolist() == [0, 0]


def test_open_ended_spans_count_for_ever() -> None:
    open_ended = Spans.of([(0, 3, FOREVER, 2), (0, 7, FOREVER, 2)])
    assert peaks(open_ended, 1, Period(0, 3)).tolist() == [0]
    assert peaks(open_ended, 1, Period(0, 7)).tolist() == [2]
    assert peaks(open_ended, 1, Period(0)).tolist() == [4]
