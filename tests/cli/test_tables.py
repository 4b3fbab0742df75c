"""Listings on narrow terminals: they wrap, or are wider, and lose nothing."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cli.output import draw, stack, table

LEASES = table(
    ["lease", "id", "name", "status", "start", "end", "#priority", "roles"],
    [
        (
            "L1",
            "1f2e3d4c",
            "shop of the week",
            "pending, degraded: 1 place missing",
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
    told = sorted(" ".join([lines[0], *(x for x in lines[1:] if "─" not in x)]).split())
    words = [
        "first",
        "second",
        "third",
        "one",
        *(w for row in cells for c in row for w in c.split()),
    ]
    assert told == sorted(words)
