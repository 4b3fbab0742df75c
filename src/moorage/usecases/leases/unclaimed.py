"""A claimed place whose server never came is its lease's again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import DropBookings, PutBookings
from moorage.domain.decisions import DecisionState
from moorage.usecases.writing import hold_booking, member_consumer

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant


def unclaimed(ensemble: Ensemble, decision: Decision, claim: Claim, now: Instant) -> Change:
    """What becomes of the place of a claim that ends without a server.

    It is freed; a lease that keeps unclaimed places still has it again.

    Args:
        ensemble: as it is stored; the member is in it.
        decision: the claim's, as it is stored.
        claim: it was building until now.
        now: the instant that all is judged at.
    """
    member = ensemble.member(claim.member)
    place = decision.places.get(claim.member)
    kept = decision.state_at(now) is DecisionState.HELD
    if decision.lease_id is None or place is None or not kept:
        return DropBookings(frozenset({member.uuid}))
    return PutBookings(member_consumer(ensemble, member), hold_booking(member, place, decision))
