"""Patterns of tenants: matched as Python's `re.match` would, or not at all."""

import itertools
import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.heat.pattern_syntax import MAX_TEXT, InvalidPattern, UnsupportedPattern, matches, read

PIECES = st.sampled_from(
    [
        *"ab01-_ ,.^$",
        *("\\d", "\\w", "\\s", "\\W", "\\.", "\\b", "\\n", "\\Z", "\\x61", "\\-", "\\_", "\\A"),
        *("[a-c]", "[^a]", "[^\\d]", "[]a]", "[\\w-]", "[a-]", "[^]]", "[,-.]"),
        *("{", "}", "]", "a{", "{a}", "", "é", "\n", "(?i:B)", "(?s:.)", "(?P<n>a)"),
    ]
)
REPEATS = st.sampled_from(
    ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}", "{2,}", "{0,1}?", "{,}", "*+", "{0}"]
)
GROUPS = st.sampled_from(["(%s)", "(?:%s)", "%s", "(?-i:%s)"])


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map("|".join)
        | st.tuples(GROUPS, inner, REPEATS).map(lambda t: (t[0] % t[1]) + t[2])
    )


COMPOSED = st.recursive(PIECES, _composed, max_leaves=8)
SCRAMBLED = st.lists(
    st.sampled_from(
        [
            *"()[]{}?*+|\\^$.ab01,-_ ",
            *("(?:", "(?i)", "(?P<a>", "(?=", "(?<!", "\\1", "\\B", "{,3}", "[a-", "[^", "\\Q"),
            *("[[:alpha:]]", "\\pL", "\\u0061", "(?s)", "(?m:", "a{1,2}", "é", "(?x)", "(?#a)"),
        ]
    ),
    max_size=8,
).map("".join)
TEXTS = st.text("aaabbAB01 -_,\n\x1fé", max_size=7)


def by_python(pattern: str, text: str) -> bool | None:
    """What Heat does; None where the pattern is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = re.match(pattern, text)
    except re.error:
        return None
    return found is not None and found.end() == len(text)


def by_re2(pattern: str, text: str) -> bool | None:
    try:
        return matches(pattern, text, lambda _: None)
    except InvalidPattern:
        return None


@pytest.mark.parametrize("patterns", [COMPOSED, SCRAMBLED])
def test_where_a_pattern_is_matched_heat_would_say_the_same(
    patterns: st.SearchStrategy[str],
) -> None:
    @settings(max_examples=600)
    @given(patterns, st.lists(TEXTS, min_size=1, max_size=4))
    def check(pattern: str, texts: list[str]) -> None:
        for text in texts:
            try:
                found = by_re2(pattern, text)
            except UnsupportedPattern:
                continue
            assert found == by_python(pattern, text), (pattern, text)

    check()


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        # The leftmost-first match decides, even where a longer one would fit.
        ("a|ab", "ab", False),
        ("ab|a", "ab", True),
        ("a??b?", "ab", False),
        ("[a-z][a-z0-9-]{0,62}", "web-01", True),
        (r"^(([0-9]{1,3})\.){3}[0-9]{1,3}$", "10.0.0.12", True),
        (r"\A\w+\Z", "web_1", True),
        ("(?i)WEB", "web", True),
        ("x{,2}", "xx", True),
        ("x{a}", "x{a}", True),
        ("[^/]+", "für", True),
    ],
)
def test_patterns_as_templates_write_them(pattern: str, text: str, *, fits: bool) -> None:
    assert by_re2(pattern, text) is by_python(pattern, text) is fits


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[a-", "[z-a]", "*a", "a**", "^*", "a{2,1}", "\\", "\\x4", "(?P<1>a)", "[\\d-z]"],
)
def test_what_is_no_pattern_is_said_to_be_none(pattern: str) -> None:
    assert by_python(pattern, "a") is None
    with pytest.raises(InvalidPattern):
        read(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "why"),
    [
        (r"(a)\1", "aa", "back reference"),
        ("(?=a)a", "a", "(?=a"),
        ("(?P=n)", "a", "(?P="),
        ("a++", "a", "possessive"),
        ("(|a)*", "a", "may be empty"),
        ("[[:alpha:]]", "a", "inside a set"),
        ("a{1001}", "a", "repetitions"),
        ("((a{30}){30}){30}", "a", "RE2 says"),
        ("((a|b.)(c.|d)){1000}", "a", "RE2 says"),
        (r"\w+", "für", "beyond ASCII"),
        (r"\s", "\x1f", "beyond ASCII"),
        ("a$", "a\n", "line feed"),
        ("a", "\ud800", "surrogate"),
        ("a*", "a" * (MAX_TEXT + 1), "longer than"),
    ],
)
def test_what_is_not_matched_is_named(pattern: str, text: str, why: str) -> None:
    with pytest.raises(UnsupportedPattern, match=re.escape(why)):
        matches(pattern, text, lambda _: None)


def test_what_a_match_costs_grows_with_text_and_program_alone() -> None:
    spent: list[int] = []
    for length in (500, 1000, 2000, 4000):
        matches("(a|.)" * 60 + "b", "a" * length, spent.append)
    assert spent[-1] <= 9 * spent[0]
    assert all(first < second for first, second in itertools.pairwise(spent))
