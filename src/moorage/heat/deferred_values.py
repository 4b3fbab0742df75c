"""Values known only once the stack exists: addresses, ids, generated secrets.

They are text that says what will stand there, so that functions can carry them along. Code that
decides a placement by a value must first check it with `pending`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from moorage.heat.paths import Path
    from moorage.heat.yaml_tree import Marked


class Later(str):
    """A placeholder for a value that Heat will fill in."""

    __slots__ = ()


class Reference(Later):
    """A placeholder for the id of a resource; `target` is its path."""

    __slots__ = ("target",)
    target: Path

    @classmethod
    def to(cls, target: Path) -> Self:
        """The id of the resource at that path."""
        made = cls(f"the id of {target}")
        made.target = target
        return made


def pending(node: Marked) -> Later | None:
    """The first unknown value below the node, or None."""
    match node.value:
        case Later() as value:
            return value
        case dict() as items:
            below = items.values()
            return next((found for one in below if (found := pending(one)) is not None), None)
        case list() as listed:
            return next((found for one in listed if (found := pending(one)) is not None), None)
        case _:
            return None
