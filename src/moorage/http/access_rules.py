"""Access rules of all dialects: a rule's name, and whether a caller meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from moorage.usecases.ports import Caller

Access: TypeAlias = Callable[["str", "Caller", "str | None"], bool]
"""Whether a caller meets the rule of this name, for the project in question."""


@dataclass(frozen=True, slots=True)
class RulesConfig:
    """Which rules are in force."""

    file: str | None = None
    """A policy file of oslo.policy for all dialects, or None for the defaults."""
    new_defaults: bool = False
    """The reference Placement server's `enforce_new_defaults`."""
