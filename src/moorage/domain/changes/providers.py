"""Changes of Placement's resources: providers, what they have, and names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.providers import Inventory


@dataclass(frozen=True, slots=True)
class CreateProvider:
    """A new provider, generation 0. DuplicateName if uuid or name is taken."""

    uuid: str
    name: str
    parent_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateProvider:
    """Rename, and with `set_parent` move under `parent_uuid` (None: become a root)."""

    uuid: str
    name: str
    parent_uuid: str | None = None
    set_parent: bool = False


@dataclass(frozen=True, slots=True)
class DeleteProvider:
    """ProviderHasChildren, ProviderInUse, NotFound."""

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
    """DuplicateName if it exists, unless `exist_ok`."""

    name: str
    exist_ok: bool = False


@dataclass(frozen=True, slots=True)
class RenameResourceClass:
    """Before microversion 1.7."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class DeleteResourceClass:
    """InUse while an inventory has it."""

    name: str


@dataclass(frozen=True, slots=True)
class CreateTrait:
    """A custom trait; no error if it exists."""

    name: str


@dataclass(frozen=True, slots=True)
class DeleteTrait:
    """InUse while a provider has it."""

    name: str
