"""Functions that replace words in a text: `str_replace` and its strict forms."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import DeferredValue, find_deferred
from moorage.heat.functions.call import Waiting
from moorage.heat.functions.texts import json_text
from moorage.heat.yaml_tree import MAX_NODES, MAX_TEXT

if TYPE_CHECKING:
    from moorage.heat.functions.call import Call, Table
    from moorage.heat.yaml_tree import YamlNode

_TEXT_PER_VALUE: Final = 500
"""Characters that are searched in about the time that a value takes."""


def _str_replace(call: Call) -> YamlNode:
    return _named(call, _Manner())


def _strict(call: Call) -> YamlNode:
    return _named(call, _Manner(all_found=True))


def _very_strict(call: Call) -> YamlNode:
    return _named(call, _Manner(all_found=True, none_empty=True))


def _fn_replace(call: Call) -> YamlNode:
    words, template = call.parts("words", "text")
    return _replaced(call, template, words, _Manner())


@dataclass(frozen=True, slots=True)
class _Manner:
    all_found: bool = False
    """Whether every word must be in the text."""
    none_empty: bool = False
    """Whether every word must have a value that is not empty."""


def _named(call: Call, manner: _Manner) -> YamlNode:
    fields = call.entries(call.argument)
    for name in ("template", "params"):
        if name not in fields:
            raise call.invalid(f"the key {name!r} is missing")
    return _replaced(call, fields["template"], fields["params"], manner)


def _replaced(call: Call, template: YamlNode, words: YamlNode, manner: _Manner) -> YamlNode:
    """Replace all words: longer ones first, then in order, never inside a replaced value."""
    text, values = call.text(template), call.entries(words)
    if "" in values:
        raise call.invalid("an empty word", words)
    pieces = [_Piece(text)]
    missing: list[str] = []
    scanned = 1 + len(text) // _TEXT_PER_VALUE
    for word in sorted(sorted(values), key=len, reverse=True):
        # Every word is looked for in all of the text that no longer word has replaced.
        call.spend(scanned + len(pieces))
        value = _value(call, values[word], manner)
        found = sum(piece.text.count(word) for piece in pieces if not piece.done)
        if not found:
            missing.append(word)
            continue
        if len(pieces) + 2 * found > MAX_NODES:
            raise call.argument.invalid(f"{call.name}: {word!r} is replaced too often")
        call.spend(2 * found)
        pieces = [new for piece in pieces for new in piece.split(word, value)]
    if missing and manner.all_found:
        raise call.invalid(f"not in the text: {', '.join(missing)}", words)
    return _together(call, pieces)


def _together(call: Call, pieces: list[_Piece]) -> YamlNode:
    made = [piece for piece in pieces if piece.text]
    later = next((one.text for one in made if isinstance(one.text, DeferredValue)), None)
    if later is not None:
        if len(made) == 1:
            # The text is the word alone, so its value is what the word stands for.
            return call.value(later)
        raise Waiting(later)
    if sum(len(piece.text) for piece in made) > MAX_TEXT:
        raise call.too_long()
    return call.value("".join(piece.text for piece in made))


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    done: bool = False
    """Whether it replaces a word, so that no other is looked for in it."""

    def split(self, word: str, value: str) -> list[_Piece]:
        """The piece split at each occurrence of the word, with the value in between."""
        if self.done:
            return [self]
        around = self.text.split(word)
        pieces = [_Piece(around[0])]
        for rest in around[1:]:
            pieces += [_Piece(value, done=True), _Piece(rest)]
        return pieces


def _value(call: Call, node: YamlNode, manner: _Manner) -> str:
    """What a word stands for: a text, or a deferred value."""
    match node.value:
        case DeferredValue() as later:
            return later
        case None:
            text = ""
        case str() as text:
            pass
        case dict() | list():
            if not call.scope.version.joins_json:
                raise call.invalid(
                    f"text is needed, not {typed_yaml.kind(node)}, in version"
                    f" {call.scope.version.name}",
                    node,
                )
            if (below := find_deferred(node)) is not None:
                return below.through("JSON")
            text = json_text(node.plain()) if node.value else ""
        case number:
            text = str(number)
    if not text and manner.none_empty:
        raise call.invalid("an empty value", node)
    return json_text(node.plain()) if isinstance(node.value, dict | list) else text


FUNCTIONS: Final[Table] = MappingProxyType(
    {
        "str_replace": _str_replace,
        "str_replace_strict": _strict,
        "str_replace_vstrict": _very_strict,
        "Fn::Replace": _fn_replace,
    }
)
