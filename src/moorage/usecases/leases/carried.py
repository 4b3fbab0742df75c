"""A lease whose placement is decided anew for some of its members only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import PutLease
from moorage.usecases.proposal import Promise

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.usecases.parts import Parts


@dataclass(frozen=True, slots=True)
class Carried:
    """The lease that a decision is for, if it is for one."""

    lease: Lease | None

    @property
    def promise(self) -> Promise | None:
        """What the next decision is for."""
        return None if self.lease is None else promise(self.lease)

    def also(self, fresh: Decision) -> tuple[Change, ...]:
        """The lease with its new placement."""
        if self.lease is None:
            return ()
        placed = replace(self.lease, decision_id=fresh.id, updated_at=fresh.updated_at)
        return (PutLease(placed, self.lease.generation),)


def carried_on(parts: Parts, decision: Decision) -> Carried:
    """The lease of a decision that another one follows."""
    return Carried(None if decision.lease_id is None else parts.store.lease(decision.lease_id))


def as_before(lease: Lease, decision: Decision) -> Promise:
    """What another decision for the lease promises where only places change, or nothing does."""
    terms = lease.terms
    return Promise(
        lease.id,
        terms.occupied,
        decision.expires_at,
        lease.binding,
        terms.cleaning,
        terms.lead,
        priority=terms.priority,
    )


def promise(lease: Lease, *, at: Instant | None = None) -> Promise:
    """What a decision for the lease promises; at `at`, what is placed then is kept for a while.

    Unclaimed places that come after the lease has expired are kept as long as the first ones
    were, though not beyond its end.
    """
    terms = lease.terms
    expires_at = terms.expires_at
    if at is not None and terms.expiry is not None and expires_at <= at:
        expires_at = min(at + terms.expiry, terms.period.end)
    return Promise(
        lease.id,
        terms.occupied,
        expires_at,
        lease.binding,
        terms.cleaning,
        terms.lead,
        priority=terms.priority,
    )
