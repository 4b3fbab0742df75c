"""Functions that concatenate, filter, search and select from lists."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.yaml_tree import to_node

if TYPE_CHECKING:
    from moorage.heat.functions.call import Call, Table
    from moorage.heat.yaml_tree import Plain, YamlNode

_COMPARED_PER_VALUE: Final = 20
"""Values that are compared in about the time that a value takes otherwise."""


def _list_concat(call: Call) -> YamlNode:
    return call.collection(_concatenated(call))


def _list_concat_unique(call: Call) -> YamlNode:
    listed = _concatenated(call)
    kept: list[YamlNode] = []
    seen: list[Plain] = []
    for one in listed:
        value = call.known(one)
        call.spend(1 + len(seen) * one.size // _COMPARED_PER_VALUE)
        if value not in seen:
            seen.append(value)
            kept.append(one)
    return call.collection(kept)


def _concatenated(call: Call) -> list[YamlNode]:
    lists = [one for one in call.items(call.argument) if call.here(one).value is not None]
    call.refuse_size(sum(one.size for one in lists))
    return [one for some in lists for one in call.items(some)]


def _filter(call: Call) -> YamlNode:
    """The list without the values."""
    values, sequence = call.parts("values", "list")
    if not call.here(sequence).value or not call.here(values).value:
        return call.placed(sequence)
    unwanted = [call.known(one) for one in call.items(values)]
    listed = call.items(sequence)
    call.spend(len(listed) * values.size // _COMPARED_PER_VALUE)
    return call.collection([one for one in listed if call.known(one) not in unwanted])


def _contains(call: Call) -> YamlNode:
    """Whether a value is in a list, or a text in a text."""
    value, sequence = call.parts("value", "list")
    wanted, among = call.known(value), call.known(sequence)
    call.spend(sequence.size)
    if isinstance(among, list):
        return call.value(wanted in among)
    if isinstance(among, str) and isinstance(wanted, str):
        return call.value(wanted in among)
    raise call.invalid(
        f"{typed_yaml.kind(value)} cannot be in {typed_yaml.kind(sequence)}", sequence
    )


def _select(call: Call) -> YamlNode:
    """One of a list or of a mapping; the empty text if it has none such."""
    lookup, collection = call.parts("index", "collection")
    among = _collection(call, collection)
    index = call.known(lookup)
    match among.value:
        case dict() as items:
            if not isinstance(index, str):
                raise call.invalid("the index of a mapping is text", lookup)
            found = items.get(index)
        case list() as listed:
            found = _at(call, listed, lookup, index)
        case _:
            found = None
    return call.value("") if found is None else call.placed(found)


def _collection(call: Call, node: YamlNode) -> YamlNode:
    """A list, a mapping or nothing, perhaps written as JSON."""
    among = call.here(node)
    if not isinstance(among.value, str) or not among.value:
        among = among if among.value != "" else call.value(None)
    else:
        try:
            parsed: Plain = json.loads(among.value)
        except (ValueError, RecursionError) as error:
            raise call.invalid(f"not JSON: {error}", node) from error
        among = to_node(parsed, line=node.line, path=node.path)
    if not isinstance(among.value, dict | list | None):
        raise call.invalid(f"nothing can be selected from {typed_yaml.kind(among)}", node)
    return among


def _at(call: Call, listed: list[YamlNode], lookup: YamlNode, index: Plain) -> YamlNode | None:
    try:
        number = int(index)  # type: ignore[arg-type] # what is no number raises
    except (ValueError, TypeError) as error:
        raise call.invalid("the index of a list is a number", lookup) from error
    return listed[number] if -len(listed) <= number < len(listed) else None


FUNCTIONS: Final[Table] = MappingProxyType(
    {
        "list_concat": _list_concat,
        "list_concat_unique": _list_concat_unique,
        "filter": _filter,
        "contains": _contains,
        "Fn::Select": _select,
    }
)
