"""The function `repeat`: a template once for every item of a list, or for every combination."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import DeferredValue
from moorage.heat.yaml_tree import MAX_TEXT, collection_node, to_node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.heat.functions.call import Call, Table
    from moorage.heat.yaml_tree import YamlNode


def _repeat(call: Call) -> YamlNode:
    """A copy of the template for each item, or for each combination of several lists' items.

    With `permutations: false` the lists are gone through in step.
    """
    fields = call.entries(call.argument)
    for name in ("template", "for_each"):
        if name not in fields:
            raise call.invalid(f"the key {name!r} is missing")
    in_step = _in_step(call, fields)
    for_each = call.entries(fields["for_each"])
    if not for_each:
        raise call.invalid("for_each names nothing to repeat for", fields["for_each"])
    lists = [_values(call, one, in_step=in_step) for one in for_each.values()]
    lengths = {
        len(some)
        for some, one in zip(lists, for_each.values(), strict=True)
        if one.value is not None
    }
    if in_step and len(lengths) > 1:
        raise call.invalid(
            "lists that are gone through in step need one length", fields["for_each"]
        )
    copies = min(map(len, lists)) if in_step else prod(map(len, lists))
    template = fields["template"]
    call.refuse_size(copies * template.size)
    call.spend(copies * template.size)
    rows = zip(*lists, strict=False) if in_step else product(*lists)
    return call.collection(
        [_Copy(call, dict(zip(for_each, row, strict=True))).of(template) for row in rows]
    )


def _in_step(call: Call, fields: Mapping[str, YamlNode]) -> bool:
    node = fields.get("permutations")
    if node is None or not call.scope.version.repeats_in_step:
        return False
    truth = call.here(node).value
    if not isinstance(truth, bool):
        raise call.invalid("permutations is true or false", node)
    return not truth


def _values(call: Call, node: YamlNode, *, in_step: bool) -> Sequence[YamlNode]:
    match call.here(node).value:
        case None:
            return []
        case list() as listed:
            return listed
        case dict() as items if call.scope.version.repeats_maps and not in_step:
            return [to_node(key, line=node.line, path=node.path) for key in items]
        case _:
            raise call.invalid(f"a list is needed, not {typed_yaml.kind(node)}", node)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy of the template with a value for each word."""

    call: Call
    values: Mapping[str, YamlNode]

    def of(self, node: YamlNode) -> YamlNode:
        match node.value:
            case dict() as items:
                made = {self._key(key): self.of(one) for key, one in items.items()}
                return collection_node(made, node.line, node.path)
            case list() as listed:
                return collection_node([self.of(one) for one in listed], node.line, node.path)
            case DeferredValue():
                return node
            case str() as text:
                made_text = self._text(text)
                if made_text is text:
                    return node
                return to_node(made_text, line=node.line, path=node.path)
            case _:
                return node

    def _key(self, key: str) -> str:
        made = self._text(key)
        if isinstance(made, DeferredValue):
            raise self.call.invalid(f"{made} cannot be a key")
        return made

    def _text(self, text: str) -> str:
        """One word after the other is replaced, also inside what replaced an earlier one."""
        for word, node in self.values.items():
            if not isinstance(node.value, str):
                raise self.call.invalid(
                    f"text is needed to put in, not {typed_yaml.kind(node)}; quote it", node
                )
            if isinstance(node.value, DeferredValue):
                if word in text:
                    return node.value if word == text else node.value.through("repeat")
                continue
            found = text.count(word)
            if len(text) + found * (len(node.value) - len(word)) > MAX_TEXT:
                raise self.call.too_long()
            if found:
                self.call.spend(len(node.value) * found // 200)
                text = text.replace(word, node.value)
        return text


FUNCTIONS: Final[Table] = MappingProxyType({"repeat": _repeat})
