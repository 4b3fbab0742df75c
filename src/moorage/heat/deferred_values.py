"""Deferred values: known only once the stack exists, such as addresses, ids, generated secrets.

They are strings that describe the value, so that functions can pass them on. Code that uses a value
for placement must check it with `refuse_deferred` first; the readers of `typed_yaml` do so.

A function that has no value (a wrong argument, or an expression that cannot be worked out here)
yields a deferred value as well: it matters only where a place hangs on it, and is refused there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from moorage.heat.paths import Path
    from moorage.heat.yaml_tree import YamlNode


class NotKnownYet(InvalidDescription):
    """A place hangs on a value that is not known before the stack is made, or cannot be worked out.

    `path` and `line` name the place of the value.
    """


class DeferredValue(str):
    """A placeholder for a value that Heat will fill in."""

    __slots__ = ()

    def through(self, function: str) -> DeferredValue:
        """The placeholder for what a function makes of the value."""
        return DeferredValue(f"{function} of {self}")


class ResourceReference(DeferredValue):
    """A placeholder for the id of a resource; `target` is its path."""

    __slots__ = ("target",)
    target: Path

    @classmethod
    def to(cls, target: Path) -> Self:
        """The id of the resource at that path."""
        made = cls(f"the id of {target}")
        made.target = target
        return made


class UnevaluatedValue(DeferredValue):
    """A placeholder for what has no value here; `problem` says why, and where."""

    __slots__ = ("problem",)
    problem: InvalidDescription

    @classmethod
    def because(cls, problem: InvalidDescription) -> Self:
        """What has no value because of this."""
        made = cls(f"a value that cannot be worked out ({problem.message})")
        made.problem = problem
        return made

    def through(self, function: str) -> DeferredValue:  # noqa: ARG002 - the reason stays the same
        """The same: whatever a function makes of it has no value for the same reason."""
        return self


def find_deferred(node: YamlNode) -> DeferredValue | None:
    """The first deferred value at or below the node, or None."""
    found = _first(node)
    return None if found is None else found[1]


def refuse_deferred(node: YamlNode) -> None:
    """Return if everything at and below the node is known now.

    Raises:
        NotKnownYet: something is not.
    """
    if (found := _first(node)) is not None:
        raise not_known(found[1], found[0])


def _first(node: YamlNode) -> tuple[YamlNode, DeferredValue] | None:
    match node.value:
        case DeferredValue() as value:
            return node, value
        case dict() as items:
            below = items.values()
            return next((found for one in below if (found := _first(one)) is not None), None)
        case list() as listed:
            return next((found for one in listed if (found := _first(one)) is not None), None)
        case _:
            return None


def not_known(value: DeferredValue, node: YamlNode) -> NotKnownYet:
    """The error about a deferred value on which a place hangs, at this node."""
    if isinstance(value, UnevaluatedValue):
        why = value.problem
        return NotKnownYet(why.message, path=why.path, line=why.line)
    return NotKnownYet(
        f"{value} is not known before the stack is made", path=node.path or None, line=node.line
    )
