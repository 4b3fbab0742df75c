"""Plain messages for unknown or misplaced fields of a request body."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import inspect

from moorage.domain.words import counted, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>[^`]+)`")
_BOUND: Final = re.compile(
    r"Expected `(?P<kind>\w+)` (?P<length>of length )?(?P<sign>[<>]=) (?P<limit>\S+)"
)
_SIGNS: Final = {"<=": "at most", ">=": "at least"}
_PARTS: Final = {"str": "character", "array": "element", "object": "key"}


def explained(message: str, body: Any) -> str:  # noqa: ANN401 - a type, in all its forms
    """A decoder's message, reworded.

    Of an unknown field it has the most similar field of the body's type.
    """
    bound = _BOUND.fullmatch(message)
    if bound is not None:
        sign, limit = _SIGNS[bound["sign"]], bound["limit"]
        if bound["length"] is None:
            return f"must be {sign} {limit}"
        return f"must have {sign} {counted(int(limit), _PARTS.get(bound['kind'], 'part'))}"
    found = _UNKNOWN.fullmatch(message)
    if found is None:
        return message
    name = found["name"]
    known = dict(_fields(inspect.type_info(body)))
    if name in known:  # in another place of the body
        return f"unknown field {name} here; did you mean {known[name]}?"
    return f"unknown field {name}{did_you_mean(name, set(known))}"


def _fields(
    kind: inspect.Type, path: str = "", seen: frozenset[type] = frozenset()
) -> Iterator[tuple[str, str]]:
    """The field names of a type and its nested types, with the path of each."""
    if isinstance(kind, inspect.StructType) and kind.cls not in seen:
        for field in kind.fields:
            place = f"{path}{field.encode_name}"
            yield from _fields(field.type, f"{place}.", seen | {kind.cls})
            yield field.encode_name, place
    elif isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _fields(one, path, seen)
    elif isinstance(kind, inspect.ListType):
        yield from _fields(kind.item_type, path, seen)
    elif isinstance(kind, inspect.DictType):
        yield from _fields(kind.value_type, path, seen)
