"""Access rules as every dialect has them: a name, and whether somebody meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from moorage.usecases.ports import Caller

Access: TypeAlias = Callable[["str", "Caller", "str | None"], bool]
"""Says whether a rule is met, by its name, by whom, and the project asked about."""


@dataclass(frozen=True, slots=True)
class RulesConfig:
    """Which rules are in force."""

    file: str | None = None
    """A policy file of oslo.policy for all dialects, or None for the defaults."""
    new_defaults: bool = False
    """The reference Placement server's `enforce_new_defaults`."""
