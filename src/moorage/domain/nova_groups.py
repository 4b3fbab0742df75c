"""Server groups as Nova itself has them, to be taken over."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NovaGroup:
    """One server group of Nova's."""

    id: str
    name: str
    project_id: str
    user_id: str
    policy: str
    max_server_per_host: int | None = None
    members: tuple[str, ...] = ()
    """UUIDs of its servers that are not deleted."""
