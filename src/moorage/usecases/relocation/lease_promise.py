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
    """The lease of a decision, carried over to the decision that replaces it; None without one."""

    lease: Lease | None

    @property
    def promise(self) -> LeasePromise | None:
        """The promise of the next decision; None without a lease."""
        return None if self.lease is None else promise(self.lease)

    def further_changes(self, fresh: Decision) -> tuple[Change, ...]:
        """The change that gives the lease its new decision."""
        if self.lease is None:
            return ()
        placed = replace(self.lease, decision_id=fresh.id, updated_at=fresh.updated_at)
        return (PutLease(placed, self.lease.generation),)


def continuation_of(env: Environment, decision: Decision) -> LeaseContinuation:
    """The lease that the decision replacing this one must carry over."""
    return LeaseContinuation(
        None if decision.lease_id is None else env.store.lease(decision.lease_id)
    )


def unchanged_promise(lease: Lease, decision: Decision) -> LeasePromise:
    """The promise of a decision that replaces a lease's, with the same times."""
    return replace(promise(lease), expires_at=decision.expires_at)


def promise(lease: Lease, *, at: Instant | None = None) -> LeasePromise:
    """The promise of a new decision for a lease.

    With `at`, the time of the decision, new unclaimed places of a lease that has expired are held
    as long as the first ones were, but not beyond its end.
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


def placed_lease(lease: Lease, decision: Decision) -> Lease:
    """A new lease with its placement."""
    at = decision.created_at
    return replace(
        lease,
        ensemble_id=decision.ensemble_id,
        decision_id=decision.id,
        created_at=at,
        updated_at=at,
    )
