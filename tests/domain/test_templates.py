"""Parameters and placeholders of templates."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription
from moorage.domain.templates import (
    Parameter,
    check_placeholders,
    checked_value,
    fill_placeholders,
    parameter_values,
    read_parameters,
)

COUNT = Parameter("count", "number", default=4, least=1, most=50)
FLAVOR = Parameter("flavor")


def test_a_placeholder_alone_is_its_value_and_within_a_text_its_text() -> None:
    source = {
        "name": "upf-{site}",
        "members": [{"name": "upf", "count": "{count}", "tags": "{tags}"}],
        "metadata": {"braces": "{{count}}", "both": "{count}{site}"},
    }
    assert fill_placeholders(source, {"count": 4, "site": "north", "tags": ["a", "b"]}) == {
        "name": "upf-north",
        "members": [{"name": "upf", "count": 4, "tags": ["a", "b"]}],
        "metadata": {"braces": "{count}", "both": "4north"},
    }


def test_what_yaml_makes_of_a_bare_placeholder_is_the_parameter() -> None:
    assert fill_placeholders({"count": {"count": None}}, {"count": 4}) == {"count": 4}
    assert fill_placeholders({"metadata": {"other": None}}, {"count": 4}) == {
        "metadata": {"other": None}
    }


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ({"members": [{"count": "{many}"}]}, "members[0].count"),
        ({"name": "a{b"}, "name"),
        ({"name": "a}b"}, "name"),
        ({"name": "{}"}, "name"),
        ({"metadata": {"x": "{a b}"}}, "metadata.x"),
    ],
)
def test_a_brace_without_a_parameter_is_told_with_its_place(
    source: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidDescription) as refused:
        check_placeholders(source, (COUNT,))
    assert refused.value.path == path


def test_parameters_are_read_with_their_bounds() -> None:
    source = {
        "count": {"type": "number", "default": 4, "min": 1, "max": 50, "description": "how many"},
        "flavor": {"allowed": ["small", "large"]},
        "site": None,
    }
    assert read_parameters(source) == (
        Parameter("count", "number", 4, "how many", 1, 50),
        Parameter("flavor", allowed=("small", "large")),
        Parameter("site"),
    )


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ([], "parameters"),
        ({"a b": {}}, "parameters.a b"),
        ({"a": []}, "parameters.a"),
        ({"a": {"kind": "number"}}, "parameters.a.kind"),
        ({"a": {"type": "float"}}, "parameters.a.type"),
        ({"a": {"type": "number", "default": "four"}}, "parameters.a.default"),
        ({"a": {"type": "number", "default": True}}, "parameters.a.default"),
        ({"a": {"type": "number", "default": 0, "min": 1}}, "parameters.a.default"),
        ({"a": {"type": "number", "min": "1"}}, "parameters.a.min"),
        ({"a": {"allowed": "b"}}, "parameters.a.allowed"),
        ({"a": {"allowed": ["b", 1]}}, "parameters.a.allowed"),
        ({"a": {"type": ["number"]}}, "parameters.a.type"),
        ({"a": {"type": "number", "min": 10**400}}, "parameters.a.min"),
        ({"a": {"type": "number", "max": float("nan")}}, "parameters.a.max"),
        ({"a": {"type": "number", "default": -(10**400)}}, "parameters.a.default"),
        ({f"p{i}": {} for i in range(65)}, "parameters"),
    ],
    ids=range(16),
)
def test_a_declaration_that_means_nothing_is_refused(source: object, path: str) -> None:
    with pytest.raises(InvalidDescription) as refused:
        read_parameters(source)
    assert refused.value.path == path


def test_values_come_from_the_caller_or_the_default() -> None:
    assert parameter_values((COUNT, FLAVOR), {"flavor": "small"}) == {"count": 4, "flavor": "small"}
    assert parameter_values((COUNT,), {"count": "7"}) == {"count": 7}
    switch, names = Parameter("on", "boolean"), Parameter("names", "list")
    assert parameter_values((switch, names), {"on": "True", "names": "a,b"}) == {
        "on": True,
        "names": ["a", "b"],
    }


@pytest.mark.parametrize(
    ("given_values", "path"),
    [
        ({}, "parameters.flavor"),
        ({"flavor": "x", "other": 1}, "parameters.other"),
        ({"flavor": 7}, "parameters.flavor"),
        ({"flavor": "x", "count": 51}, "parameters.count"),
        ({"flavor": "x", "count": "many"}, "parameters.count"),
        ({"flavor": "x" * 5000}, "parameters.flavor"),
    ],
    ids=range(6),
)
def test_values_that_a_parameter_may_not_have_are_refused(
    given_values: dict[str, object], path: str
) -> None:
    with pytest.raises(InvalidDescription) as refused:
        parameter_values((COUNT, FLAVOR), given_values)
    assert refused.value.path == path


def test_a_template_that_is_too_large_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="more than"):
        fill_placeholders({"members": [0] * 60_000}, {})


@given(st.text(max_size=40))
def test_doubled_braces_come_back_single(text: str) -> None:
    escaped = text.replace("{", "{{").replace("}", "}}")
    assert fill_placeholders({"name": escaped}, {}) == {"name": text}


@given(st.text(alphabet="{}ab ", max_size=12))
def test_any_text_is_filled_or_refused(text: str) -> None:
    stray = re.sub(r"\{\{|\}\}|\{a\}", "", text)
    if "{" in stray or "}" in stray:
        with pytest.raises(InvalidDescription) as refused:
            fill_placeholders({"name": text}, {"a": 1})
        assert refused.value.path == "name"
    else:
        assert fill_placeholders({"name": text}, {"a": 1}).keys() == {"name"}


@given(st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)))
def test_a_number_is_judged_by_its_bounds(value: object) -> None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= 50
    if fits:
        assert checked_value(COUNT, value, "p") == value
    else:
        with pytest.raises(InvalidDescription):
            checked_value(COUNT, value, "p")
