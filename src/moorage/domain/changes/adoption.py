"""Taking over what another Placement service has acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.content import AllocationSet
    from moorage.domain.providers import ResourceProvider


@dataclass(frozen=True, slots=True)
class AdoptProviders:
    """Write providers as another Placement service has them, generations included.

    Parents come before their children or are there. Those in `known` that exist are made equal:
    name, parent, inventories, traits, aggregates and generation. Any other must be new: somebody
    who made it meanwhile would lose it.
    DuplicateName, UnknownName (parent, class or trait), InventoryInUse.
    """

    providers: tuple[ResourceProvider, ...]
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AdoptAllocations:
    """Write consumers' whole sets of allocations as another Placement service has them.

    The consumers have none before. Consumer generations are written as given, provider generations
    stay. Nothing is judged: what another ledger has acknowledged is a fact, overages included.
    ConsumerConflict, UnknownName, InvalidDescription.
    """

    sets: tuple[AllocationSet, ...]
