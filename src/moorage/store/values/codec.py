"""JSON codecs of frozen dataclasses, composed field by field: shapes.

A shape is a pair of functions. `record` makes one for a dataclass from the shapes of its
fields; a field without a shape is JSON already (a string, a number, a truth value, None).
Tables of such records are in `bodies`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from enum import StrEnum

    from _typeshed import DataclassInstance

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """`dump` turns a value into plain JSON values, `load` turns these back."""

    dump: Callable[[T], Any]
    load: Callable[[Any], T]

    def encode(self, value: T) -> str:
        """The value as JSON text."""
        return msgspec.json.encode(self.dump(value)).decode()

    def decode(self, text: str) -> T:
        """The value that `encode` made the text of."""
        return self.load(msgspec.json.decode(text))


def _same(value: Any) -> Any:  # noqa: ANN401 - whatever JSON may hold
    return value


PLAIN: Shape[Any] = Shape(_same, _same)
"""JSON already."""


def record(cls: type[T], /, **shapes: Shape[Any]) -> Shape[T]:
    """A dataclass as a JSON object; `shapes` names the fields that are not plain."""
    known: type[DataclassInstance] = cls  # type: ignore[assignment]  # every caller passes a dataclass
    table = [(one.name, shapes.get(one.name, PLAIN)) for one in fields(known)]
    shaped = [(name, shape.dump) for name, shape in table if shape.dump is not _same]
    unknown = shapes.keys() - {name for name, _ in table}
    assert not unknown, f"{cls.__name__} has no fields {unknown}"

    def dump(value: T) -> dict[str, Any]:
        found = {name: getattr(value, name) for name, _ in table}
        for name, plain in shaped:
            found[name] = plain(found[name])
        return found

    def load(plain: Mapping[str, Any]) -> T:
        # A field that a later version added takes its default.
        return cls(**{name: shape.load(plain[name]) for name, shape in table if name in plain})

    return Shape(dump, load)


def unstored(value: T) -> Shape[T]:
    """What is not stored with its record, and is this value where that is read."""
    return Shape(lambda _: None, lambda _: value)


def optional(shape: Shape[T]) -> Shape[T | None]:
    """The same, or None."""
    return Shape(
        lambda value: None if value is None else shape.dump(value),
        lambda plain: None if plain is None else shape.load(plain),
    )


def each(shape: Shape[T]) -> Shape[tuple[T, ...]]:
    """A tuple as a list."""
    return Shape(
        lambda values: [shape.dump(one) for one in values],
        lambda plain: tuple(shape.load(one) for one in plain),
    )


def unordered(shape: Shape[T]) -> Shape[frozenset[T]]:
    """A frozenset as a sorted list."""
    return Shape(
        lambda values: sorted(shape.dump(one) for one in values),
        lambda plain: frozenset(shape.load(one) for one in plain),
    )


def choice(enum: type[StrEnum]) -> Shape[Any]:
    """A member of an enumeration as its word."""
    return Shape(lambda one: one.value, enum)


def table(value: Shape[T], key: Shape[Any] = PLAIN) -> Shape[Mapping[Any, T]]:
    """A mapping as a list of pairs: keys need not be strings, and the order stays."""
    return Shape(
        lambda items: [[key.dump(k), value.dump(v)] for k, v in items.items()],
        lambda plain: MappingProxyType({key.load(k): value.load(v) for k, v in plain}),
    )


def _thawed(value: object) -> object:
    """Frozen JSON values as the ones the encoder knows."""
    if isinstance(value, Mapping):
        return {name: _thawed(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_thawed(one) for one in value]
    return value


VALUE: Shape[Any] = Shape(_thawed, _same)
"""Any JSON value; tuples come back as lists."""


def _frozen(plain: Iterable[tuple[str, object]]) -> Mapping[str, object]:
    return MappingProxyType(dict(plain))


FREE: Shape[Mapping[str, object]] = Shape(_thawed, lambda plain: _frozen(plain.items()))
"""A mapping of names to any JSON values, as a caller wrote it."""
