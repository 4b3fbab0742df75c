"""Values that exist only once the stack does: addresses, ids, generated secrets.

They are text that says what will stand there, so that functions can carry them along. Whoever
decides a placement from a value must first ask `pending`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from moorage.heat.marked import Marked
    from moorage.heat.paths import Path


class Later(str):
    """Stands for a value that Heat will fill in."""

    __slots__ = ()


class Reference(Later):
    """Stands for the id of a resource of the template; `target` says which one."""

    __slots__ = ("target",)
    target: Path

    @classmethod
    def to(cls, target: Path) -> Self:
        """The id of the resource at that path."""
        made = cls(f"the id of {target}")
        made.target = target
        return made


def pending(node: Marked) -> Later | None:
    """The first value below that is not known yet, or None."""
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
