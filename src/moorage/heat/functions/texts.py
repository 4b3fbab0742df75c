"""Functions that join, split and digest texts."""

from __future__ import annotations

import hashlib
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import DeferredValue
from moorage.heat.functions.call import PAIR
from moorage.heat.yaml_tree import MAX_NODES, MAX_TEXT

if TYPE_CHECKING:
    from moorage.heat.functions.call import Call, Table
    from moorage.heat.yaml_tree import Plain, YamlNode


def json_text(value: Plain) -> str:
    """A list or mapping as text, as Heat writes it."""
    return json.dumps(value, sort_keys=True)


def _list_join(call: Call) -> YamlNode:
    parts = call.items(call.argument)
    if len(parts) < PAIR:
        raise call.invalid("takes a delimiter and a list")
    delimiter, *lists = parts
    if len(lists) > 1 and not call.scope.version.joins_json:
        raise call.invalid(f"takes one list in version {call.scope.version.name}")
    if any(not _is_nothing(call, one) for one in lists):
        nodes = [one for some in lists if not _is_nothing(call, some) for one in call.items(some)]
    else:
        nodes = []
    if len(nodes) == 1 and isinstance(nodes[0].value, DeferredValue):
        return call.placed(nodes[0])
    texts = [_joined(call, one) for one in nodes]
    between = call.text(delimiter)
    if sum(map(len, texts)) + len(between) * len(texts) > MAX_TEXT:
        raise call.too_long()
    return call.value(between.join(texts))


def _is_nothing(call: Call, node: YamlNode) -> bool:
    """Whether Heat takes this for an empty list."""
    value = call.here(node).value
    return not value if call.scope.version.joins_json else value is None


def _joined(call: Call, node: YamlNode) -> str:
    """An item to join: Heat does not accept bare numbers here."""
    match call.here(node).value:
        case None:
            return ""
        case str() as text:
            return text
        case dict() | list() if call.scope.version.joins_json:
            return json_text(call.known(node))
        case dict() | list():
            raise call.invalid(
                f"text is needed, not {typed_yaml.kind(node)}, in version"
                f" {call.scope.version.name or 'of AWS'}",
                node,
            )
        case _:
            raise call.invalid(f"text is needed, not {typed_yaml.kind(node)}; quote it", node)


def _str_split(call: Call) -> YamlNode:
    """The pieces of a text, or the one at an index."""
    parts = call.items(call.argument)
    if len(parts) < PAIR:
        raise call.invalid("takes a delimiter, a text, and perhaps an index")
    if call.here(parts[1]).value is None:
        return call.value(None)
    pieces = _pieces(call, parts[0], parts[1])
    if len(parts) == PAIR:
        return call.value([*pieces])
    index = call.known(parts[PAIR])
    try:
        return call.value(pieces[int(index)])  # type: ignore[arg-type] # what is no number raises
    except (ValueError, TypeError, IndexError) as error:
        raise call.invalid(
            f"there is no piece {typed_yaml.shown(parts[PAIR])} of {len(pieces)}", parts[PAIR]
        ) from error


def _split(call: Call) -> YamlNode:
    return call.value([*_pieces(call, *call.parts("delimiter", "text"))])


def _pieces(call: Call, delimiter: YamlNode, node: YamlNode) -> list[str]:
    text = call.text(node)
    # Without one Heat splits at white space.
    between = None if call.here(delimiter).value is None else call.text(delimiter)
    if between == "":
        raise call.invalid("an empty delimiter", delimiter)
    call.spend(len(text) // 100)
    if between is not None and text.count(between) > MAX_NODES:
        raise call.argument.invalid(f"{call.name}: more than {MAX_NODES} pieces")
    return text.split(between)


def _base64(call: Call) -> YamlNode:
    """The text as it is: Heat takes user data in plain text."""
    return call.value(call.text(call.argument))


def _digest(call: Call) -> YamlNode:
    algorithm, text = (call.text(one) for one in call.parts("algorithm", "text"))
    call.spend(len(text) // 100)
    try:
        made = hashlib.new(algorithm, text.encode("latin-1"), usedforsecurity=False)
        return call.value(made.hexdigest())
    except (ValueError, TypeError) as error:
        # Of no name it knows, of a text beyond Latin-1, or of a digest whose length must be said.
        raise call.invalid(f"there is no digest {algorithm!r} of this text") from error


FUNCTIONS: Final[Table] = MappingProxyType(
    {
        "list_join": _list_join,
        "str_split": _str_split,
        "digest": _digest,
        "Fn::Join": _list_join,
        "Fn::Split": _split,
        "Fn::Base64": _base64,
    }
)
