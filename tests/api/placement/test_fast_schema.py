"""The quick check of bodies and queries never says yes where jsonschema says no."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from moorage.api.placement.schemas import BODIES, QUERIES, RESOURCES
from moorage.api.placement.validation import check_body, check_query, quick_check
from moorage.api.placement.versions import HISTORY
from moorage.domain.errors import InvalidDescription

UUID = "6f6e5d4c-3b2a-4190-8f7e-6d5c4b3a2910"
FORMATS = FormatChecker(formats=("uuid",))


def quick(schema: Any) -> Any:
    return quick_check(schema, lambda text: FORMATS.conforms(text, "uuid"))


def thorough(schema: Any, value: object) -> bool:
    return Draft202012Validator(schema, format_checker=FORMATS).is_valid(value)


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2**31),
    st.sampled_from([0.5, 1.0, 2.0, 1e39]),
    st.sampled_from(
        [
            "",
            "VCPU",
            "vcpu",
            "CUSTOM_X",
            UUID,
            "none",
            "isolate",
            "7",
            "0",
            "n" * 300,
            "VCPU\n",
            "7\n",
        ]
    ),
)


def near(schema: Any) -> st.SearchStrategy[Any]:
    """Values that mostly follow the schema, with faults anywhere."""
    kind = schema.get("type")
    if kind == "object":
        keys = st.sampled_from(
            [*schema.get("properties", {}), "VCPU", UUID, "resources1", "x", "VCPU\n"]
        )
        return st.one_of(
            st.lists(keys, max_size=6, unique=True).flatmap(
                lambda chosen: st.fixed_dictionaries(
                    {key: near(_of(schema, key)) for key in chosen}
                )
            ),
            leaves,
        )
    if kind == "array":
        return st.one_of(st.lists(near(schema["items"]), max_size=3), leaves)
    return leaves


def _of(schema: Any, key: str) -> Any:
    options = [schema.get("properties", {}).get(key), *schema.get("patternProperties", {}).values()]
    return next((one for one in options if one is not None), {})


ALL = {**BODIES, **QUERIES}


@pytest.mark.parametrize("operation", ALL)
@given(st.data())
def test_a_quick_yes_is_never_wrong(operation: str, data: st.DataObject) -> None:
    schema = ALL[operation]
    value = data.draw(near(schema))
    if quick(schema)(value):
        assert thorough(schema, value)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 9}, [1, 9], [0, 10, True, "1", None]),
        ({"type": "number", "maximum": 2}, [1, 1.5, -7], [3, True, "1"]),
        ({"type": ["integer", "null"]}, [1, None], ["", True]),
        ({"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]}, [UUID, None], ["x"]),
        ({"type": "string", "enum": ["a", "b"]}, ["a"], ["c", 1]),
        (
            {"type": "string", "minLength": 1, "maxLength": 2, "pattern": "^a"},
            ["a"],
            ["", "abc", "b"],
        ),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            [["a", "b"]],
            [["a", "a"]],
        ),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, [["a"]], [[], [1]]),
    ],
)
def test_plain_values_are_told_apart(schema: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert quick(schema)(value)
        assert thorough(schema, value)
    for value in bad:
        assert not quick(schema)(value)
        assert not thorough(schema, value)


def test_every_schema_of_every_version_has_a_check() -> None:
    for change in HISTORY.changes:
        negotiated = HISTORY.at(change.version)
        for operation in BODIES:
            schema = negotiated.schema(operation, BODIES[operation])
            if schema is not None:
                quick_check(schema, str.isascii)
        for operation in QUERIES:
            quick_check(negotiated.query(operation, QUERIES[operation]), str.isascii)


def test_a_text_that_ends_in_a_line_break_is_left_to_jsonschema() -> None:
    schema = {"type": "string", "pattern": "^[0-9]+$"}
    assert thorough(schema, "1\n")
    assert not quick(schema)("1\n")
    for keys in ({"VCPU\n": 0}, {"VCPU\n": 1}):
        assert quick(RESOURCES)(keys) == thorough(RESOURCES, keys) == (keys["VCPU\n"] == 1)
    open_ended = {"type": "object", "patternProperties": {"^A$": {"type": "integer"}}}
    assert not quick(open_ended)({"A\n": "no integer"})
    assert not thorough(open_ended, {"A\n": "no integer"})


def test_what_is_refused_is_worded_by_jsonschema() -> None:
    newest = HISTORY.at(HISTORY.maximum)
    check_body("providers.create", newest, {"name": "n"})
    with pytest.raises(InvalidDescription, match="'name' is a required property"):
        check_body("providers.create", newest, {})
    check_query("candidates.list", newest, (("limit", "5"),))
    with pytest.raises(InvalidDescription, match="does not match"):
        check_query("candidates.list", newest, (("limit", "0"),))
