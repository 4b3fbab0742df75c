"""Judge an undeclared request: would it fit, and if not, why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.errors import Infeasible
from moorage.domain.explain import Explanation
from moorage.usecases.create_ensemble import described
from moorage.usecases.proposal import Naming, Proposal
from moorage.usecases.settle import settle, unplaced_or_held
from moorage.usecases.soundness import check_names, check_policies

if TYPE_CHECKING:
    from moorage.domain.decisions import Solve
    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.period import Instant
    from moorage.usecases.joint import Ask
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class Judged:
    """`feasible` with the solve, or another verdict with the explanation."""

    verdict: str
    computed_at: Instant
    revision: int
    solve: Solve | None = None
    explanation: Explanation | None = None


def ask_why(parts: Parts, caller: Caller, description: EnsembleDescription, ask: Ask) -> Judged:
    """Judge a request as a decision would; only an explanation is stored.

    Raises:
        InvalidDescription, UnknownName, UnknownPolicy, Contradiction: as for an ensemble.
        Busy: time ran out before an answer or a proof.
    """
    naming = Naming(parts.ids.uuid(), explained=True)
    ensemble = described(parts, caller, description, naming)
    snapshot = parts.store.snapshot()
    check_policies(snapshot.topology, ensemble)
    check_names(parts.store, caller, snapshot, ensemble)
    proposal = Proposal(ensemble, None, unplaced_or_held(ensemble), operator=caller.operator)
    try:
        settled = settle(parts, proposal, ask, naming, dry_run=True)
    except Infeasible as error:
        found = error.explanation
        assert isinstance(found, Explanation)
        return Judged(found.verdict, found.computed_at, found.revision, explanation=found)
    return Judged(
        "feasible",
        settled.snapshot.taken_at,
        settled.snapshot.revision,
        solve=settled.decision.solve,
    )
