"""YAML 1.1 scalars as Heat reads them: times stay text, tags beyond the standard ones are refused.

Each is read in time linear in its text. A number longer than `MAX_NUMBER_LENGTH` characters is
refused, since converting it takes longer than linear, and Python refuses to write some of them.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_NUMBER_LENGTH: Final = 400
"""Largest number of characters of a number."""
_LARGEST: Final = 10**MAX_NUMBER_LENGTH

Scalar: TypeAlias = "str | int | float | bool | None"

_TAG: Final = "tag:yaml.org,2002:"
_TEXT: Final = frozenset(f"{_TAG}{name}" for name in ("str", "timestamp", "merge", "value"))
_NUMBERS: Final = frozenset(f"{_TAG}{name}" for name in ("int", "float"))
_IMPLICIT: Final[Mapping[str, list[tuple[str, Any]]]] = (
    yaml.resolver.Resolver.yaml_implicit_resolvers
)
_SHOWN: Final = 40


def tag_of(text: str, *, plain: bool) -> str:
    """The tag of a scalar written without one; only a plain scalar can be other than text."""
    if plain:
        for tag, form in _IMPLICIT.get(text[:1], ()):
            if form.match(text) is not None:
                return tag
    return f"{_TAG}str"


def is_known(tag: str) -> bool:
    """Whether it is a standard tag."""
    return tag in _TEXT or tag in _CONSTRUCT


def value_of(text: str, tag: str) -> Scalar:
    """The value of a scalar.

    Raises:
        ValueError: the tag is none of the standard ones, or the text is no such value; says so.
    """
    if tag in _TEXT:
        if (why := unwritable(text)) is not None:
            raise ValueError(why)
        return text
    construct = _CONSTRUCT.get(tag)
    if construct is None:
        raise ValueError(f"unsupported tag {excerpt(tag)}")
    if tag in _NUMBERS and len(text) > MAX_NUMBER_LENGTH:
        raise ValueError(
            f"a number of more than {MAX_NUMBER_LENGTH} characters: {excerpt(text)};"
            " quote it if it is text"
        )
    try:
        value = construct(yaml.ScalarNode(tag, text))
    except (ValueError, ArithmeticError, LookupError, yaml.YAMLError) as error:
        raise ValueError(f"not a value: {excerpt(text)}") from error
    if (why := unwritable(value)) is not None:
        raise ValueError(why)
    return value


_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def unwritable(value: Scalar) -> str | None:
    """Why a value cannot be written in JSON, or stored; None if it can."""
    if isinstance(value, str) and _UNSTORABLE.search(value):
        return "a text with NUL or half of a pair of surrogates in it, which cannot be stored"
    if isinstance(value, float) and not math.isfinite(value):
        return "not a finite number; quote it if it is text"
    if isinstance(value, int) and not -_LARGEST < value < _LARGEST:
        return f"a number of more than {MAX_NUMBER_LENGTH} digits"
    return None


def excerpt(text: str) -> str:
    """The beginning of a text, for error messages."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\u2026")


def _constructors() -> Mapping[str, Callable[[yaml.ScalarNode], Scalar]]:
    made: Any = yaml.constructor.SafeConstructor()
    return {
        f"{_TAG}int": made.construct_yaml_int,
        f"{_TAG}float": made.construct_yaml_float,
        f"{_TAG}bool": made.construct_yaml_bool,
        f"{_TAG}null": made.construct_yaml_null,
    }


_CONSTRUCT: Final = _constructors()
