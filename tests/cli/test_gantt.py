"""The chart of leases, without a server: columns, ticks, marks, widths."""

import argparse
import io
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cli.gantt import MARKS, Row, Scale, chart, ticks
from moorage.cli.output import draw
from moorage.cli.times import minute, period, span, time_of, time_or_now
from moorage.domain.period import DAY, HOUR, LATEST, MINUTE, SECOND, Period, parse_instant

NOW = parse_instant("2026-11-21T09:00Z")


def row(name: str, status: str, start: str, end: str, **more: Any) -> Row:
    own = Period(parse_instant(start), parse_instant(end))
    lead, cleaning = more.pop("lead", 0), more.pop("cleaning", 0)
    return Row(name, status, own, Period(own.start - lead, own.end + cleaning), **more)


def drawn(rows: list[Row], window: Period, width: int) -> list[str]:
    out = io.StringIO()
    draw(chart(rows, window, NOW, width), out)
    return out.getvalue().splitlines()


TEN_DAYS = Period(NOW, NOW + 10 * DAY)
SHOP = row("shop", "pending", "2026-11-23T09:00Z", "2026-11-27T09:00Z")


def test_a_bar_begins_and_ends_at_its_columns() -> None:
    labels, axis, line, *_ = drawn([SHOP], TEN_DAYS, 80)
    left = axis.index("▼")
    columns = len(axis) - left
    assert len(axis) == 80
    assert line.index("░") - left == round(columns * 2 / 10)
    assert len(line) - left == round(columns * 6 / 10)
    assert labels.index("Mon 11-23") == axis.index("┬")


def test_back_to_back_is_drawn_back_to_back() -> None:
    after = row("next", "pending", "2026-11-27T09:00Z", "2026-11-28T09:00Z")
    for width in range(40, 120):
        _, _, first, second, *_ = drawn([SHOP, after], TEN_DAYS, width)
        assert len(first) == second.index("░"), width


def test_the_shortest_lease_has_a_column_and_what_is_outside_has_none() -> None:
    short = row("blink", "active", "2026-11-23T09:00Z", "2026-11-23T09:01Z")
    last = row("last", "active", "2026-12-01T08:59Z", "2026-12-01T09:00Z")
    past = row("past", "closed", "2026-11-01T09:00Z", "2026-11-02T09:00Z")
    lines = drawn([short, last, past], TEN_DAYS, 80)
    assert [line.count("█") for line in lines[2:5]] == [1, 1, 0]
    assert len(lines[3]) == 80
    assert "·" not in lines[4]


def test_lead_and_cleaning_are_around_the_bar() -> None:
    one = row("a", "starting", "2026-11-23T09:00Z", "2026-11-27T09:00Z", lead=DAY, cleaning=DAY)
    lines = drawn([one], TEN_DAYS, 80)
    bar = lines[2].rpartition("  ")[2].removeprefix("┊").strip()
    assert bar.strip("╌") == "▒" * bar.count("▒")
    assert bar.startswith("╌")
    assert bar.endswith("╌")
    assert any("╌ lead, cleaning" in line for line in lines)


def test_the_legend_says_what_is_drawn_and_nothing_else() -> None:
    ill = row("b", "active", "2026-11-21T09:00Z", "2026-11-27T09:00Z", degraded=True, missing=2)
    lines = drawn([SHOP, ill], TEN_DAYS, 100)
    legend = " ".join(lines[lines.index("") :])
    assert "░ pending   █ active   !n degraded" in legend
    assert "closed" not in legend
    assert "▼ now 2026-11-21T09:00Z" in legend
    assert "active !2" in lines[3]


def test_now_outside_the_window_is_only_told() -> None:
    later = Period(NOW + DAY, NOW + 2 * DAY)
    lines = drawn([SHOP], later, 80)
    assert "▼" not in lines[1]
    assert "┊" not in lines[2]


@pytest.mark.parametrize("width", [10, 40, 80, 160])
@pytest.mark.parametrize("state", list(MARKS))
def test_it_fits_the_terminal(width: int, state: str) -> None:
    one = row("a-very-long-name-of-a-lease", state, "2026-11-22T09:00Z", "2026-12-27T09:00Z")
    lines = drawn([one], Period(NOW, one.period.end), width)
    chart_lines = lines[: lines.index("")]
    assert max(map(len, chart_lines)) <= max(width, 50)
    if width >= 40:
        assert max(map(len, lines)) <= width
    assert MARKS[state][0] in lines[2]


windows = st.builds(
    lambda start, length: Period(start, start + length),
    st.integers(0, LATEST // 2),
    st.integers(1, LATEST // 2),
)


@given(windows, st.integers(20, 300))
def test_ticks_are_round_rising_and_their_labels_have_room(window: Period, columns: int) -> None:
    found = ticks(window, columns)
    instants = [one.instant for one in found]
    assert instants == sorted(set(instants))
    assert all(window.covers(at) for at in instants)
    assert all(at % SECOND == 0 for at in instants)
    if window.end - window.start < 100 * 365 * DAY:
        scale = Scale(window, columns)
        for tick, after in itertools.pairwise(found):
            assert scale.at(after.instant) - scale.at(tick.instant) > len(tick.label) - 1


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        (2 * MINUTE, ["09:00:00", "09:00:30", "09:01:00", "09:01:30"]),
        (3 * HOUR, ["09:00", "09:30", "10:00", "10:30", "11:00", "11:30"]),
        (DAY, ["09:00", "12:00", "15:00", "18:00", "21:00", "11-22", "03:00", "06:00"]),
        (5 * DAY, ["Sun 11-22", "Mon 11-23", "Tue 11-24", "Wed 11-25"]),
        (30 * DAY, ["11-23", "11-30", "12-07", "12-14"]),
        (365 * DAY, ["2027-01", "2027-03", "2027-05", "2027-07", "2027-09", "2027-11"]),
    ],
    ids=["minutes", "hours", "day", "days", "weeks", "months"],
)
def test_ticks_are_where_people_look_for_them(length: int, labels: list[str]) -> None:
    found = [tick.label for tick in ticks(Period(NOW, NOW + length), 64)]
    assert found[: len(labels)] == labels


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("2026-12-07T08:00Z", "2026-12-07T08:00:00Z"),
        ("2026-12-07T08:00:30Z", "2026-12-07T08:00:30Z"),
        ("2026-12-07 08:00", "2026-12-07T08:00:00Z"),
        ("2026-12-07T08:00+01:00", "2026-12-07T07:00:00Z"),
        ("2026-12-07", "2026-12-07T00:00:00Z"),
        ("now", "now"),
    ],
)
def test_times_are_read_as_typed(typed: str, read: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert time_or_now(typed) == read


@pytest.mark.parametrize("typed", ["", "monday", "2026-13-01", "08:00", "soon", "0001-01-01"])
def test_what_is_no_time_is_told(typed: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        time_of(typed)


def test_durations_are_read_and_instants_told() -> None:
    assert span("4d10h") == "P4DT10H"
    assert span("PT30M") == "PT30M"
    with pytest.raises(argparse.ArgumentTypeError, match="not a duration"):
        span("soon")
    assert minute("2026-12-07T08:00:00Z") == "2026-12-07T08:00Z"
    assert minute("2026-12-07T08:00:30Z") == "2026-12-07T08:00:30Z"
    assert minute(None) == "-"
    assert period("2026-12-07T08:00:00Z", "2026-12-07T09:00:00Z") == (
        "2026-12-07T08:00Z .. 2026-12-07T09:00Z"
    )
