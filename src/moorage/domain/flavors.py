"""Flavors: named member sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.resources import Amounts, Trait


@dataclass(frozen=True, slots=True)
class Flavor:
    """What one server of this size needs, in Placement's terms."""

    id: str
    name: str
    resources: Amounts
    required: tuple[frozenset[Trait], ...] = ()
    """All of these; each satisfied by any trait of its set."""
    forbidden: frozenset[Trait] = frozenset()
    extra_specs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
