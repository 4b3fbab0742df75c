"""Lists in messages."""

import pytest

from moorage.domain.words import first_of, natural, spans


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((), ""),
        ((0,), "db[0]"),
        ((2, 0), "db[0], db[2]"),
        ((0, 1, 2), "db[0] to db[2]"),
        ((0, 1, 4, 5, 7), "db[0] to db[1], db[4] to db[5], db[7]"),
        (range(0, 40, 2), ", ".join(f"db[{n}]" for n in range(0, 16, 2)) + ", ..."),
    ],
)
def test_runs_of_names_are_said_by_their_ends(numbers: tuple[int, ...], said: str) -> None:
    assert spans("db", numbers) == said


def test_others_are_counted() -> None:
    assert first_of([], 2) == []
    assert first_of(["a", 2], 2) == ["a", "2"]
    assert first_of("abcd", 2) == ["a", "b", "and 2 more"]


def test_numbers_in_names_are_in_their_order() -> None:
    names = ["h10", "h9", "h", "h9b", "a2-10", "a2-9", "\u00b2", "12", "3"]
    assert sorted(names, key=natural) == [
        *("3", "12", "a2-9", "a2-10", "h", "h9", "h9b", "h10", "\u00b2"),
    ]
