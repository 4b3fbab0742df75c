"""What a joint decision writes: the ensemble, the decision, its holds, and what it replaces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import DropBookings, PutBookings, PutClaim, PutDecision, PutEnsemble
from moorage.domain.consumers import Consumer
from moorage.domain.decisions import (
    DECISION_TABLE,
    Claim,
    ClaimState,
    DecisionStep,
    decision_after,
)
from moorage.usecases.ports import Page
from moorage.usecases.standing import MemberStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.placement import Place
    from moorage.usecases.joint import Found
    from moorage.usecases.ports import Store
    from moorage.usecases.settle import Proposal
    from moorage.usecases.standing import Standing

MEMBER_TYPE: Final = "MOORAGE_MEMBER"
"""Consumer type of a member whose place is held; Placement's wire never shows it."""

_OPEN: Final = {ClaimState.BUILDING, ClaimState.ACTIVE}


def changes_for(
    store: Store, proposal: Proposal, decision: Decision, found: Found, stand: Standing
) -> tuple[Change, ...]:
    """Everything that a decision changes, in the order it must be written."""
    return (
        PutEnsemble(_placed(proposal.ensemble, decision, stand), proposal.generation),
        *_supersede(store, decision, proposal.dropped_claims),
        PutDecision(decision, None),
        DropBookings(proposal.freed),
        *_holds(proposal.ensemble, decision, found, stand),
        *proposal.also(decision),
    )


def _placed(ensemble: Ensemble, decision: Decision, stand: Standing) -> Ensemble:
    """The ensemble as decided: a member that gets a place anew is rid of the server it had.

    That server's allocations are gone; while it is named the member would be looked for there.
    """
    members = tuple(
        replace(one, server_id=None)
        if one.name in decision.places and stand.of(one.name) is MemberStatus.UNPLACED
        else one
        for one in ensemble.members
    )
    return replace(ensemble, members=members, updated_at=decision.updated_at)


def current_decision(store: Store, ensemble: Ensemble) -> Decision | None:
    """The newest decision about the ensemble, in whatever state."""
    found = store.decisions(
        project_id=ensemble.project_id, ensemble_id=ensemble.id, page=Page(limit=1)
    )
    return found[0] if found else None


def member_consumer(ensemble: Ensemble, member: Member) -> Consumer:
    """The consumer of a member's hold."""
    return Consumer(
        uuid=member.uuid,
        project_id=ensemble.project_id,
        user_id=ensemble.user_id,
        type=MEMBER_TYPE,
    )


def hold_booking(member: Member, place: Place, decision: Decision) -> tuple[Booking, ...]:
    """The bookings that keep a member's place for its decision."""
    return tuple(
        Booking(
            consumer=member.uuid,
            provider=provider,
            amounts=amounts,
            period=decision.period,
            state=BookingState.HELD,
            lapses_at=decision.expires_at,
            decision=decision.id,
        )
        for provider, amounts in place.allocations.items()
    )


def _supersede(store: Store, decision: Decision, dropped: frozenset[str]) -> Iterator[Change]:
    """End the decision before this one; its open claims go on under the new one."""
    before = store.decisions(
        project_id=decision.project_id, ensemble_id=decision.ensemble_id, page=Page(limit=1)
    )
    for old in before:
        if (old.state, DecisionStep.SUPERSEDE) in DECISION_TABLE:
            state = decision_after(old.state, DecisionStep.SUPERSEDE)
            ended = replace(old, state=state, updated_at=decision.updated_at)
            yield PutDecision(ended, old.generation)
        for claim in store.claims(decision_id=old.id):
            if claim.id not in dropped and claim.state in _OPEN:
                yield moved(claim, decision)


def moved(claim: Claim, decision: Decision) -> PutClaim:
    """The claim under another decision of the same ensemble."""
    return PutClaim(
        replace(claim, decision_id=decision.id, updated_at=decision.updated_at), claim.state.value
    )


def _holds(
    ensemble: Ensemble, decision: Decision, found: Found, stand: Standing
) -> Iterator[Change]:
    """Hold what is placed now, and what was held before and stays."""
    fixed = found.built.request.fixed
    for member in ensemble.members:
        name = member.name
        if name in decision.places and (name not in fixed or stand.of(name) is MemberStatus.HELD):
            bookings = hold_booking(member, decision.places[name], decision)
            yield PutBookings(member_consumer(ensemble, member), bookings)
