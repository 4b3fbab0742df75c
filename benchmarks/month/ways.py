"""Three ways to keep promises about later, told to one and the same service.

All three decide jointly, re-plan leases that have not started and never promise anything twice;
they differ only in who may use what is promised until then. So the differences in what is found
come from that alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.domain.leases import Yielding

POOL: Final = "CUSTOM_POOL"
"""The trait of hosts that are kept for leases."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a cloud deals with leases."""

    name: str
    title: str
    pool: float = 0.0
    """The share of hosts on which there are only leases, and outside of which there are none."""
    preempts: bool = False
    """Whether servers that agree are ended for a lease; else they say an end as the others do."""

    @property
    def before_start(self) -> frozenset[Yielding]:
        """Who may use a lease's capacity until it starts."""
        return frozenset(Yielding) if self.preempts else frozenset({Yielding.BOUNDED})


MOORAGE: Final = Way("moorage", "Moorage", preempts=True)
BACKFILL: Final = Way("backfill", "conservative backfilling")
POOLS: Final = Way("pools", "exclusive pools, 45 % of the hosts for leases", pool=0.45)
"""So large that it grants nearly as many leases as the others."""

WAYS: Final = {one.name: one for one in (MOORAGE, BACKFILL, POOLS)}
