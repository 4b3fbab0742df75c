"""End a lease early, or never let it begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.leases import Lease
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller


def cancel_lease(
    parts: Parts,
    caller: Caller,
    lease_id: str,
    generation: int | None = None,
    *,
    dry_run: bool = False,
) -> Lease:
    """Cancel a lease: a pending one is closed at once, one that has begun ends now."""
    raise NotImplementedError
