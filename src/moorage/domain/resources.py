"""Resource classes, traits and amounts.

The rules for names are OpenStack Placement's: a custom name starts with
`CUSTOM_` and consists of upper-case letters, digits and underscores, at most
255 characters. Which names are standard is data (`os_resource_classes`,
`os_traits`) that adapters bring along.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from moorage.domain.errors import InvalidDescription

ResourceClass: TypeAlias = str
Trait: TypeAlias = str
Amounts: TypeAlias = Mapping[ResourceClass, int]
"""Resource class -> positive amount. Treated as immutable."""

NAME: Final = re.compile(r"[A-Z0-9_]{1,255}", re.ASCII)
CUSTOM_NAME: Final = re.compile(r"CUSTOM_[A-Z0-9_]+", re.ASCII)
MAX_NAME: Final = 255
MAX_AMOUNT: Final = 2**31 - 1
"""The largest amount, total or unit, as on Placement's wire."""


def is_custom_name(name: str) -> bool:
    """Whether `name` may be created as a custom resource class or trait."""
    return len(name) <= MAX_NAME and CUSTOM_NAME.fullmatch(name) is not None


def odd_names(kind: str, names: Iterable[str]) -> list[str]:
    """What to tell of names that no class or trait of Placement can have: a sentence, or none."""
    odd = sorted(name or "''" for name in names if NAME.fullmatch(name) is None)
    return [f"no name of a {kind}: {', '.join(odd)}"] if odd else []


def amounts(items: Mapping[str, int], *, path: str = "resources") -> Amounts:
    """Check and freeze a mapping of resource class to amount.

    Raises:
        InvalidDescription: a malformed class name or an amount outside `1..MAX_AMOUNT`.
    """
    for name, amount in items.items():
        if NAME.fullmatch(name) is None:
            raise InvalidDescription(f"not a resource class name: {name!r}", path=path)
        if isinstance(amount, bool) or not 1 <= amount <= MAX_AMOUNT:
            raise InvalidDescription(
                f"{name} must be between 1 and {MAX_AMOUNT}, not {amount}", path=f"{path}.{name}"
            )
    return MappingProxyType(dict(sorted(items.items())))


def total(parts: Iterable[Amounts]) -> Amounts:
    """Sum amounts class by class."""
    sums: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            sums[name] = sums.get(name, 0) + amount
    return MappingProxyType(dict(sorted(sums.items())))
