"""A route of the native API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from moorage.api.native.call import Call, Reply

if TYPE_CHECKING:
    from msgspec import Struct

    from moorage.api.native.access import Access

Handler: TypeAlias = Callable[[Call], Reply]


@dataclass(frozen=True, slots=True)
class Route:
    """A verb on a path: access rule, request and response structs, and handler."""

    method: str
    path: str
    access: Access
    rule: str
    """Its access rule; none only where anyone may."""
    handler: Handler
    summary: str
    request: type[Struct] | None = None
    response: type[Struct] | None = None
    status: int = 200
    other: tuple[tuple[int, str, type[Struct]], ...] = ()
    """Further answers when all goes well: a status, what it means, and the body."""
    query: tuple[str, ...] = ()
    """Query parameters it understands; any other is refused."""
    mutates: bool = False
    """Adds `dry_run` and the precondition header."""

    expensive: bool = False
    """Whether it may search; then only so many are worked on at once (`usecases.admission`)."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Every query parameter."""
        return (*self.query, "dry_run") if self.mutates else self.query
