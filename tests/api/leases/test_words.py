"""Blazar's dates and requirements."""

import json

import pytest

from moorage.api.leases import dates
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import parse_instant
from moorage.usecases.blazar import requirements
from moorage.usecases.blazar.lease_request import read_count

HOST = {"vcpus": 10, "memory_mb": "4096", "gpu": "a100", "rank": "9", "none": None}


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-12-07 08:00", "2026-12-07T08:00:00Z"),
        ("2028-02-29 23:59", "2028-02-29T23:59:00Z"),
        ("now", "2026-11-21T09:00:00Z"),
    ],
)
def test_requests_say_minutes_or_now(text: str, instant: str) -> None:
    now = parse_instant("2026-11-21T09:00:00Z")
    assert dates.read(text, now) == parse_instant(instant)


@pytest.mark.parametrize(
    "text",
    ["2026-12-07", "2026-12-07 08:00:00", "2026-12-07T08:00", "2027-02-29 10:00", "", None, 7],
    ids=str,
)
def test_other_dates_are_refused(text: object) -> None:
    with pytest.raises(InvalidDescription):
        dates.read(text, 0)


def test_replies_have_six_digits() -> None:
    whole, part = parse_instant("2026-12-07T08:00:00Z"), parse_instant("2026-12-07T08:00:00.25Z")
    assert dates.written(whole) == "2026-12-07T08:00:00.000000"
    assert dates.written(part) == "2026-12-07T08:00:00.250000"
    assert dates.stamped(whole) == "2026-12-07 08:00:00.000000"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (["=", "$vcpus", "10"], True),
        (["==", "$vcpus", "10.0"], True),
        ([">", "$vcpus", "9"], True),
        ([">", "$rank", "10"], False),
        (["<", "$rank", "10"], True),
        (["!=", "$gpu", "v100"], True),
        (["==", "$gpu", "a100"], True),
        ([">=", "$gpu", "b"], False),
        (["!=", "$absent", "x"], False),
        (["!=", "$none", "x"], False),
        (["and", [">", "$vcpus", "4"], ["<=", "$memory_mb", "4096"]], True),
        (["and", [">", "$vcpus", "4"], ["<", "$memory_mb", "4096"]], False),
    ],
    ids=str,
)
def test_requirements_are_met_by_hosts(source: list[object], expected: bool) -> None:  # noqa: FBT001
    assert requirements.meets(requirements.read_requirement(json.dumps(source)), HOST) is expected


def test_an_empty_requirement_asks_for_nothing() -> None:
    assert requirements.read_requirement("") == ()
    assert requirements.meets((), {})


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[]",
        "{}",
        '["=", "$a"]',
        '["=", "a", "1"]',
        '["=", "$", "1"]',
        '["=", "$a", 1]',
        '["~", "$a", "1"]',
        '["or", ["=", "$a", "1"], ["=", "$a", "2"]]',
        '["and"]',
        '["and", "x"]',
        '["and", ["and", ["=", "$a", "1"]]]',
        "[" * 100_000,
        json.dumps(["and", *[["=", "$a", "1"]] * 101]),
    ],
    ids=range(14),
)
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        requirements.read_requirement(text)


def test_a_number_of_members_is_bounded_in_the_words_of_the_request() -> None:
    assert read_count({"max": "5000"}, "max") == 5000
    with pytest.raises(InvalidDescription, match="max must be less than or equal to 5000"):
        read_count({"max": 5001}, "max")
