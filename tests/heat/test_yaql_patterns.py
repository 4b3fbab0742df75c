"""Regular expressions of yaql: they find and replace what Python's would, or are refused."""

import re
import warnings
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.heat.test_patterns import COMPOSED, TEXTS

from moorage.heat.pattern_syntax import InvalidPattern, UnsupportedPattern
from moorage.heat.yaql_patterns import Regex, regex

Result = TypeVar("Result")
TEMPLATES = st.lists(
    st.sampled_from(
        [
            *("a", "", "\\g<0>", "\\g<1>", "\\1", "\\2", "\\g<n>", "\\\\", "\\n", "\\.", "\\"),
            *("\\q", "\\g", "\\g<", "\\0", "\\012", "\\10", "\\g<x>", "é"),
        ]
    ),
    max_size=3,
).map("".join)


def _python(work: Callable[[], Result]) -> Result | str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()
    except (re.error, IndexError):
        return "invalid"


def _ours(work: Callable[[], Result]) -> Result | str:
    try:
        return work()
    except InvalidPattern:
        return "invalid"
    except UnsupportedPattern:
        return "refused"


def _first(pattern: Regex | re.Pattern[str], text: str) -> object:
    found = pattern.search(text)
    if found is None:
        return None
    return found.start(), found.end(), found.group(), found.groups(), found.groupdict()


@settings(max_examples=600)
@given(COMPOSED, TEXTS, TEMPLATES, st.integers(-1, 2))
def test_they_do_what_python_does_or_are_refused(
    source: str, text: str, template: str, most: int
) -> None:
    mine = _ours(lambda: regex(lambda _: None, source))
    if isinstance(mine, str):
        return  # `test_patterns` judges how patterns are read
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pattern = re.compile(source)
    for ours, python in (
        (lambda: _first(mine, text), lambda: _first(pattern, text)),
        (lambda: mine.split(text, most), lambda: pattern.split(text, most)),
        (lambda: mine.sub(template, text, most), lambda: pattern.sub(template, text, most)),
        (
            lambda: [one.group() for one in mine.finditer(text)],
            lambda: [one.group() for one in pattern.finditer(text)],
        ),
    ):
        found = _ours(ours)
        if found != "refused":
            assert found == _python(python), (source, text)


def test_a_repeated_search_costs_what_it_takes() -> None:
    spent: list[int] = []
    pattern = regex(spent.append, ".*b|.")
    before = sum(spent)
    once = pattern.search("a" * 4_000)
    assert once is not None
    single = sum(spent) - before
    assert len(list(pattern.finditer("a" * 4_000))) == len("a" * 4_000)
    assert sum(spent) - before > 1_000 * single


@pytest.mark.parametrize("source", ["(?=a)", "(a)\\1", "a*+", "(", "x" * 600])
def test_what_re2_does_not_match_alike_is_refused(source: str) -> None:
    with pytest.raises((InvalidPattern, UnsupportedPattern)):
        regex(lambda _: None, source)
