"""Typed access to YAML nodes: the value, or an error with path and line.

A deferred value is refused by each reader, as `NotKnownYet`: what is read counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat.deferred_values import DeferredValue, not_known

if TYPE_CHECKING:
    from collections.abc import Collection

    from moorage.domain.errors import InvalidDescription
    from moorage.heat.yaml_tree import YamlNode

_KINDS: Final = {dict: "a mapping", list: "a list", type(None): "nothing", str: "text"}


def mapping(
    node: YamlNode, *, required: Collection[str] = (), optional: Collection[str] | None = None
) -> dict[str, YamlNode]:
    """A mapping; with `optional` given, keys beyond it and `required` are refused."""
    _refuse_deferred(node)
    if not isinstance(node.value, dict):
        raise node.invalid(f"a mapping is needed here, not {kind(node)}")
    for key, one in node.value.items():
        if optional is not None and key not in required and key not in optional:
            known = ", ".join(sorted({*required, *optional}))
            raise one.invalid(f"unknown key {key!r}; known here: {known}")
    for key in required:
        if key not in node.value:
            raise node.invalid(f"the key {key!r} is missing")
    return node.value


def items(node: YamlNode, *, least: int = 0) -> list[YamlNode]:
    """A list of at least that many."""
    _refuse_deferred(node)
    if not isinstance(node.value, list):
        raise node.invalid(f"a list is needed here, not {kind(node)}")
    if len(node.value) < least:
        raise node.invalid(f"at least {least} needed here")
    return node.value


def text(node: YamlNode) -> str:
    """A non-empty word or sentence. A number or boolean is not text: quote it."""
    _refuse_deferred(node)
    if not isinstance(node.value, str) or not node.value:
        raise node.invalid(f"text is needed here, not {kind(node)}")
    return node.value


def name(node: YamlNode) -> str:
    """Text, or a number taken as it is written (flavor and host names may be digits)."""
    if isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.spelling or str(node.value)
    return text(node)


def text_property(node: YamlNode) -> str:
    """The text that Heat makes of a property: of a whole number or a truth value, too."""
    if isinstance(node.value, int):
        return str(node.value)
    return text(node)


def integer(node: YamlNode, *, least: int, most: int) -> int:
    """A whole number within bounds."""
    _refuse_deferred(node)
    if not isinstance(node.value, int) or isinstance(node.value, bool):
        raise node.invalid(f"a whole number is needed here, not {kind(node)}")
    if not least <= node.value <= most:
        raise node.invalid(f"must be between {least} and {most}, not {node.value}")
    return node.value


def number(node: YamlNode, *, least: float, most: float) -> float:
    """A number within bounds."""
    _refuse_deferred(node)
    if not isinstance(node.value, int | float) or isinstance(node.value, bool):
        raise node.invalid(f"a number is needed here, not {kind(node)}")
    # Written so that a NaN is refused as well.
    if not least <= node.value <= most:
        raise node.invalid(f"must be between {least:g} and {most:g}, not {node.value}")
    return float(node.value)


def boolean(node: YamlNode) -> bool:
    """True or false."""
    _refuse_deferred(node)
    if not isinstance(node.value, bool):
        raise node.invalid(f"true or false is needed here, not {kind(node)}")
    return node.value


def choice(node: YamlNode, among: Collection[str]) -> str:
    """Text that is one of the given words."""
    word = text(node)
    if word not in among:
        raise node.invalid(f"{word!r} is none of {', '.join(sorted(among))}")
    return word


def _refuse_deferred(node: YamlNode) -> None:
    if isinstance(node.value, DeferredValue):
        raise not_known(node.value, node)


def shown(node: YamlNode) -> str:
    """A scalar as it is written, anything else by its type, for messages."""
    if isinstance(node.value, dict | list) or node.value is None:
        return kind(node)
    return node.spelling or str(node.value)


def kind(node: YamlNode) -> str:
    """The type of a node, for error messages."""
    match node.value:
        case bool():
            word = str(node.value).lower()
        case int() | float():
            word = f"the number {node.value}"
        case "":
            word = "empty text"
        case DeferredValue():
            word = str(node.value)
        case _:
            word = _KINDS[type(node.value)]
    return word


def with_location(error: InvalidDescription, node: YamlNode) -> InvalidDescription:
    """Add a node's path and line to a domain error, keeping the tail of the error's own path."""
    if error.line is None:
        error.line = node.line
    if not (error.path or "").startswith(node.path):
        error.path = ".".join(filter(None, (node.path, error.path)))
    return error


def texts(node: YamlNode) -> tuple[str, ...]:
    """A list of words without repetitions."""
    found = tuple(text(one) for one in items(node))
    if len(set(found)) < len(found):
        raise node.invalid("a word is written twice in this list")
    return found
