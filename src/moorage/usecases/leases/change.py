"""Change a lease: extend, shrink, grow, move, rename; each is one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.usecases.leases.asking import Granted, LeaseChange

if TYPE_CHECKING:
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller
    from moorage.usecases.proposal import Naming

__all__ = ["Granted", "LeaseChange", "change_lease"]


def change_lease(  # noqa: PLR0913 - a change, of what, in whose name, seen how, called what
    parts: Parts,
    caller: Caller,
    lease_id: str,
    change: LeaseChange,
    generation: int | None,
    naming: Naming,
    *,
    dry_run: bool = False,
) -> Granted:
    """Change a lease; what is not named stays."""
    raise NotImplementedError
