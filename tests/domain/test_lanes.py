"""Bars that overlap are in different lanes, and no lane more is used than is needed."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.lanes import lanes
from moorage.domain.period import FOREVER, Period

PERIODS = st.lists(
    st.builds(
        lambda start, length: Period(start, FOREVER if length == 9 else start + length),
        st.integers(0, 30),
        st.integers(1, 9),
    ),
    max_size=25,
)


@given(PERIODS)
def test_no_two_bars_of_a_lane_overlap_and_lanes_are_few(periods: list[Period]) -> None:
    found = lanes(periods)
    for n, one in enumerate(periods):
        for m, other in enumerate(periods[:n]):
            assert not (found[n] == found[m] and one.overlaps(other))
    at_once = max((sum(one.covers(instant) for one in periods) for instant in range(40)), default=0)
    assert max(found, default=-1) + 1 == at_once


@given(PERIODS)
def test_a_bar_takes_the_first_lane_that_is_free_when_it_starts(periods: list[Period]) -> None:
    found = lanes(periods)
    for n, one in enumerate(periods):
        before = {
            lane
            for other, lane in zip(periods, found, strict=True)
            if other is not one and other.covers(one.start)
        }
        earlier = {lane for lane in before if lane < found[n]}
        assert earlier == set(range(found[n]))


def test_bars_that_touch_share_a_lane() -> None:
    assert lanes([Period(5, 9), Period(0, 5), Period(4, 6), Period(9, 10)]) == (0, 0, 1, 0)
    assert lanes([]) == ()
