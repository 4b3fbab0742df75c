"""Validated reading of plain values; errors name the place of what is missing or ill-typed.

Every function takes a value and the path it was found at, and raises `InvalidDescription`
with that path where the value is another thing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from moorage.domain.ensembles import MAX_MEMBERS
from moorage.domain.errors import InvalidDescription
from moorage.domain.resources import Amounts, amounts
from moorage.domain.words import did_you_mean, shown

MAX_NAME: Final = 255


def mapping(source: object, path: str) -> Mapping[str, object]:
    """A mapping with strings for keys."""
    # JSON and YAML give dictionaries and lists: these are asked for first, which is faster.
    if type(source) is not dict and not isinstance(source, Mapping):
        raise InvalidDescription(f"{path} must be a mapping, not {kind(source)}", path=path)
    for key in source:
        if not isinstance(key, str):
            raise InvalidDescription(f"{path} has a key that is no string: {key!r}", path=path)
    return source


def listed(source: object, path: str) -> Sequence[object]:
    """A list."""
    if type(source) is not list and (isinstance(source, str) or not isinstance(source, Sequence)):
        raise InvalidDescription(f"{path} must be a list, not {kind(source)}", path=path)
    return source


def text(source: object, path: str, *, most: int = MAX_NAME) -> str:
    """A string of at most so many characters."""
    if not isinstance(source, str):
        raise InvalidDescription(f"{path} must be a string, not {kind(source)}", path=path)
    if len(source) > most:
        raise InvalidDescription(f"{path} is longer than {most} characters", path=path)
    return source


def name(source: object, path: str) -> str:
    """A printable string that is not blank."""
    found = text(source, path)
    if not found.strip() or not found.isprintable():
        raise InvalidDescription(f"{path} must be printable and not blank", path=path)
    return found


def line(source: object, path: str, *, most: int = MAX_NAME) -> str:
    """A string of printable characters on one line; it may be empty."""
    found = text(source, path, most=most)
    if not found.isprintable():
        raise InvalidDescription(
            f"{path} must be printable: no control characters, no line breaks", path=path
        )
    return found


def names(source: object, path: str) -> frozenset[str]:
    """A list of names, without order."""
    return frozenset(name(one, f"{path}[{i}]") for i, one in enumerate(listed(source, path)))


def any_of(source: object, path: str) -> tuple[frozenset[str], ...]:
    """A list of names; one that is a list itself means any name of it."""
    groups = []
    for i, one in enumerate(listed(source, path)):
        where = f"{path}[{i}]"
        group = names([one] if isinstance(one, str) else one, where)
        if not group:
            raise InvalidDescription("an empty list of alternatives", path=where)
        groups.append(group)
    return tuple(groups)


def count(source: object, path: str) -> int:
    """A number of members."""
    if not isinstance(source, int) or isinstance(source, bool) or not 0 <= source <= MAX_MEMBERS:
        raise InvalidDescription(
            f"{path} must be between 0 and {MAX_MEMBERS}, not {source!r}", path=path
        )
    return source


def positive(source: object, path: str) -> Amounts:
    """Resource classes with their amounts, at least one."""
    fields = mapping(source, path)
    if not fields:
        raise InvalidDescription("a member needs at least one resource", path=path)
    whole: dict[str, int] = {}
    for resource_class, amount in fields.items():
        if not isinstance(amount, int):
            raise InvalidDescription(
                f"{resource_class} must be a whole number, not {shown(amount)}",
                path=f"{path}.{resource_class}",
            )
        whole[resource_class] = amount
    return amounts(whole, path=path)


def only(fields: Mapping[str, object], known: Collection[str], path: str) -> None:
    """Refuse unknown fields of a mapping."""
    for field in fields:
        if field not in known:
            raise InvalidDescription(
                f"unknown field {field}{did_you_mean(field, known) or _listed(known)}",
                path=f"{path}.{field}" if path else field,
            )


def _listed(known: Collection[str]) -> str:
    return f"; known are {', '.join(sorted(known))}"


def unique(given: Iterable[str], path: str) -> None:
    """Refuse names that occur twice."""
    seen: set[str] = set()
    for one in given:
        if one in seen:
            raise InvalidDescription(
                f"{one} is described twice: give each a name of its own", path=path
            )
        seen.add(one)


_KINDS: Final = (
    (type(None), "nothing"),
    (bool, "true or false"),
    ((int, float), "a number"),
    (str, "a text"),
    (Mapping, "a mapping"),
    (Sequence, "a list"),
)


def kind(source: object) -> str:
    """What a value is, in the words of YAML and JSON."""
    found = (word for types, word in _KINDS if isinstance(source, types))
    return next(found, type(source).__name__)
