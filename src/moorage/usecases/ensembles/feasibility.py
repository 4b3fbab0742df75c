"""Judge whether a request would fit, and explain if not; nothing is created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.errors import Infeasible
from moorage.domain.explain import Explanation
from moorage.usecases.decide.loop import decide_proposal, unplaced_or_held
from moorage.usecases.decide.request import DecisionHooks, Proposal, RefusalReader, RequestIdentity
from moorage.usecases.ensembles.create import described_ensemble

if TYPE_CHECKING:
    from moorage.domain.decisions import Solve
    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.period import Instant
    from moorage.usecases.decide.solution import DecisionOptions
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


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
        Busy: time ran out before a placement or a proof.
    """
    identity = RequestIdentity(env.ids.uuid(), explained=True)
    ensemble = described_ensemble(env, caller, description, identity)
    proposal = Proposal(
        ensemble,
        None,
        (unplaced_or_held(ensemble),),
        hooks=DecisionHooks(reader=RefusalReader(operator=caller.operator)),
    )
    try:
        settled = decide_proposal(env, proposal, options, identity, dry_run=True)
    except Infeasible as error:
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
