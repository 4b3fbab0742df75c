"""Names of the standard resource classes and traits, and the order in which all are shown."""

from __future__ import annotations

from typing import Final

import os_resource_classes
import os_traits

STANDARD_CLASSES: Final = frozenset(os_resource_classes.STANDARDS)
STANDARD_TRAITS: Final = frozenset(os_traits.get_traits())

_CLASS_PLACES: Final = {name: place for place, name in enumerate(os_resource_classes.STANDARDS)}


def class_order(name: str) -> tuple[int, str]:
    """Sorts classes: standard ones in their fixed order, then custom ones by name."""
    return _CLASS_PLACES.get(name, len(_CLASS_PLACES)), name


def trait_order(name: str) -> tuple[bool, str]:
    """Sorts traits: standard ones by name, then custom ones by name."""
    return name not in STANDARD_TRAITS, name
