"""Values of a fleet file that its schema has checked: keys, names, and names over domains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.domain.errors import InvalidDescription
from moorage.domain.fleet import Names, Order, Spread
from moorage.heat import typed_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.yaml_tree import YamlNode

    Fields = Mapping[str, YamlNode]


def items(fields: Fields, key: str) -> list[YamlNode]:
    """A list; an empty one if it is left out."""
    return typed_yaml.items(fields[key]) if key in fields else []


def plain(node: YamlNode) -> Any:  # noqa: ANN401 - the schema has checked the type
    """The value as plain Python objects."""
    return node.plain()


def integer(fields: Fields, key: str) -> int | None:
    """A whole number, or None if it is left out."""
    value: int | None = plain(fields[key]) if key in fields else None
    return value


def text(fields: Fields, key: str) -> str | None:
    """A text or name, or None if it is left out."""
    return typed_yaml.name(fields[key]) if key in fields else None


def texts(fields: Fields, key: str) -> frozenset[str]:
    """A set of words; an empty one if it is left out."""
    return frozenset(typed_yaml.texts(fields[key])) if key in fields else frozenset()


def names_of(node: YamlNode, *, made: bool = False) -> Names:
    """A name, or `{name, count, first}`.

    One name of what may be there already is taken as it is; what is `made` from the file, without a
    UUID, has a name that suits.

    Raises:
        InvalidDescription: a name that no provider or domain may have, or a count without `{n}`.
    """
    fields = typed_yaml.mapping(node) if isinstance(node.value, dict) else {"name": node}
    name, first = typed_yaml.name(fields["name"]), integer(fields, "first")
    names = Names(
        pattern=name,
        count=integer(fields, "count"),
        first=1 if first is None else first,
        line=node.line,
        literal="uuid" in fields or not (made or "count" in fields or "{n" in name),
    )
    if "uuid" in fields and names.count is not None:
        raise fields["count"].invalid("a provider with a UUID is one")
    try:
        names.expand()
    except InvalidDescription as error:
        raise fields["name"].invalid(error.message) from error
    return names


def several(node: YamlNode) -> tuple[Names, ...]:
    """One or a list of names."""
    return tuple(map(names_of, node.value if isinstance(node.value, list) else [node]))


def spread(node: YamlNode, order: YamlNode | None) -> Spread:
    """Names over which things are distributed, in equal runs unless `order` says otherwise."""
    return Spread(several(node), Order.BLOCK if order is None else Order(typed_yaml.text(order)))
