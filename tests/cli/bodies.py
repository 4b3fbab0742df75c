"""Bodies of answers for tests: the named fields as given, other required ones empty."""

from typing import Any, TypeVar

from msgspec import inspect

T = TypeVar("T")


def body(kind: type[T], **given: Any) -> T:
    """A struct of the wire with these fields."""
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    empty = {field.name: _empty(field.type) for field in found.fields if field.required}
    return kind(**(empty | given))


def _empty(kind: inspect.Type) -> Any:
    match kind:
        case inspect.UnionType() if kind.includes_none:
            return None
        case inspect.StructType():
            return body(kind.cls)
        case inspect.ListType():
            return []
        case inspect.DictType():
            return {}
        case inspect.StrType():
            return ""
        case _:
            return False if isinstance(kind, inspect.BoolType) else 0
