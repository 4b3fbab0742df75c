"""A call of a function: its name, its resolved argument, and typed access to the parts of it.

A reader here raises `Waiting` for a part that is known only later, which makes the call's value a
deferred one, and `Unevaluable` for a part with which the function has no value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from moorage.domain.errors import InvalidDescription
from moorage.heat import typed_yaml
from moorage.heat.deferred_values import DeferredValue, find_deferred
from moorage.heat.yaml_tree import MAX_NODES, MAX_TEXT, collection_node, to_node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.heat.scope import Scope
    from moorage.heat.yaml_tree import Plain, YamlNode

PAIR = 2
_PER_NEW_VALUE = 2
"""What a new value in a list or mapping costs more than one that was there: it takes memory."""


class Unevaluable(InvalidDescription):
    """The function has no value for these arguments; `path` and `line` are theirs."""


class Waiting(Exception):
    """The function needs a value that comes only later."""

    def __init__(self, value: DeferredValue) -> None:
        super().__init__(str(value))
        self.value = value


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function."""

    name: str
    argument: YamlNode
    """Resolved: no function is left in it."""
    scope: Scope

    def invalid(self, message: str, at: YamlNode | None = None) -> Unevaluable:
        """An error at a part of the argument, or at the whole of it."""
        error = (self.argument if at is None else at).invalid(f"{self.name}: {message}")
        return Unevaluable(error.message, path=error.path, line=error.line)

    def remark(self, message: str) -> None:
        """Tell the template's author something about this call."""
        node = self.argument
        self.scope.remarks.add(f"{node.path} (line {node.line}): {self.name}: {message}")

    def spend(self, amount: int) -> None:
        """Count work beside that for the call's value, in values.

        Raises:
            InvalidDescription: too much in all.
        """
        self.scope.work.spend(amount, self.argument)

    def here(self, node: YamlNode) -> YamlNode:
        """The same node, which must not be a deferred value itself."""
        if isinstance(node.value, DeferredValue):
            raise Waiting(node.value)
        return node

    def known(self, node: YamlNode) -> Plain:
        """The plain value of a node below which everything is known."""
        if (later := find_deferred(node)) is not None:
            raise Waiting(later)
        return node.plain()

    def text(self, node: YamlNode) -> str:
        """A text, which may be empty."""
        value = self.here(node).value
        if not isinstance(value, str):
            raise self.invalid(f"text is needed, not {typed_yaml.kind(node)}", node)
        return value

    def items(self, node: YamlNode) -> list[YamlNode]:
        """A list; its items may be deferred values."""
        value = self.here(node).value
        if not isinstance(value, list):
            raise self.invalid(f"a list is needed, not {typed_yaml.kind(node)}", node)
        return value

    def entries(self, node: YamlNode) -> dict[str, YamlNode]:
        """A mapping; its values may be deferred ones."""
        value = self.here(node).value
        if not isinstance(value, dict):
            raise self.invalid(f"a mapping is needed, not {typed_yaml.kind(node)}", node)
        return value

    def parts(self, *names: str) -> list[YamlNode]:
        """The items of the argument, of which there are as many as names."""
        found = self.items(self.argument)
        if len(found) != len(names):
            raise self.invalid(f"takes [{', '.join(names)}], not {len(found)} values")
        return found

    def value(self, value: Plain) -> YamlNode:
        """A plain value with the place of the call."""
        if isinstance(value, str) and len(value) > MAX_TEXT:
            raise self.too_long()
        made = to_node(value, line=self.argument.line, path=self.argument.path)
        if made.depth > 1:
            self.spend(_PER_NEW_VALUE * made.size)
        return made

    def collection(self, value: list[YamlNode] | dict[str, YamlNode]) -> YamlNode:
        """A list or a mapping of nodes with the place of the call."""
        return collection_node(value, self.argument.line, self.argument.path)

    def placed(self, node: YamlNode) -> YamlNode:
        """The same value with the place of the call, which errors then name."""
        match node.value:
            case dict() as items:
                return self.collection(dict(items))
            case list() as listed:
                return self.collection(list(listed))
            case scalar:
                return to_node(scalar, line=self.argument.line, path=self.argument.path)

    def too_long(self) -> InvalidDescription:
        """The error about a text that would be longer than a file may be."""
        return self.argument.invalid(f"{self.name}: longer than {MAX_TEXT} characters")

    def refuse_size(self, size: int) -> None:
        """Return if a value of this size may be made.

        Raises:
            InvalidDescription: it may not.
        """
        if size > MAX_NODES:
            raise self.argument.invalid(f"{self.name}: more than {MAX_NODES} values")


Function: TypeAlias = "Callable[[Call], YamlNode]"
Table: TypeAlias = "Mapping[str, Function]"
