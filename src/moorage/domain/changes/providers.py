"""Changes of Placement's resources: providers and what they have, names, and imported content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.content import AllocationSet
    from moorage.domain.period import Instant
    from moorage.domain.providers import Inventory, ResourceProvider


@dataclass(frozen=True, slots=True)
class AdoptNames:
    """Write resource classes and traits as another Placement service has them.

    Standard names may be newer than those that this program knows. Each is given with the time of
    its last change; 0 is now for a new one, and no change for another. InvalidDescription.
    """

    classes: Mapping[str, Instant]
    traits: Mapping[str, Instant]


@dataclass(frozen=True, slots=True)
class AdoptProviders:
    """Write providers as another Placement service has them, generations and times included.

    Parents come before their children or are there. Those in `known` that exist are made equal:
    name, parent, inventories, traits, aggregates, generation and times (0: now). Any other must
    be new: one created by others meanwhile would be lost.
    DuplicateName, UnknownName (parent, class or trait), InventoryInUse.
    """

    providers: tuple[ResourceProvider, ...]
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AdoptAllocations:
    """Write consumers' whole sets of allocations as another Placement service has them.

    The consumers have none before. Consumer generations are written as given, provider generations
    stay, and allocations begin when they were written. Nothing is judged: what another ledger has
    acknowledged is a fact, overages included.
    ConsumerConflict, UnknownName, InvalidDescription.
    """

    sets: tuple[AllocationSet, ...]


@dataclass(frozen=True, slots=True)
class CreateProvider:
    """Create a provider, generation 0. DuplicateName if uuid or name is taken.

    With `offered_by`, a server provider of that consumer: a root, and never a parent.
    """

    uuid: str
    name: str
    parent_uuid: str | None = None
    offered_by: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateProvider:
    """Rename, and with `set_parent` move under `parent_uuid` (None: become a root)."""

    uuid: str
    name: str
    parent_uuid: str | None = None
    set_parent: bool = False


@dataclass(frozen=True, slots=True)
class DeleteProvider:
    """Delete a provider. ProviderHasChildren, ProviderInUse, NotFound."""

    uuid: str


@dataclass(frozen=True, slots=True)
class PutInventories:
    """Write inventories; with `replace_all` every other class of the provider is dropped.

    With `create` a class that exists already is a ProviderConflict (POST of one inventory);
    with `update` one that does not exist is an InvalidDescription (PUT of one).
    `generation` None: not checked. Moves the provider's generation by one.
    """

    provider: str
    inventories: tuple[Inventory, ...]
    generation: int | None
    replace_all: bool = False
    create: bool = False
    update: bool = False


@dataclass(frozen=True, slots=True)
class DeleteInventories:
    """Drop one class (NotFound if absent), or with None all. InventoryInUse."""

    provider: str
    resource_class: str | None = None


@dataclass(frozen=True, slots=True)
class PutTraits:
    """Replace a provider's traits; the generation moves only if the set changes."""

    provider: str
    traits: frozenset[str]
    generation: int | None


@dataclass(frozen=True, slots=True)
class PutAggregates:
    """Replace a provider's aggregates; `generation` None: neither checked nor moved."""

    provider: str
    aggregates: frozenset[str]
    generation: int | None


@dataclass(frozen=True, slots=True)
class CreateResourceClass:
    """Create a custom resource class. DuplicateName if it exists, unless `exist_ok`."""

    name: str
    exist_ok: bool = False
    offered: bool = False
    """Whether a tenant's server brings it in: see `DropOfferedNames`. Otherwise it stays."""


@dataclass(frozen=True, slots=True)
class RenameResourceClass:
    """Rename a custom resource class, as before microversion 1.7."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class DeleteResourceClass:
    """Delete a custom resource class. InUse while an inventory has it."""

    name: str


@dataclass(frozen=True, slots=True)
class CreateTrait:
    """Create a custom trait; no error if it exists."""

    name: str
    offered: bool = False
    """As of `CreateResourceClass`."""


@dataclass(frozen=True, slots=True)
class DropOfferedNames:
    """Delete those of these names that tenants' servers have brought in and no provider has."""

    classes: frozenset[str]
    traits: frozenset[str]


@dataclass(frozen=True, slots=True)
class DeleteTrait:
    """Delete a custom trait. InUse while a provider has it."""

    name: str
