"""Two answers to one request: which mean the same, and how others differ."""

import json
from typing import Any

import pytest

from moorage.shadow.comparison import CANDIDATES, Answered, Unlike, compared


def answered(status: int, document: Any = None) -> Answered:
    return Answered(status, b"" if document is None else json.dumps(document).encode())


def never(query: str) -> Answered:
    raise AssertionError(f"asked again: {query}")


def candidates(*hosts: str, used: int = 0) -> dict[str, Any]:
    return {
        "allocation_requests": [
            {"allocations": {host: {"resources": {"VCPU": 1}}}} for host in hosts
        ],
        "provider_summaries": {host: {"resources": {"VCPU": {"used": used}}} for host in hosts},
    }


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (answered(204), answered(204)),
        (
            answered(200, {"a": [1, 2], "links": ["there"]}),
            answered(200, {"links": [], "a": [2, 1]}),
        ),
        (
            answered(200, {"x": [{"b": [3, 4]}, {"a": 1}]}),
            answered(200, {"x": [{"a": 1}, {"b": [4, 3]}]}),
        ),
        (
            answered(404, {"errors": [{"detail": "no", "code": "placement.undefined_code"}]}),
            answered(404, {"errors": [{"detail": "none", "code": "placement.undefined_code"}]}),
        ),
    ],
)
def test_order_links_and_words_make_no_difference(theirs: Answered, ours: Answered) -> None:
    assert compared("/any", "", theirs, ours, never) is None


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        (
            answered(204),
            answered(409, {"errors": [{"detail": "it is full"}]}),
            Unlike("status 204, here 409", "here: it is full"),
        ),
        (
            answered(409, {"errors": [{"code": "a"}]}),
            answered(409, {"errors": [{"code": "b"}]}),
            Unlike("code", "a, here b"),
        ),
        (
            answered(200, {"a": {"b": 1, "c": 2}}),
            answered(200, {"a": {"b": 3}}),
            Unlike("body", "a.b: 1, here 3; a.c is only there"),
        ),
        (
            answered(200, {"a": ["x", "x"]}),
            answered(200, {"a": ["x"]}),
            Unlike("body", 'a: 1 only there, 0 only here; one is "x"'),
        ),
        (answered(200, {"a": 1}), Answered(200, b"<p>"), Unlike("body", ": {'a': 1}, here None")),
    ],
)
def test_what_differs_is_named(theirs: Answered, ours: Answered, expected: Unlike) -> None:
    assert compared("/any", "", theirs, ours, never) == expected


def test_candidates_are_a_set() -> None:
    theirs = answered(200, candidates("a", "b"))
    assert compared(CANDIDATES, "", theirs, answered(200, candidates("b", "a")), never) is None
    less = compared(CANDIDATES, "", theirs, answered(200, candidates("a")), never)
    assert less is not None
    assert (less.what, less.detail.partition(";")[0]) == (
        "candidates",
        "1 only there, 0 only here",
    )
    used = compared(CANDIDATES, "", theirs, answered(200, candidates("a", "b", used=2)), never)
    assert used is not None
    assert used.what == "summaries"


@pytest.mark.parametrize(
    ("theirs", "detail"),
    [
        (("a", "b"), None),  # each is a choice of all
        (("a", "x"), "2 there, 2 here of 4; only there: "),  # x is none of ours
        (("a",), "1 there, 2 here of 4"),
    ],
)
def test_a_limit_leaves_a_choice(theirs: tuple[str, ...], detail: str | None) -> None:
    asked: list[str] = []

    def again(query: str) -> Answered:
        asked.append(query)
        return answered(200, candidates("a", "b", "c", "d"))

    query = "resources=VCPU%3A1&limit=2"
    here, there = answered(200, candidates("c", "d")), answered(200, candidates(*theirs))
    found = compared(CANDIDATES, query, there, here, again)
    if detail is None:
        assert found is None
    else:
        assert found is not None
        assert found.detail.startswith(detail)
    assert asked == ["resources=VCPU%3A1"]
