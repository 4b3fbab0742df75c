"""Calendar arithmetic: against a brute force over days, and by hand where clocks change."""

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import HOUR, format_instant, to_datetime
from moorage.domain.recurrence import (
    Recurrence,
    RecurrenceRule,
    Unit,
    dates,
    instant_of_local_time,
    local_time_at,
    parse_every,
)

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
APIA = ZoneInfo("Pacific/Apia")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
ZONES = (ZoneInfo("UTC"), BERLIN, NEW_YORK, APIA, LORD_HOWE)

RULES = st.one_of(
    st.builds(RecurrenceRule, st.sampled_from(Unit), st.integers(1, 5)),
    st.builds(
        lambda days: RecurrenceRule(Unit.WEEK, days=days),
        st.frozensets(st.integers(0, 6), min_size=1),
    ),
)
DATES = st.dates(date(2019, 1, 1), date(2031, 12, 31))


def starts(text: str, every: str, zone: ZoneInfo, count: int) -> list[str]:
    """The first starts, in UTC."""
    recurrence = Recurrence(datetime.fromisoformat(text), zone.key, parse_every(every))
    return [format_instant(one) for one in islice(recurrence.starts(zone), count)]


def is_due(every: RecurrenceRule, first: date, day: date) -> bool:
    """Whether a day is one of the rule's: said of one day, without counting."""
    apart = (day - first).days
    if every.days:
        return day.weekday() in every.days
    if every.unit is Unit.DAY:
        return apart % every.step == 0
    if every.unit is Unit.WEEK:
        return apart % (7 * every.step) == 0
    months = (day.year - first.year) * 12 + day.month - first.month
    last = monthrange(day.year, day.month)[1]
    return months % every.step == 0 and day.day == min(first.day, last)


@given(RULES, DATES)
def test_dates_are_those_of_a_brute_force_over_days(every: RecurrenceRule, first: date) -> None:
    found = list(islice(dates(every, first), 12))
    days = (first + timedelta(days=n) for n in range((found[-1] - first).days + 1))
    assert found == [day for day in days if is_due(every, first, day)]


@given(RULES)
def test_a_rule_is_read_as_it_is_written(every: RecurrenceRule) -> None:
    assert parse_every(str(every)) == every


@given(RULES, DATES, st.times(), st.sampled_from(ZONES))
def test_starts_grow_and_clocks_show_what_was_asked(
    every: RecurrenceRule, first: date, clock: object, zone: ZoneInfo
) -> None:
    wall = datetime.combine(first, clock)  # type: ignore[arg-type]  # what st.times() gives
    found = list(islice(Recurrence(wall, zone.key, every).starts(zone), 40))
    assert found == sorted(set(found))
    for one in found:
        shown = local_time_at(one, zone)
        if shown.time() != clock:
            # Only where the clock is put forward over it; then as much later, and never earlier.
            gap = shown - datetime.combine(shown.date(), wall.time())
            before = to_datetime(one - 25 * HOUR).astimezone(zone).utcoffset()
            after = to_datetime(one).astimezone(zone).utcoffset()
            assert before is not None
            assert after is not None
            assert gap % timedelta(days=1) == (after - before) % timedelta(days=1)


@given(st.builds(datetime.combine, DATES, st.times()), st.sampled_from(ZONES))
def test_an_instant_shows_the_clock_it_was_made_of(wall: datetime, zone: ZoneInfo) -> None:
    again = local_time_at(instant_of_local_time(wall, zone), zone)
    assert again >= wall
    assert instant_of_local_time(again, zone) == instant_of_local_time(wall, zone)


def test_eight_in_the_morning_stays_eight_when_clocks_change() -> None:
    assert starts("2027-03-26T08:00", "daily", BERLIN, 4) == [
        "2027-03-26T07:00:00Z",
        "2027-03-27T07:00:00Z",
        "2027-03-28T06:00:00Z",
        "2027-03-29T06:00:00Z",
    ]
    assert starts("2026-10-24T08:00", "daily", BERLIN, 3) == [
        "2026-10-24T06:00:00Z",
        "2026-10-25T07:00:00Z",
        "2026-10-26T07:00:00Z",
    ]


def test_an_hour_that_is_not_there_is_as_much_later() -> None:
    # On 2027-03-28 clocks go from 02:00 to 03:00: half past two is half past three that day.
    assert starts("2027-03-27T02:30", "daily", BERLIN, 3) == [
        "2027-03-27T01:30:00Z",
        "2027-03-28T01:30:00Z",
        "2027-03-29T00:30:00Z",
    ]


def test_of_an_hour_that_is_there_twice_it_is_the_first() -> None:
    # On 2026-11-01 clocks go from 02:00 back to 01:00.
    assert starts("2026-10-31T01:30", "daily", NEW_YORK, 3) == [
        "2026-10-31T05:30:00Z",
        "2026-11-01T05:30:00Z",
        "2026-11-02T06:30:00Z",
    ]


def test_a_day_that_a_zone_leaves_out_has_none() -> None:
    # Samoa went from the 29th to the 31st of December 2011.
    assert starts("2011-12-29T08:00", "daily", APIA, 3) == [
        "2011-12-29T18:00:00Z",
        "2011-12-30T18:00:00Z",
        "2011-12-31T18:00:00Z",
    ]


def test_a_month_without_the_day_has_its_last() -> None:
    assert [one[:10] for one in starts("2027-10-31T00:00", "monthly", ZoneInfo("UTC"), 6)] == [
        "2027-10-31",
        "2027-11-30",
        "2027-12-31",
        "2028-01-31",
        "2028-02-29",
        "2028-03-31",
    ]
    leap = starts("2028-02-29T00:00", "12 months", ZoneInfo("UTC"), 5)
    assert [one[:10] for one in leap] == [
        "2028-02-29",
        "2029-02-28",
        "2030-02-28",
        "2031-02-28",
        "2032-02-29",
    ]


def test_the_first_is_on_the_first_date_of_the_rule() -> None:
    # 2026-12-05 is a Saturday.
    assert starts("2026-12-05T08:00", "weekdays", ZoneInfo("UTC"), 1) == ["2026-12-07T08:00:00Z"]
    assert starts("2026-12-05T08:00", "wed,mon", ZoneInfo("UTC"), 3) == [
        "2026-12-07T08:00:00Z",
        "2026-12-09T08:00:00Z",
        "2026-12-14T08:00:00Z",
    ]


def test_a_calendar_ends_where_times_do() -> None:
    late = Recurrence(datetime.fromisoformat("8999-11-30T08:00"), "UTC", parse_every("monthly"))
    assert len(list(late.starts(UTC))) == 2


@pytest.mark.parametrize(
    "text",
    ["", "often", "0 days", "367 days", "-1 days", "mon,mon", "mon,", "2 years", "\u0661 days"],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        parse_every(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("mon,tue,wed,thu,fri", "weekdays"),
        ("1 day", "daily"),
        ("2weeks", "2 weeks"),
        (" SAT , sun ", "weekends"),
    ],
)
def test_a_rule_is_written_in_one_way(text: str, written: str) -> None:
    assert str(parse_every(text)) == written
