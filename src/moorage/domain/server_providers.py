"""Servers as providers: whose they are, and which projects may place slices on them (ADR-0037).

In the ledger a server provider is a root provider with the server's UUID in `offered_by`. Its
inventories and traits are the provider's, and where it is follows from the server's allocations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.domain.period import Instant

OPERATORS: Final = "operators"
"""What a role says to accept servers that an operator offers, whosever they are."""


@dataclass(frozen=True, slots=True)
class ServerProvider:
    """What a server's owner offers of it to others."""

    id: str
    """The provider's UUID."""
    server_id: str
    project_id: str
    """The server's project."""
    shared_with: frozenset[str] | None = frozenset()
    """Other projects that may place slices on it; None: every project."""
    by_operator: bool = False
    """Whether an operator has said last what it offers."""
    host: str | None = None
    """The UUID of the host on which its server was last seen; who asks where it is must not read
    this, but the server's allocations."""
    suspended_at: Instant | None = None
    """Since when its server has no place; None: it has one."""
    created_at: Instant = 0
    updated_at: Instant = 0
    generation: int = 0

    @property
    def open_to(self) -> frozenset[str] | None:
        """Projects that may place slices on it; None: every project."""
        return None if self.shared_with is None else self.shared_with | {self.project_id}

    def usable_by(self, project_id: str) -> bool:
        """Whether a project may place slices on it."""
        return self.open_to is None or project_id in self.open_to

    def names(self, project_id: str) -> bool:
        """Whether its owner knows the project: it is its own, or one it is shared with by id."""
        return project_id == self.project_id or project_id in (self.shared_with or ())


def provider_name(server_id: str) -> str:
    """The name of a server's provider in the ledger."""
    return f"server:{server_id}"
