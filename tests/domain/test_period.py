from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import (
    DAY,
    EARLIEST,
    FOREVER,
    HOUR,
    LATEST,
    LONGEST,
    MINUTE,
    SECOND,
    Period,
    format_duration,
    format_instant,
    from_datetime,
    parse_duration,
    parse_instant,
    say_duration,
    to_datetime,
)

instants = st.integers(min_value=EARLIEST, max_value=LATEST)
starts = st.integers(min_value=0, max_value=1_000)


@st.composite
def periods(draw: st.DrawFn) -> Period:
    start = draw(starts)
    return Period(start, draw(st.integers(min_value=start + 1, max_value=1_001) | st.just(FOREVER)))


@given(periods(), periods())
def test_two_periods_overlap_exactly_if_they_share_an_instant(a: Period, b: Period) -> None:
    shared = any(a.covers(i) and b.covers(i) for i in range(1_002))
    assert a.overlaps(b) is shared
    assert b.overlaps(a) is shared


def test_periods_that_touch_do_not_overlap() -> None:
    assert not Period(0, 10).overlaps(Period(10, 20))
    assert not Period(0, 10).covers(10)


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5), (FOREVER, FOREVER)])
def test_a_period_without_an_instant_is_refused(start: int, end: int) -> None:
    with pytest.raises(InvalidDescription):
        Period(start, end)


@given(instants)
def test_an_instant_survives_its_text(instant: int) -> None:
    assert parse_instant(format_instant(instant)) == instant
    assert from_datetime(to_datetime(instant)) == instant


def test_offsets_are_honoured() -> None:
    at = from_datetime(datetime(2026, 11, 21, 9, tzinfo=UTC))
    assert parse_instant("2026-11-21T09:00:00Z") == at
    assert parse_instant("2026-11-21T10:00:00+01:00") == at
    assert format_instant(at) == "2026-11-21T09:00:00Z"
    assert format_instant(FOREVER) == "forever"


@pytest.mark.parametrize(
    ("start", "end", "length"),
    [
        ("2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", HOUR),  # the hour comes twice
        ("2027-03-28T00:00:00+01:00", "2027-03-29T00:00:00+02:00", 23 * HOUR),
        ("2028-02-28T12:00:00Z", "2028-03-01T12:00:00Z", 2 * DAY),  # with a leap day
    ],
)
def test_between_times_of_day_lies_the_time_that_passes(start: str, end: str, length: int) -> None:
    assert parse_instant(end) - parse_instant(start) == length


@pytest.mark.parametrize(
    "text",
    [
        *("2026-11-21T09:00:00", "soon", "", "forever", "2026-13-01T00:00Z"),
        *("2027-02-29T12:00:00Z", "2028-02-30T12:00:00Z"),
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        parse_instant(text)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("PT10M", 10 * MINUTE),
        ("10m", 10 * MINUTE),
        ("P4DT10H", 4 * DAY + 10 * HOUR),
        ("4d10h", 4 * DAY + 10 * HOUR),
        ("P1W", 7 * DAY),
        ("90s", 90 * SECOND),
        ("PT0S", 0),
    ],
)
def test_durations_are_read_in_both_forms(text: str, length: int) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize("text", ["", "P", "PT", "10", "m", "P1Y", "1.5h", "-5m", "10m5h", "٣m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**9))
def test_a_duration_survives_its_text(seconds: int) -> None:
    assert parse_duration(format_duration(seconds * SECOND)) == seconds * SECOND
    assert parse_duration(say_duration(seconds * SECOND)) == seconds * SECOND


def test_durations_are_said_as_people_write_them() -> None:
    said = [say_duration(one) for one in (0, MINUTE, DAY, 4 * DAY + 10 * HOUR, 1_095 * DAY)]
    assert said == ["0s", "1m", "1d", "4d10h", "1095d"]


@given(st.integers(min_value=-(2**63), max_value=FOREVER))
def test_every_instant_has_a_text(instant: int) -> None:
    text = format_instant(instant)
    assert instant == FOREVER or len(text.partition("-")[0]) == len("2026")


@given(instants, st.integers(min_value=0, max_value=LONGEST))
def test_what_ends_after_a_duration_has_its_own_text(instant: int, duration: int) -> None:
    end = format_instant(instant + duration)
    assert from_datetime(datetime.fromisoformat(end)) == instant + duration


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "1969-12-31T23:59:59Z",
        "9000-01-01T00:00:01Z",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_times_out_of_bounds_are_refused_with_the_bounds(text: str) -> None:
    with pytest.raises(
        InvalidDescription, match="between 1970-01-01T00:00:00Z and 9000-01-01T00:00:00Z"
    ):
        parse_instant(text)


@pytest.mark.parametrize("text", ["36501d", "P9999999999D", "9" * 5000 + "d"])
def test_a_duration_beyond_a_hundred_years_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription, match="duration"):
        parse_duration(text)
