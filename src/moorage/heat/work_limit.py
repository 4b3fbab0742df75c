"""Counts the work of expanding a template, in values, and limits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline

if TYPE_CHECKING:
    from moorage.heat.yaml_tree import YamlNode

MAX_WORK: Final = 2_000_000
"""Limit of values read in the whole tree of stacks; stops an expansion bomb after seconds."""


@dataclass(slots=True)
class Work:
    """The count of values read so far in the whole tree."""

    done: int = 0

    def spend(self, amount: int, node: YamlNode) -> None:
        """Count work for a node.

        Raises:
            InvalidDescription: too much in all.
            TimeExpired: the deadline of the request has passed.
        """
        deadline.check()
        self.done += amount
        if self.done > MAX_WORK:
            raise node.invalid(f"the template expands to more than {MAX_WORK} values")
