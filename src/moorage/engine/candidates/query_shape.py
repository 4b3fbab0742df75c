"""What a query asks of every provider tree, whatever the tree: equal queries have equal shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.resources import ResourceClass


@dataclass(frozen=True, slots=True)
class Want:
    """What one provider gives in one piece: of a suffixed group all, of the unsuffixed a class."""

    suffix: str
    amounts: tuple[tuple[ResourceClass, int], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a query asks of every tree, whatever the tree and the fleet: equal for equal queries."""

    slots: tuple[Want, ...]
    required: int
    """How many trait sets the providers of the unsuffixed group meet together."""
    summed: tuple[tuple[ResourceClass, int], ...]
    """Classes that several slots want, with all they want together."""
    isolate: bool
    same_subtrees: tuple[frozenset[str], ...]
    one_provider_per_tree: bool

    @property
    def bits(self) -> int:
        """Yes-or-no features per provider: slots, required sets, whether it shares."""
        return len(self.slots) + self.required + 1

    @property
    def numbers(self) -> int:
        """Features that are numbers: room and largest unit per summed class; parent; root."""
        return 2 * len(self.summed) + bool(self.same_subtrees) + self.one_provider_per_tree
