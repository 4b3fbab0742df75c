"""Reads the wire parameters of a policy from the fields of its dataclass.

A policy declares its parameters once, as dataclass fields: the type, the default, and in the
metadata (`about`) a description and bounds. Parsing, errors and the JSON schema are derived.
Supported types: `int`, `str`, either of them `| None`, `frozenset[str]`, and `str | Sides`: a
string, or lists of strings.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from moorage.domain.errors import InvalidDescription
from moorage.domain.words import did_you_mean
from moorage.policies.sides import Sides

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")

MAX_TEXT = 255
MAX_NUMBER = 1_000_000
_OTHER_WORDS: Final = {"weight": "; a policy of weight 3 has strength: {preferred: 3}"}
"""What is a parameter in another's words -> how it is said."""
MIN_SIDES = 2
MAX_SIDES = 1_000

_SIDES: Final = {
    "type": "array",
    "minItems": MIN_SIDES,
    "maxItems": MAX_SIDES,
    "items": {
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
    },
}


def about(
    text: str,
    *,
    minimum: int = 0,
    choices: tuple[str, ...] = (),
    pattern: str = "",
    allowed: str = "",
) -> Mapping[str, object]:
    """Metadata of one parameter: its meaning and its values.

    `minimum` bounds integers; `choices` lists the only strings, `pattern` (a regular
    expression that must match the whole) describes them, and `allowed` says it to people.
    """
    return {
        "about": text,
        "minimum": minimum,
        "choices": choices,
        "pattern": pattern,
        "allowed": allowed,
    }


def read(cls: type[T], parameters: Mapping[str, object], *, path: str) -> T:
    """Make a policy from wire parameters.

    Raises:
        InvalidDescription: an unknown, missing, ill-typed or out-of-range parameter.
    """
    known, hints = _fields(cls), _hints(cls)  # type: ignore[arg-type]  # every class is hashable
    for name in parameters:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
            hint = _OTHER_WORDS.get(name, hint)
            raise InvalidDescription(f"no parameter {name!r}{hint}", path=_at(path, name))
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name in parameters:
            values[name] = _value(parameters[name], hints[name], field, _at(path, name))
        elif _required(field):
            raise InvalidDescription(f"parameter {name!r} is missing", path=_at(path, name))
    return cls(**values)


def schema(cls: type) -> dict[str, object]:
    """The JSON schema (draft 2020-12) of a policy's parameters."""
    hints = _hints(cls)
    return {
        "type": "object",
        "properties": {f.name: _property(hints[f.name], f) for f in fields(cls)},
        "required": [f.name for f in fields(cls) if _required(f)],
        "additionalProperties": False,
    }


def given(policy: object) -> dict[str, object]:
    """The wire parameters of a policy, without defaults."""
    found: dict[str, object] = {}
    for field in fields(policy):  # type: ignore[arg-type]  # a dataclass instance
        value = getattr(policy, field.name)
        if _required(field) or value != _default(field):
            found[field.name] = _plain(value)
    return found


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return sorted(value) if isinstance(value, frozenset) else value


@cache
def _fields(cls: type) -> dict[str, Field[Any]]:
    return {field.name: field for field in fields(cls)}


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _value(value: object, hint: object, field: Field[Any], path: str) -> object:
    kinds = set(get_args(hint)) or {hint}
    if value is None and type(None) in kinds:
        return None
    if int in kinds:
        return _integer(value, field, path)
    if Sides in kinds and isinstance(value, list | tuple):
        return _sides(value, path)
    if get_origin(hint) is frozenset:
        return _texts(value, field.metadata, path)
    others = ", or a list of sides" if Sides in kinds else ""
    return _text(value, field.metadata, path, others=others)


def _sides(value: Sequence[object], path: str) -> Sides:
    if not MIN_SIDES <= len(value) <= MAX_SIDES:
        raise InvalidDescription(
            f"must have {MIN_SIDES} to {MAX_SIDES} sides, not {len(value)}", path=path
        )
    found = tuple(_texts(side, about(""), f"{path}[{i}]") for i, side in enumerate(value))
    for i, side in enumerate(found):
        if not side:
            raise InvalidDescription("a side is empty", path=f"{path}[{i}]")
    return found


def _texts(value: object, metadata: Mapping[str, Any], path: str) -> frozenset[str]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise InvalidDescription(f"must be a list of strings, not {value!r}", path=path)
    return frozenset(_text(item, metadata, f"{path}[{i}]") for i, item in enumerate(value))


def _integer(value: object, field: Field[Any], path: str) -> int:
    low = field.metadata["minimum"]
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidDescription(f"must be an integer, not {value!r}", path=path)
    if not low <= value <= MAX_NUMBER:
        raise InvalidDescription(f"must be between {low} and {MAX_NUMBER}, not {value}", path=path)
    return value


def _text(value: object, metadata: Mapping[str, Any], path: str, *, others: str = "") -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise InvalidDescription(
            f"must be a string of 1 to {MAX_TEXT} characters, not {value!r}", path=path
        )
    choices, pattern = metadata["choices"], metadata["pattern"]
    if choices and value not in choices:
        known = ", ".join(choices) + others
        raise InvalidDescription(f"must be one of {known}, not {value!r}", path=path)
    if pattern and re.fullmatch(pattern, value) is None:
        allowed = metadata["allowed"]
        raise InvalidDescription(f"must be {allowed}, not {value!r}", path=path)
    return value


def _property(hint: object, field: Field[Any]) -> dict[str, object]:
    kinds = set(get_args(hint)) or {hint}
    found: dict[str, object] = {"description": field.metadata["about"]}
    text: dict[str, object] = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}
    if field.metadata["choices"]:
        text["enum"] = list(field.metadata["choices"])
    if field.metadata["pattern"]:
        text["pattern"] = f"^(?:{field.metadata['pattern']})$"
    if Sides in kinds:
        found |= {"anyOf": [text, _SIDES]}
    elif get_origin(hint) is frozenset:
        found |= {"type": "array", "items": text, "uniqueItems": True}
    elif int in kinds:
        found |= {"type": "integer", "minimum": field.metadata["minimum"], "maximum": MAX_NUMBER}
    else:
        found |= text
    if not _required(field):
        default = _default(field)
        if default is not None:
            found["default"] = sorted(default) if isinstance(default, frozenset) else default
    return found


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _default(field: Field[Any]) -> object:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else None


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
