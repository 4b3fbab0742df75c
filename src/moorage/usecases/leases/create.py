"""Grant a lease: its places are booked for its period, or it is refused with the reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.usecases.leases.asking import Displaced, Granted, LeaseAsk

if TYPE_CHECKING:
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller
    from moorage.usecases.proposal import Naming

__all__ = ["Displaced", "Granted", "LeaseAsk", "create_lease"]


def create_lease(
    parts: Parts, caller: Caller, asked: LeaseAsk, naming: Naming, *, dry_run: bool = False
) -> Granted:
    """Grant a lease. The same request under the same id gets the answer it got before."""
    raise NotImplementedError
