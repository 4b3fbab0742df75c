"""Confirm a decision: claimed places are kept, the others are freed. The third step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, DropBookings, ExpectEnsemble, PutDecision
from moorage.domain.decisions import DecisionState, DecisionStep, decision_after
from moorage.usecases.claims.claim import check_lease_active
from moorage.usecases.claims.hold import check_held, held_members
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.shared.access import check_generation, own_decision
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.ticket_flavors import flavor_deletion

if TYPE_CHECKING:
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

_CLAIMED = {MemberStatus.BUILDING, MemberStatus.ACTIVE}
_CONFIRMED = {DecisionState.CONFIRMED, DecisionState.CLOSED}


@dataclass(frozen=True, slots=True)
class ConfirmResult:
    """A confirmed decision: how many members are claimed or building, and which were freed."""

    decision: Decision
    ensemble: Ensemble
    claimed: int
    building: int
    released: tuple[MemberName, ...]
    dry_run: bool = False


def confirm(
    env: UseCaseEnvironment,
    caller: Caller,
    decision_id: str,
    generation: int | None,
    *,
    dry_run: bool = False,
) -> ConfirmResult:
    """Confirm a decision: unclaimed places are freed, claims still building go on.

    Confirming again changes nothing.

    Raises:
        NotFound: no such decision for this caller.
        HoldExpired: the hold lapsed.
        WrongState: the decision is no longer held, or its lease is not active.
        StaleGeneration: the decision has another generation.
    """

    def attempt() -> ConfirmResult:
        decision = own_decision(env.store, caller, decision_id)
        if decision.state in _CONFIRMED:
            return _told_again(env, decision)
        check_generation(decision, generation)
        return _confirm(env, decision, dry_run=dry_run)

    return retry(env, attempt)


def _confirm(env: UseCaseEnvironment, decision: Decision, *, dry_run: bool) -> ConfirmResult:
    snapshot = env.store.snapshot()
    check_held(decision, snapshot.taken_at)
    check_lease_active(env.store, decision, snapshot.taken_at)
    state = decision_after(decision.state, DecisionStep.CONFIRM)
    ensemble = env.store.ensemble(decision.ensemble_id)
    member_places = locate_members(snapshot, ensemble)
    freed = held_members(member_places, ensemble, decision)
    building = _building(member_places, decision)
    if not building:
        state = decision_after(state, DecisionStep.CLOSE)
    # The place of a failed build is neither kept nor freed here: it was freed with the claim.
    kept = {
        name: place for name, place in decision.places.items() if member_places.of(name) in _CLAIMED
    }
    confirmed = replace(
        decision, state=state, places=MappingProxyType(kept), updated_at=snapshot.taken_at
    )
    if not dry_run:
        env.store.commit(
            Changeset(
                (
                    PutDecision(confirmed, decision.generation, not_after=decision.expires_at),
                    ExpectEnsemble(ensemble.id, ensemble.generation),
                    DropBookings(frozenset(member.uuid for member in freed), decision=decision.id),
                    *flavor_deletion(env, decision, ensemble, snapshot.taken_at),
                )
            )
        )
        confirmed = env.store.decision(decision.id)
    return ConfirmResult(
        decision=confirmed,
        ensemble=ensemble,
        claimed=len(kept),
        building=building,
        released=tuple(sorted(member.name for member in freed)),
        dry_run=dry_run,
    )


def _told_again(env: UseCaseEnvironment, decision: Decision) -> ConfirmResult:
    """The result of confirming a confirmed decision again: nothing changes."""
    ensemble = env.store.ensemble(decision.ensemble_id)
    member_places = locate_members(env.store.snapshot(), ensemble)
    return ConfirmResult(
        decision=decision,
        ensemble=ensemble,
        claimed=sum(member_places.of(name) in _CLAIMED for name in decision.places),
        building=_building(member_places, decision),
        released=(),
    )


def _building(member_places: MemberPlaces, decision: Decision) -> int:
    return sum(member_places.of(name) is MemberStatus.BUILDING for name in decision.places)
