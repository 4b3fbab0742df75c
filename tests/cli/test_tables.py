"""Listings on narrow terminals: they wrap, or are wider, and lose nothing."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.bodies import body

from moorage.cli import decision_text
from moorage.cli.event import what
from moorage.cli.member import listed
from moorage.cli.output import Shown, chosen, draw, stack, table
from moorage.cli.times import minute
from moorage.wire.events import Event
from moorage.wire.members import Member

LEASES = table(
    ["lease", "id", "name", "status", "start", "end", "#priority", "roles"],
    [
        (
            "L1",
            "1f2e3d4c",
            "shop of the week",
            "pending, degraded 1",
            "2026-12-07T08:00Z",
            "2026-12-11T18:00Z",
            0,
            "web db cache",
        )
    ],
)


def _lines(columns: int, monkeypatch: pytest.MonkeyPatch, shown: object) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = io.StringIO()
    draw(shown, out)  # type: ignore[arg-type]
    return out.getvalue().splitlines()


@pytest.mark.parametrize("columns", [20, 80, 100, 120])
def test_no_column_vanishes_and_no_word_breaks(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = _lines(columns, monkeypatch, stack(LEASES))
    words = " ".join(lines).split()
    assert lines[0].split() == [one.removeprefix("#") for one in LEASES.columns]
    for cell in LEASES.rows[0]:
        for word in str(cell).split():
            assert word in words, lines


def test_what_fits_is_one_line_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(_lines(200, monkeypatch, LEASES)) == 3
    assert max(map(len, _lines(120, monkeypatch, LEASES))) <= 120


def test_a_quiet_column_is_there_where_there_is_something_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for priority, columns in ((0, ["lease"]), (7, ["lease", "priority"])):
        shown = table(["lease", "#priority"], [("L1", priority), ("L2", 0)], ("#priority",))
        assert _lines(80, monkeypatch, shown)[0].split() == columns
        assert chosen(Shown({}, shown), ["priority"]).body == [
            {"priority": priority},
            {"priority": 0},
        ]


def test_members_with_servers_fit_into_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    domains = {"zone": "z-3hhcb", "rack": "r-5gt96", "host": "h-s7d4w"}
    server = "8d0a7a8e-5ad0-4c5e-9b0e-4f3d6a1d2c3b"
    one = body(Member, name="web[0]", status="active", domains=domains, server_id=server)
    lines = _lines(80, monkeypatch, listed([one]))
    assert (len(lines), max(map(len, lines)) <= 80) == (3, True), lines
    assert "z-3hhcb/r-5gt96/h-s7d4w" in lines[2]


def test_places_without_the_same_levels_are_told_in_full() -> None:
    every = [{"rack": "r1", "host": "h1"}, {"host": "h2"}, {}]
    assert decision_text.places(every) == ("place", ["rack r1, host h1", "host h2", "-"])
    assert decision_text.places(every[:1] + every[2:]) == ("place (rack/host)", ["r1/h1", "-"])


def test_an_instant_keeps_the_part_of_a_second_it_has() -> None:
    assert minute("2026-12-01T00:00:00.5Z") == "2026-12-01T00:00:00.5Z"
    assert minute("2026-12-01T00:00:00.000000Z") == "2026-12-01T00:00Z"


@given(
    cells=st.lists(
        st.lists(
            st.sampled_from(["", "a", "bb cc", "one-two three", "x" * 30]), min_size=3, max_size=3
        ),
        max_size=4,
    ),
    columns=st.integers(1, 90),
)
def test_every_word_of_every_cell_is_to_be_read(cells: list[list[str]], columns: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        lines = _lines(columns, patched, table(["first", "#second", "third one"], cells))
    shown = sorted(" ".join([lines[0], *(x for x in lines[1:] if "─" not in x)]).split())
    words = [
        "first",
        "second",
        "third",
        "one",
        *(w for row in cells for c in row for w in c.split()),
    ]
    assert shown == sorted(words)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"role": "crew", "now": 0, "before": 5, "below": 3}, "crew 5 -> 0 (below 3)"),
        ({"flavor": "s1", "zone": "z1", "now": 12, "below": 13}, "s1 of z1 - -> 12 (below 13)"),
        (
            {"resource_class": "VCPU", "before": 0.88, "now": 0.95, "above_share": 0.9},
            "VCPU 0.88 -> 0.95 (above 0.9)",
        ),
    ],
)
def test_a_threshold_says_what_was_measured_and_the_bound(more: dict[str, Any], said: str) -> None:
    crossed = "above" if "above_share" in more else "below"
    detail = {"zone": None, "before": None, "above_share": None, **more, "crossed": crossed}
    assert what(body(Event, type="capacity.threshold", body=detail)) == said
