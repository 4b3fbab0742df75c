"""The shape of a query: what it requests of any provider tree; equal queries have equal shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.resources import ResourceClass


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """A slot: what one provider allocates; a suffixed group, or one class of the unsuffixed."""

    suffix: str
    amounts: tuple[tuple[ResourceClass, int], ...]


@dataclass(frozen=True, slots=True)
class QueryShape:
    """The slots of a query and the rules between them, without the fleet."""

    slots: tuple[SlotRequest, ...]
    required_sets: int
    """How many required trait sets the providers of the unsuffixed group meet together."""
    shared_classes: tuple[tuple[ResourceClass, int], ...]
    """Classes that one provider may give to several slots, with their summed amounts."""
    isolate: bool
    same_subtrees: tuple[frozenset[str], ...]
    one_provider_per_tree: bool
    uses: bool = False
    """Whether candidates use certain providers of their tree."""

    @property
    def flag_count(self) -> int:
        """Flags per provider in a tree key: slots, required sets, sharing, perhaps to be used."""
        return len(self.slots) + self.required_sets + 1 + self.uses

    @property
    def number_count(self) -> int:
        """Numbers per provider in a tree key: free and max_unit per shared class; parent; root."""
        return 2 * len(self.shared_classes) + bool(self.same_subtrees) + self.one_provider_per_tree
