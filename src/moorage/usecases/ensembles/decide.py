"""Decide an ensemble: place all members that have no server, jointly, and hold the places.

Or judge only whether a described ensemble would fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from moorage.domain.errors import Busy, ConcurrentUpdate, DuplicateName, Infeasible, Undecided
from moorage.domain.explain import Explanation
from moorage.usecases.decide.loop import (
    DecisionFlow,
    DecisionRequest,
    DecisionResult,
    decide_proposal,
    run_decision,
    unplaced_or_held,
)
from moorage.usecases.decide.request import Proposal, RefusalReader, RequestIdentity
from moorage.usecases.decide.solution import HoldEnd
from moorage.usecases.decide.writes import current_decision
from moorage.usecases.ensembles.consent import check_consent
from moorage.usecases.ensembles.create import described_ensemble, stay_proposal
from moorage.usecases.ensembles.names import reclaimed_name_condition
from moorage.usecases.refusals.explanation import answer_once
from moorage.usecases.shared.access import made_by_request, own_ensemble

if TYPE_CHECKING:
    from moorage.domain.decisions import Solve
    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.period import Instant
    from moorage.usecases.decide.solution import DecisionOptions
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


def decide_ensemble(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    options: DecisionOptions,
    identity: RequestIdentity,
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
        ConsentMissing: another project has not accepted a role of the ensemble as it is now.
        NameTaken: the ensemble was released or expired, and another one took its name since.
        DuplicateName: the id was used by another request.
    """

    def answer() -> DecisionResult:
        first = current_decision(env.store, own_ensemble(env.store, caller, ensemble_id))

        def attempt() -> DecisionFlow[DecisionResult]:
            ensemble = own_ensemble(env.store, caller, ensemble_id)
            check_consent(ensemble)
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

        return run_decision(env, attempt, must_know=decided_meanwhile)

    made_before = partial(_made_before, env, identity)
    races = (ConcurrentUpdate, DuplicateName, Infeasible)
    return answer_once(env, caller, identity, made_before, answer, races)


def _made_before(env: UseCaseEnvironment, identity: RequestIdentity) -> DecisionResult | None:
    known = made_by_request("decision", identity, env.store.decision)
    if known is None:
        return None
    return DecisionResult(known, env.store.ensemble(known.ensemble_id), env.store.snapshot())


@dataclass(frozen=True, slots=True)
class FeasibilityResult:
    """The verdict: `feasible` with `solve`, or another one with `explanation`."""

    verdict: str
    computed_at: Instant
    revision: int
    solve: Solve | None = None
    explanation: Explanation | None = None


def judge_feasibility(
    env: UseCaseEnvironment,
    caller: Caller,
    description: EnsembleDescription,
    options: DecisionOptions,
) -> FeasibilityResult:
    """Judge a request as a decision would; only an explanation is stored.

    Raises:
        InvalidDescription, UnknownName, UnknownPolicy, Contradiction: as for an ensemble.
        Busy: a queue is full, or the explanation could not be stored.
    """
    identity = RequestIdentity(env.ids.uuid())
    ensemble = described_ensemble(env, caller, description, identity)
    proposal = Proposal(
        ensemble,
        None,
        (unplaced_or_held(ensemble),),
        reader=RefusalReader(operator=caller.operator),
    )
    try:
        tried = env.in_dry_run(explained=True)
        settled = decide_proposal(tried, proposal, options, identity)
    except (Infeasible, Undecided) as error:
        if not error.stored:
            raise Busy("the explanation could not be stored; retry") from error
        found = error.explanation
        assert isinstance(found, Explanation)
        return FeasibilityResult(
            found.verdict, found.computed_at, found.revision, explanation=found
        )
    return FeasibilityResult(
        "feasible",
        settled.snapshot.taken_at,
        settled.snapshot.revision,
        solve=settled.decision.solve,
    )
