"""Resource class and trait names: the standard ones and the ledger's custom ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import os_resource_classes
import os_traits

from moorage.usecases.tickets.places import is_virtual

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.engine.state.snapshot import Snapshot
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
    """Names that are no resource class, sorted. A class in use needs no read of the ledger."""
    doubtful = {name for name in names if name not in snapshot.classes} - STANDARD_CLASSES
    doubtful = {name for name in doubtful if not is_virtual(store, name)}
    if doubtful:
        doubtful -= {one.name for one in store.resource_classes()}
    return sorted(doubtful)


def unknown_traits(store: Store, snapshot: Snapshot, names: Iterable[str]) -> list[str]:
    """Names that are no trait, sorted. A trait in use needs no read of the ledger."""
    doubtful = {name for name in names if name not in snapshot.traits} - STANDARD_TRAITS
    if doubtful:
        doubtful -= {one.name for one in store.traits()}
    return sorted(doubtful)
