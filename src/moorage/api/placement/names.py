"""Which resource classes and traits exist: the standard names, and what the ledger has beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import os_resource_classes
import os_traits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.ports import Store

STANDARD_CLASSES: Final = frozenset(os_resource_classes.STANDARDS)
STANDARD_TRAITS: Final = frozenset(os_traits.get_traits())

_CLASS_PLACES: Final = {name: place for place, name in enumerate(os_resource_classes.STANDARDS)}


def class_order(name: str) -> tuple[int, str]:
    """Sorts classes: standard ones in their fixed order, then custom ones by name."""
    return _CLASS_PLACES.get(name, len(_CLASS_PLACES)), name


def trait_order(name: str) -> tuple[bool, str]:
    """Sorts traits: standard ones by name, then custom ones by name."""
    return name not in STANDARD_TRAITS, name


def unknown_classes(store: Store, snapshot: Snapshot, names: Iterable[str]) -> list[str]:
    """Names that are no resource class, sorted. What a provider has needs no look at the ledger."""
    doubtful = {name for name in names if name not in snapshot.classes} - STANDARD_CLASSES
    if doubtful:
        doubtful -= {one.name for one in store.resource_classes()}
    return sorted(doubtful)


def unknown_traits(store: Store, snapshot: Snapshot, names: Iterable[str]) -> list[str]:
    """Names that are no trait, sorted. What a provider carries needs no look at the ledger."""
    doubtful = {name for name in names if name not in snapshot.traits} - STANDARD_TRAITS
    if doubtful:
        doubtful -= {one.name for one in store.traits()}
    return sorted(doubtful)
