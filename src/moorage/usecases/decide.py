"""Decide an ensemble: place all members that have no server, jointly, and hold the places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.errors import ConcurrentUpdate, DuplicateName, Infeasible, NotFound
from moorage.usecases.access import own_ensemble, sees
from moorage.usecases.digest import same_request
from moorage.usecases.explain import known_refusal
from moorage.usecases.patience import again
from moorage.usecases.proposal import Proposal, Settled
from moorage.usecases.settle import settle, unplaced_or_held
from moorage.usecases.waitlist.turn import turn_of_stay
from moorage.usecases.writing import current_decision

if TYPE_CHECKING:
    from moorage.usecases.joint import Ask
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller
    from moorage.usecases.proposal import Naming


def decide(
    parts: Parts,
    caller: Caller,
    ensemble_id: str,
    ask: Ask,
    naming: Naming,
    *,
    dry_run: bool = False,
) -> Settled:
    """Decide; members with a server, or a claim that is building, stay where they are.

    Places held by an earlier decision are given up for the new one in the same transaction.
    The same request under the same id gets the answer it got before: the decision, or why not.

    A claim, a renewal or a server that comes meanwhile makes it decide again.

    Raises:
        NotFound: no such ensemble for this caller.
        Infeasible, LimitExceeded, Busy: see `settle`.
        ConcurrentUpdate: somebody else decided meanwhile, and holds places now.
        DuplicateName: the id was used by another request.
    """
    if (made := _made_before(parts, caller, naming)) is not None:
        return made
    if not dry_run and (refused := known_refusal(parts, caller, naming)) is not None:
        raise refused
    first = current_decision(parts.store, own_ensemble(parts.store, caller, ensemble_id))

    def attempt() -> Settled:
        ensemble = own_ensemble(parts.store, caller, ensemble_id)
        anew = unplaced_or_held(ensemble)
        turn = turn_of_stay(parts, ensemble, ask.until)
        proposal = Proposal(
            ensemble, ensemble.generation, anew, operator=caller.operator, turn=turn
        )
        return settle(parts, proposal, ask, naming, dry_run=dry_run)

    def decided_meanwhile(_: ConcurrentUpdate) -> bool:
        ensemble = own_ensemble(parts.store, caller, ensemble_id)
        now = current_decision(parts.store, ensemble)
        return now is not None and (first is None or now.id != first.id)

    try:
        return again(parts, attempt, must_know=decided_meanwhile)
    except (ConcurrentUpdate, DuplicateName, Infeasible):
        # The same request on another connection was quicker: both get one answer.
        if naming.digest and (made := _made_before(parts, caller, naming)) is not None:
            return made
        raise


def _made_before(parts: Parts, caller: Caller, naming: Naming) -> Settled | None:
    if not naming.digest:  # an id that nobody gave, and nobody has
        return None
    try:
        known = parts.store.decision(naming.id)
    except NotFound:
        return None
    if not sees(caller, known.project_id):
        raise DuplicateName("decision", naming.id)
    same_request("decision", naming.id, stored=known.digest, given=naming.digest)
    return Settled(known, parts.store.ensemble(known.ensemble_id), parts.store.snapshot())
