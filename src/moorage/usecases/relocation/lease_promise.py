"""What a decision for a lease promises, and the change that names its new placement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import PutLease
from moorage.usecases.decide.request import LeasePromise

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.usecases.shared.environment import Environment


@dataclass(frozen=True, slots=True)
class LeaseContinuation:
    """The lease that a decision is for, if it is for one."""

    lease: Lease | None

    @property
    def promise(self) -> LeasePromise | None:
        """What the next decision is for."""
        return None if self.lease is None else promise(self.lease)

    def also(self, fresh: Decision) -> tuple[Change, ...]:
        """The lease with its new placement."""
        if self.lease is None:
            return ()
        placed = replace(self.lease, decision_id=fresh.id, updated_at=fresh.updated_at)
        return (PutLease(placed, self.lease.generation),)


def continuation_of(env: Environment, decision: Decision) -> LeaseContinuation:
    """The lease of a decision that another one follows."""
    return LeaseContinuation(
        None if decision.lease_id is None else env.store.lease(decision.lease_id)
    )


def unchanged_promise(lease: Lease, decision: Decision) -> LeasePromise:
    """What another decision for the lease promises where only places change, or nothing does."""
    terms = lease.terms
    return LeasePromise(
        lease.id,
        terms.occupied,
        decision.expires_at,
        lease.binding,
        terms.cleaning,
        terms.lead,
        priority=terms.priority,
    )


def promise(lease: Lease, *, at: Instant | None = None) -> LeasePromise:
    """What a decision for the lease promises; at `at`, what is placed then is kept for a while.

    Unclaimed places that come after the lease has expired are kept as long as the first ones
    were, though not beyond its end.
    """
    terms = lease.terms
    expires_at = terms.expires_at
    if at is not None and terms.expiry is not None and expires_at <= at:
        expires_at = min(at + terms.expiry, terms.period.end)
    return LeasePromise(
        lease.id,
        terms.occupied,
        expires_at,
        lease.binding,
        terms.cleaning,
        terms.lead,
        priority=terms.priority,
    )
