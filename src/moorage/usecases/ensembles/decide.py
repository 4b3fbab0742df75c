"""Decide an ensemble: place all members that have no server, jointly, and hold the places."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from moorage.domain.errors import ConcurrentUpdate, DuplicateName, Infeasible
from moorage.usecases.decide.loop import (
    DecisionFlow,
    DecisionRequest,
    DecisionResult,
    run_decision,
)
from moorage.usecases.decide.solution import HoldEnd
from moorage.usecases.decide.writes import current_decision
from moorage.usecases.ensembles.create import stay_proposal
from moorage.usecases.ensembles.names import reclaimed_name_condition
from moorage.usecases.refusals.explanation import answer_once
from moorage.usecases.shared.access import made_by_request, own_ensemble

if TYPE_CHECKING:
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.decide.solution import DecisionOptions
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


def decide_ensemble(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    options: DecisionOptions,
    identity: RequestIdentity,
    *,
    dry_run: bool = False,
) -> DecisionResult:
    """Decide an ensemble; members with a server or a building claim keep their places.

    Places held by an earlier decision are replaced by the new ones in the same transaction. The
    same request with the same id gets the same answer: the decision, or the refusal.

    Without `options.hold` the places are held for the default, but at least until the end of the
    present hold. A concurrent claim, renewal or new server makes it decide again.

    Raises:
        NotFound: no such ensemble for this caller.
        Infeasible, LimitExceeded, Busy: see `loop.run_decision`.
        ConcurrentUpdate: the ensemble was decided concurrently.
        NameTaken: the ensemble was released or expired, and another one took its name since.
        DuplicateName: the id was used by another request.
    """

    def answer() -> DecisionResult:
        first = current_decision(env.store, own_ensemble(env.store, caller, ensemble_id))

        def attempt() -> DecisionFlow[DecisionResult]:
            ensemble = own_ensemble(env.store, caller, ensemble_id)
            named = reclaimed_name_condition(env.store, ensemble)
            proposal = stay_proposal(
                env, caller, ensemble, ensemble.generation, options.until, named
            )
            lasting = replace(options, hold_end=HoldEnd.AT_LEAST_PRESENT)
            return (yield DecisionRequest(proposal, lasting, identity))

        def decided_meanwhile(_: ConcurrentUpdate) -> bool:
            ensemble = own_ensemble(env.store, caller, ensemble_id)
            now = current_decision(env.store, ensemble)
            return now is not None and (first is None or now.id != first.id)

        return run_decision(env, attempt, dry_run=dry_run, must_know=decided_meanwhile)

    made_before = partial(_made_before, env, caller, identity)
    races = (ConcurrentUpdate, DuplicateName, Infeasible)
    return answer_once(env, caller, identity, made_before, answer, races, dry_run=dry_run)


def _made_before(
    env: UseCaseEnvironment, caller: Caller, identity: RequestIdentity
) -> DecisionResult | None:
    known = made_by_request(caller, "decision", identity.id, identity.digest, env.store.decision)
    if known is None:
        return None
    return DecisionResult(known, env.store.ensemble(known.ensemble_id), env.store.snapshot())
