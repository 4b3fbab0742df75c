"""Carry out one due lapse: a hold whose time has come, or a claim whose server never came.

The bookings have vanished by themselves at that instant, and any commit sweeps them out; so no
booking is named here, and whoever has got the place since keeps it. Only the place of a claim in a
lease is there still: it is the lease's again. Doing it twice, or in two processes at once, changes
nothing more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, ExpectEnsemble, PutDecision
from moorage.domain.decisions import (
    Claim,
    ClaimState,
    Decision,
    DecisionState,
    DecisionStep,
    decision_after,
)
from moorage.domain.errors import ConcurrentUpdate, NotFound
from moorage.usecases.leases.unclaimed import unclaimed
from moorage.usecases.writing import ended, without_claims

if TYPE_CHECKING:
    from moorage.domain.changes import Change
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
    expired = replace(decision, state=state, updated_at=now)
    parts.store.commit(Changeset((PutDecision(expired, decision.generation),)))
    return True


def _expire_claim(parts: Parts, claim_id: str) -> bool:
    """Note a lapsed claim, though its member or its whole ensemble is gone."""
    ensemble = _ensemble(parts, parts.store.claim(claim_id).ensemble_id)
    claim = parts.store.claim(claim_id)
    now = parts.store.now()
    if claim.state is not ClaimState.BUILDING or claim.lapses_at > now:
        return False
    decision = parts.store.decision(claim.decision_id)
    expected: tuple[Change, ...] = ()
    if ensemble is not None:
        expected = (ExpectEnsemble(ensemble.id, ensemble.generation),)
        if decision.lease_id is not None and any(
            one.name == claim.member for one in ensemble.members
        ):
            expected = (*expected, unclaimed(ensemble, decision, claim, now))
    rest = without_claims(parts.store, decision, {claim.id}, now)
    parts.store.commit(Changeset((*expected, ended(claim, now), *rest)))
    return True


def _ensemble(parts: Parts, ensemble_id: str) -> Ensemble | None:
    try:
        return parts.store.ensemble(ensemble_id)
    except NotFound:
        return None
