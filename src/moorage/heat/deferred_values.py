"""Deferred values: known only once the stack exists, such as addresses, ids, generated secrets.

They are strings that describe the value, so that functions can pass them on. Code that uses a value
for placement must check it with `find_deferred` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from moorage.heat.paths import Path
    from moorage.heat.yaml_tree import YamlNode


class DeferredValue(str):
    """A placeholder for a value that Heat will fill in."""

    __slots__ = ()


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


def find_deferred(node: YamlNode) -> DeferredValue | None:
    """The first deferred value at or below the node, or None."""
    match node.value:
        case DeferredValue() as value:
            return value
        case dict() as items:
            below = items.values()
            return next((found for one in below if (found := find_deferred(one)) is not None), None)
        case list() as listed:
            return next(
                (found for one in listed if (found := find_deferred(one)) is not None), None
            )
        case _:
            return None


def refuse_deferred(node: YamlNode) -> None:
    """Return if everything at and below the node is known now.

    Raises:
        InvalidDescription: something is not.
    """
    if (later := find_deferred(node)) is not None:
        raise node.invalid(f"{later} is not known before the stack is made")
