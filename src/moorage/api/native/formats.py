"""How answers are written: structs from the attributes of what they show, times, plain JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from types import MappingProxyType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from msgspec import UNSET, Struct, UnsetType, convert, structs

from moorage.domain.lease_actions import Edge
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Instant, format_duration, format_instant

if TYPE_CHECKING:
    from datetime import datetime

S = TypeVar("S", bound=Struct)
Write: TypeAlias = Callable[[Any], object]


def view(kind: type[S], *of: object, operator: bool = False, **given: object) -> S:
    """The struct of this kind, by the attributes of the first of `of` that has them.

    A field is written as its type says: instants and durations as text, sets sorted, parts as
    structs of their own; text is written already. Fields that are `given` have these values. Those
    for operators are left out of what others see, given or not. A view stays as it is.
    """
    if of and isinstance(of[0], kind):
        return of[0]
    found: dict[str, Any] = {}
    plan = _plan(kind, tuple(map(type, of)), tuple(given), operator=operator)
    for name, at, attribute, write, nothing in plan:
        value = given[name] if at is None else getattr(of[at], attribute)
        if value is None:
            found[name] = nothing
        elif write is None or value is UNSET or isinstance(value, str):
            found[name] = value
        else:
            found[name] = write(value)
    return kind(**found)


def instant(when: Instant) -> str | None:
    """An instant on the wire; null for never."""
    return None if when == FOREVER else format_instant(when)


def wall(clock: datetime) -> str:
    """A local time; seconds only where there are any."""
    whole = not (clock.second or clock.microsecond)
    return clock.isoformat(timespec="minutes" if whole else "auto")


def any_of(alternatives: Iterable[Iterable[str]]) -> list[str | list[str]]:
    """Alternatives on the wire: a single name, or a nested list."""
    return [found[0] if len(found := sorted(some)) == 1 else found for some in alternatives]


def plain(value: Any) -> Any:  # noqa: ANN401 - whatever a policy's parameters hold
    """A value as JSON values: sets as sorted lists, names of members as text."""
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, tuple | list | Mapping):
        return _each(plain, value)
    return str(value) if isinstance(value, MemberName) else value


NO_ACTIONS: Final[Mapping[str, Any]] = MappingProxyType({edge.value: () for edge in Edge})
"""What a lease does at its edges if nothing is said."""
_WRITTEN: Final[Mapping[str, Write]] = MappingProxyType(
    {"instant": instant, "duration": format_duration, "any of": any_of}
)
"""The words of `wire.fields`."""
_LEAVES: Final[Mapping[object, Write | None]] = MappingProxyType(
    {str: str, int: None, float: None, bool: None}
)
"""Types without parts; numbers are written as they are."""
_SCALARS: Final = frozenset({*_LEAVES, NoneType, UnsetType})


@cache
def _plan(
    kind: type[Struct], of: tuple[type, ...], given: tuple[str, ...], *, operator: bool
) -> tuple[tuple[str, int | None, str, Write | None, object], ...]:
    """Where each field that the caller may see is from, how it is written, and what None is.

    It is from an attribute of one of these classes, or (None) given.
    """
    if unknown := set(given).difference(kind.__struct_fields__):
        raise TypeError(f"{kind.__name__} has no field {min(unknown)}")
    found = []
    for field in structs.fields(kind):
        inner, marks = _unmarked(field.type)
        attribute = marks.get("attribute", field.name)
        at = None
        if field.name not in given:
            at = next((i for i, one in enumerate(of) if _has(one, attribute)), -1)
        if at == -1 or (marks.get("operators") and not operator):
            continue
        options = _options(inner)
        nothing = UNSET if UnsetType in options and NoneType not in options else None
        write = _writer(field.type, operator=operator)
        if write is instant and NoneType not in options:
            write = format_instant
        found.append((field.name, at, attribute, write, nothing))
    return tuple(found)


def _has(kind: type, attribute: str) -> bool:
    return hasattr(kind, attribute) or attribute in getattr(kind, "__dataclass_fields__", ())


def _writer(kind: Any, *, operator: bool) -> Write | None:  # noqa: ANN401 - what annotations have
    """How values of a type are written; None: as they are."""
    inner, marks = _unmarked(kind)
    options = [one for one in _options(inner) if one not in {NoneType, UnsetType}]
    if "written" in marks:
        return _WRITTEN[marks["written"]]
    if options != [inner] and len(options) == 1:
        return _writer(options[0], operator=operator)
    if inner in _LEAVES or int in options:
        return _LEAVES.get(inner)
    return _composite(inner, operator=operator)


def _composite(kind: Any, *, operator: bool) -> Write:  # noqa: ANN401 - what annotations have
    """How values of a struct, mapping or list are written."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        if all({*_options(one.type)} <= _SCALARS for one in structs.fields(kind)):
            return partial(convert, type=kind, from_attributes=True)
        return partial(view, kind, operator=operator)
    part = _writer(get_args(kind)[-1], operator=operator) if get_origin(kind) else None
    if get_origin(kind) is dict and part is None:
        return dict
    return plain if part in {None, str, plain} else partial(_each, part)


def _each(write: Write, value: Any) -> list[object] | dict[str, object]:  # noqa: ANN401
    """Each part of a sequence or mapping, written so."""
    if isinstance(value, Mapping):
        return dict(zip(map(str, value), map(write, value.values()), strict=True))
    return list(map(write, value))


def _unmarked(kind: Any) -> tuple[Any, Mapping[str, Any]]:  # noqa: ANN401 - what annotations have
    if get_origin(kind) is not Annotated:
        return kind, {}
    inner, *marks = get_args(kind)
    return inner, {key: value for one in marks for key, value in (one.extra or {}).items()}


def _options(kind: Any) -> tuple[Any, ...]:  # noqa: ANN401 - what annotations have
    return get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
