"""Schemas as plain checks: a quick yes for values that `jsonschema` would find valid.

`jsonschema` takes about a millisecond for a body and words its refusals as the protocol quotes
them. Here each schema becomes a function that only says yes or "ask jsonschema"; a yes is never
wrong, which a property test compares. Only keywords that `schemas` uses are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from moorage.http.microversion import JSON

Check: TypeAlias = Callable[[Any], bool]
Formats: TypeAlias = Mapping[str, Check]


def compiled(schema: JSON, formats: Formats) -> Check:
    """A check for a schema; `formats` says what each `format` asks of a text.

    Raises:
        ValueError: the schema has a keyword that is not known here.
    """
    unknown = schema.keys() - _TYPED - {"type", "anyOf"}
    if unknown:
        raise ValueError(f"no check is known for {', '.join(sorted(unknown))}")
    if "anyOf" in schema:
        options = [compiled(one, formats) for one in schema["anyOf"]]
        return _any(options)
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return _any([_MAKERS[name](schema, formats) for name in types])


_TYPED: Final = frozenset(
    {
        *("properties", "required", "additionalProperties", "patternProperties", "minProperties"),
        *("minLength", "maxLength", "pattern", "format", "enum", "minimum", "maximum"),
        *("items", "minItems", "uniqueItems"),
    }
)


def _any(options: list[Check]) -> Check:
    if len(options) == 1:
        return options[0]

    def check(value: object) -> bool:
        for option in options:  # noqa: SIM110 - a generator would take longer than the checks
            if option(value):
                return True
        return False

    return check


def _null(_schema: JSON, _formats: Formats) -> Check:
    return lambda value: value is None


def _integer(schema: JSON, _formats: Formats) -> Check:
    """JSON's 2.0 is an integer too; that rare spelling is left to jsonschema."""
    low, high = schema.get("minimum", -inf), schema.get("maximum", inf)
    return lambda value: type(value) is int and low <= value <= high


def _number(schema: JSON, _formats: Formats) -> Check:
    low, high = schema.get("minimum", -inf), schema.get("maximum", inf)
    return lambda value: (type(value) is int or type(value) is float) and low <= value <= high


def _string(schema: JSON, formats: Formats) -> Check:
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", inf)
    search = re.compile(schema["pattern"]).search if "pattern" in schema else None
    fits = formats[schema["format"]] if "format" in schema else None
    allowed = schema.get("enum")

    def check(value: object) -> bool:
        return (
            type(value) is str
            and shortest <= len(value) <= longest
            and (search is None or search(value) is not None)
            and (fits is None or fits(value))
            and (allowed is None or value in allowed)
        )

    return check


def _array(schema: JSON, formats: Formats) -> Check:
    each = compiled(schema["items"], formats)
    fewest, unique = schema.get("minItems", 0), schema.get("uniqueItems", False)

    def check(value: object) -> bool:
        if type(value) is not list or len(value) < fewest or not all(map(each, value)):
            return False
        if not unique:
            return True
        # Whether other things than texts are equal is jsonschema's business.
        return all(type(one) is str for one in value) and len(set(value)) == len(value)

    return check


def _object(schema: JSON, formats: Formats) -> Check:
    patterns = [
        (re.compile(pattern).search, compiled(one, formats))
        for pattern, one in schema.get("patternProperties", {}).items()
    ]
    known = {
        # Which patterns a known key fits is known as well.
        key: _all([compiled(one, formats), *(of for search, of in patterns if search(key))])
        for key, one in schema.get("properties", {}).items()
    }
    closed = schema.get("additionalProperties", True) is False
    other = _other(patterns, closed=closed)
    required = frozenset(schema.get("required", ()))
    fewest = schema.get("minProperties", 0)

    if not known and closed and len(patterns) == 1:
        ((search_key, of_pattern),) = patterns

        def check_alike(value: object) -> bool:
            if type(value) is not dict or len(value) < fewest or not required <= value.keys():
                return False
            for key, item in value.items():
                if search_key(key) is None or not of_pattern(item):
                    return False
            return True

        return check_alike

    def check(value: object) -> bool:
        if type(value) is not dict or len(value) < fewest or not required <= value.keys():
            return False
        for key, item in value.items():
            of_key = known.get(key)
            if not (other(key, item) if of_key is None else of_key(item)):
                return False
        return True

    return check


def _all(checks: list[Check]) -> Check:
    return checks[0] if len(checks) == 1 else lambda value: all(one(value) for one in checks)


def _other(
    patterns: Sequence[tuple[Callable[[str], object], Check]], *, closed: bool
) -> Callable[[str, Any], bool]:
    """Judges a key of an object that is not known by name, with its value."""

    def check(key: str, value: object) -> bool:
        judged = not closed
        for search, of_pattern in patterns:
            if search(key):
                if not of_pattern(value):
                    return False
                judged = True
        return judged

    return check


_MAKERS: Final[Mapping[str, Callable[[JSON, Formats], Check]]] = {
    "null": _null,
    "integer": _integer,
    "number": _number,
    "string": _string,
    "array": _array,
    "object": _object,
}
