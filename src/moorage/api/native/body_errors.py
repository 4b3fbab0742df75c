"""Errors of decoding a request's body in plain words: what is wrong, where, and what is allowed."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import inspect

from moorage.domain.errors import InvalidDescription
from moorage.domain.words import counted, did_you_mean
from moorage.wire.fields import UUID_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_ERROR: Final = re.compile(
    r"(?P<said>.*?)(?: - at (?P<key>`key` in )?`\$\.?(?P<path>[^`]*)`)?", re.DOTALL
)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.+)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.+)`")
_BOUND: Final = re.compile(
    r"Expected `(?P<kind>\w+)` (?P<length>of length )?(?P<sign>[<>]=?) (?P<limit>\S+)"
)
_PATTERN: Final = re.compile(r"Expected `str` matching regex '(?P<of>.+)'")
_OTHER: Final = re.compile(r"Invalid enum value (?P<value>.+)|Expected `[^`]+`, got .+", re.DOTALL)
_SIGNS: Final = MappingProxyType(
    {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
)
_PARTS: Final = MappingProxyType({"str": "character", "array": "element", "object": "key"})
_STEP: Final = re.compile(r"[^.\[\]]+|\[[^]]*\]")
_SHOWN: Final = 100
"""Characters of a wrong value that a message quotes."""
_WORDS: Final[Mapping[type[inspect.Type], str]] = MappingProxyType(
    {
        inspect.IntType: "a whole number",
        inspect.FloatType: "a number",
        inspect.StrType: "a string",
        inspect.BoolType: "true or false",
        inspect.NoneType: "null",
        inspect.ListType: "a list",
        inspect.DictType: "an object",
        inspect.StructType: "an object",
    }
)


def invalid_body(error: str, body: object) -> InvalidDescription:
    """The decoder's error about a body of this type, reworded, with its path."""
    found = _ERROR.fullmatch(error)
    assert found is not None, "what has no path is all message"
    path = found["path"] or None
    where = path or "the body"
    if found["key"]:
        where = f"a key of {where}"
    return InvalidDescription(_reworded(found["said"], where, path, body), path=path)


def _reworded(  # noqa: PLR0911 - one return for each kind of error
    said: str, where: str, path: str | None, body: object
) -> str:
    if bound := _BOUND.fullmatch(said):
        sign, limit = _SIGNS[bound["sign"]], bound["limit"]
        if bound["length"] is None:
            return f"{where} must be {sign} {limit}"
        return f"{where} must have {sign} {counted(int(limit), _PARTS[bound['kind']])}"
    if pattern := _PATTERN.fullmatch(said):
        text = (
            "be a UUID in lower case" if pattern["of"] == UUID_PATTERN else f"match {pattern['of']}"
        )
        return f"{where} must {text}"
    if said.endswith("out of range"):
        return f"{where} is too large a number"
    if missing := _MISSING.fullmatch(said):
        return f"{where} needs {missing['name']}"
    top = inspect.type_info(body)
    if other := _OTHER.fullmatch(said):
        allowed = _either(_allowed(_kinds_at(top, path or "")))
        instead = f", not {other['value'][:_SHOWN]}" if other["value"] else ""
        return f"{where} must be {allowed}{instead}"
    if unknown := _UNKNOWN.fullmatch(said):
        if path is None and (wrapper := _wrapper(top)):
            return _outside_wrapper(unknown["name"], *wrapper)
        return _unknown_field(unknown["name"], dict(_fields(top)))
    return f"{where}: {said}"


def _unknown_field(name: str, known: Mapping[str, str]) -> str:
    """An unknown field, with the most similar one of the body."""
    if name in known:  # in another place of the body
        return f"unknown field {name} here; did you mean {known[name]}?"
    return f"unknown field {name[:_SHOWN]}{did_you_mean(name, set(known))}"


def _wrapper(top: inspect.Type) -> tuple[str, inspect.Type] | None:
    """The only field of a body that must be there, and its type, if that is an object."""
    fields = _struct_fields(top)
    main = [field for field in fields if field.required] or fields
    if len(main) != 1:
        return None
    (field,) = main
    wraps = any(isinstance(one, inspect.StructType | inspect.DictType) for one in _each(field.type))
    return (field.encode_name, field.type) if wraps else None


def _outside_wrapper(name: str, wrapper: str, inner: inspect.Type) -> str:
    """An unknown field beside the wrapper, such as a description that is sent without it."""
    kinds = list(_each(inner))
    known = {one.encode_name for kind in kinds for one in _struct_fields(kind)}
    if name not in known and not any(isinstance(one, inspect.DictType) for one in kinds):
        return f"unknown field {name[:_SHOWN]}{did_you_mean(name, {wrapper, *known})}"
    return f'{name} belongs inside {wrapper}: the body must be {{"{wrapper}": {{"{name}": ...}}}}'


def _struct_fields(kind: inspect.Type) -> tuple[inspect.Field, ...]:
    return kind.fields if isinstance(kind, inspect.StructType) else ()


def _either(words: Iterable[str]) -> str:
    *others, last = dict.fromkeys(words)
    return f"{', '.join(others)} or {last}" if others else last


def _allowed(kinds: Iterable[inspect.Type]) -> Iterator[str]:
    """What may be sent for these types: each value of an enumeration, else the type in words."""
    for kind in kinds:
        if isinstance(kind, inspect.LiteralType):
            yield from map(str, kind.values)
        else:
            yield _WORDS[type(kind)]


def _kinds_at(top: inspect.Type, path: str) -> list[inspect.Type]:
    """The types of what is at a path such as `members[0].kind` or `resources[...]`."""
    kinds = list(_each(top))
    for step in _STEP.findall(path):
        kinds = [one for kind in kinds for inner in _inside(kind, step) for one in _each(inner)]
    return kinds


def _inside(kind: inspect.Type, step: str) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.StructType):
        yield from (one.type for one in kind.fields if one.encode_name == step)
    elif isinstance(kind, inspect.ListType):
        yield kind.item_type
    elif isinstance(kind, inspect.DictType):
        yield kind.value_type


def _each(kind: inspect.Type) -> Iterator[inspect.Type]:
    """A type, or each type of a union, without its `Metadata` (bounds and patterns)."""
    if isinstance(kind, inspect.Metadata):
        yield from _each(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _each(one)
    else:
        yield kind


def _fields(
    kind: inspect.Type, path: str = "", seen: frozenset[type] = frozenset()
) -> Iterator[tuple[str, str]]:
    """The field names of a type and its nested types, with the path of each."""
    for one in _each(kind):
        if isinstance(one, inspect.StructType) and one.cls not in seen:
            for field in one.fields:
                place = f"{path}{field.encode_name}"
                yield from _fields(field.type, f"{place}.", seen | {one.cls})
                yield field.encode_name, place
        elif isinstance(one, inspect.ListType):
            yield from _fields(one.item_type, path, seen)
        elif isinstance(one, inspect.DictType):
            yield from _fields(one.value_type, path, seen)
