"""Carry out one due lapse: a hold whose time has come, or a claim whose server never came.

The bookings have vanished by themselves at that instant; this records it and cleans up. Doing it
twice, or in two processes at once, changes nothing more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, DropBookings, PutClaim, PutDecision
from moorage.domain.decisions import (
    Claim,
    ClaimState,
    ClaimStep,
    Decision,
    DecisionState,
    DecisionStep,
    claim_after,
    decision_after,
)
from moorage.domain.errors import ConcurrentUpdate, NotFound
from moorage.usecases.claim_outcome import closing

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.usecases.parts import Parts


def expire(parts: Parts, due: Decision | Claim) -> bool:
    """Expire what is due, read anew; False if there was nothing left to do."""
    try:
        if isinstance(due, Decision):
            return _expire_decision(parts, due.id)
        return _expire_claim(parts, due.id)
    except (ConcurrentUpdate, NotFound):
        # Renewed, claimed, expired or deleted meanwhile; if it is still due it comes again.
        return False


def _expire_decision(parts: Parts, decision_id: str) -> bool:
    decision = parts.store.decision(decision_id)
    now = parts.store.now()
    if decision.state is not DecisionState.HELD or decision.expires_at > now:
        return False
    state = decision_after(decision.state, DecisionStep.LAPSE)
    parts.store.commit(
        Changeset(
            (
                PutDecision(replace(decision, state=state, updated_at=now), decision.generation),
                DropBookings(_lapsed_members(parts, decision)),
            )
        )
    )
    return True


def _expire_claim(parts: Parts, claim_id: str) -> bool:
    claim = parts.store.claim(claim_id)
    now = parts.store.now()
    if claim.state is not ClaimState.BUILDING or claim.lapses_at > now:
        return False
    state = claim_after(claim.state, ClaimStep.LAPSE)
    ensemble = _ensemble(parts, claim.ensemble_id)
    gone = frozenset() if ensemble is None else frozenset({ensemble.member(claim.member).uuid})
    parts.store.commit(
        Changeset(
            (
                PutClaim(replace(claim, state=state, updated_at=now), claim.state.value),
                DropBookings(gone),
                *closing(parts.store, claim),
            )
        )
    )
    return True


def _lapsed_members(parts: Parts, decision: Decision) -> frozenset[str]:
    """Consumers whose hold was this decision's; claimed places are left alone."""
    ensemble = _ensemble(parts, decision.ensemble_id)
    if ensemble is None:
        return frozenset()
    kept = {
        booking.consumer
        for member in ensemble.members
        for _, booking in parts.store.bookings(consumer=member.uuid)
        if booking.state is not BookingState.HELD or booking.decision != decision.id
    }
    return frozenset(member.uuid for member in ensemble.members) - kept


def _ensemble(parts: Parts, ensemble_id: str) -> Ensemble | None:
    try:
        return parts.store.ensemble(ensemble_id)
    except NotFound:
        return None
