"""The third step: keep what was claimed, free the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, DropBookings, PutDecision
from moorage.domain.decisions import DecisionStep, decision_after
from moorage.usecases.access import own_decision
from moorage.usecases.hold import check_generation, check_held, held_of
from moorage.usecases.standing import MemberStatus, standing

if TYPE_CHECKING:
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What confirming did: members with a server or a claim, still building, and freed."""

    decision: Decision
    ensemble: Ensemble
    claimed: int
    building: int
    released: tuple[MemberName, ...]
    dry_run: bool = False


def confirm(
    parts: Parts,
    caller: Caller,
    decision_id: str,
    generation: int | None,
    *,
    dry_run: bool = False,
) -> Confirmed:
    """Confirm a decision: unclaimed places are freed, claims still building go on.

    Raises:
        NotFound: no such decision for this caller.
        HoldExpired: it lapsed before.
        WrongState: it is not held any more.
        ConcurrentUpdate: the decision has another generation.
    """
    decision = own_decision(parts.store, caller, decision_id)
    check_generation(decision, generation)
    check_held(decision, parts.store.now())
    state = decision_after(decision.state, DecisionStep.CONFIRM)
    ensemble = parts.store.ensemble(decision.ensemble_id)
    freed = held_of(parts, ensemble, decision)
    stand = standing(parts.store.snapshot(), ensemble)
    building = sum(stand.of(name) is MemberStatus.BUILDING for name in decision.places)
    if not building:
        state = decision_after(state, DecisionStep.CLOSE)
    names = {member.name for member in freed}
    confirmed = replace(
        decision,
        state=state,
        places=MappingProxyType({n: p for n, p in decision.places.items() if n not in names}),
        updated_at=parts.store.now(),
    )
    if not dry_run:
        parts.store.commit(
            Changeset(
                (
                    PutDecision(confirmed, decision.generation),
                    DropBookings(frozenset(member.uuid for member in freed)),
                )
            )
        )
        confirmed = parts.store.decision(decision.id)
    return Confirmed(
        decision=confirmed,
        ensemble=ensemble,
        claimed=len(confirmed.places),
        building=building,
        released=tuple(sorted(names)),
        dry_run=dry_run,
    )
