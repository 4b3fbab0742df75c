"""Resource providers and their inventories (OpenStack Placement's terms)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.resources import MAX_AMOUNT

if TYPE_CHECKING:
    from moorage.domain.period import Instant
    from moorage.domain.resources import ResourceClass, Trait

SHARING_TRAIT: Final = "MISC_SHARES_VIA_AGGREGATE"
"""The trait of providers that share their inventories with those in their aggregates."""
MAX_NAME: Final = 200
MAX_CAPACITY: Final = 2**62
"""The largest capacity, whatever the ratio: columns are 64 bits wide and are added up."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a provider has of one resource class."""

    resource_class: ResourceClass
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_AMOUNT
    step_size: int = 1
    allocation_ratio: float = 1.0
    updated_at: Instant = 0

    @property
    def units(self) -> int:
        """`int((total - reserved) * ratio)`, however large."""
        return int((self.total - self.reserved) * self.allocation_ratio)

    @property
    def capacity(self) -> int:
        """Units that may be booked at one instant.

        Never beyond `MAX_CAPACITY`: what bookings can sum up to fits below it.
        """
        return max(-MAX_CAPACITY, min(self.units, MAX_CAPACITY))

    def rule_broken_by(self, amount: int) -> str | None:
        """Name the unit rule that one booking of `amount` breaks, or None."""
        if amount < self.min_unit:
            return f"min_unit {self.min_unit}"
        if amount > self.max_unit:
            return f"max_unit {self.max_unit}"
        if amount % self.step_size:
            return f"step_size {self.step_size}"
        return None


@dataclass(frozen=True, slots=True)
class ResourceProvider:
    """A node of a provider tree.

    `generation` is the wire's counter and moves exactly as the reference's does;
    `revision` moves on every change, bookings included, and is what changesets rely on.
    """

    uuid: str
    name: str
    parent_uuid: str | None
    root_uuid: str
    generation: int = 0
    revision: int = 0
    created_at: Instant = 0
    updated_at: Instant = 0
    inventories: tuple[Inventory, ...] = ()
    traits: frozenset[Trait] = frozenset()
    aggregates: frozenset[str] = frozenset()
    offered_by: str | None = None
    """The consumer, normally a server, that offers it; ADR-0037."""
    open_to: frozenset[str] | None = frozenset()
    """Projects that may place slices on it, if a server offers it; None: every project."""
    owner: str = ""
    """The project of the server that offers it, if one does."""
    by_operator: bool = False
    """Whether an operator has said what the server offers."""
