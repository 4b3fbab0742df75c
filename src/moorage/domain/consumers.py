"""Consumers: the servers and members that resources are booked for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

NO_PROJECT: Final = "00000000-0000-0000-0000-000000000000"
"""Project and user of consumers written before microversion 1.8."""

UNKNOWN_TYPE: Final = "unknown"
"""Type of consumers written before microversion 1.38."""

SERVER_TYPE: Final = "INSTANCE"
"""The type Nova writes for its servers."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """The owner of bookings: a server, or a member of an ensemble while its place is held."""

    uuid: str
    project_id: str = NO_PROJECT
    user_id: str = NO_PROJECT
    type: str | None = None
    """None in a write leaves an existing type alone; a new consumer becomes `unknown`."""
    generation: int = 0
    migration_of: str | None = None
    """The server whose allocations it took over when Nova began to move that; see
    `usecases.ledger.server_moves`."""


class AnyGeneration(Enum):
    """The marker of a write that does not check the consumer's generation (before 1.28)."""

    ANY = "any"


ANY_GENERATION: Final = AnyGeneration.ANY
