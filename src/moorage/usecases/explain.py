"""Why not: refusals with their explanation stored, and questions about undeclared requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutExplanation
from moorage.domain.errors import Infeasible
from moorage.domain.explain import Explanation, Stage

if TYPE_CHECKING:
    from moorage.engine.build import Built
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller


def refusal(parts: Parts, caller: Caller, built: Built, name: str, *, seed: int) -> Infeasible:
    """The error that says why there is no placement; its explanation is stored under `name`."""
    explanation = Explanation(
        id=name,
        verdict="infeasible",
        stage=Stage.POLICY,
        computed_at=built.request.period.start,
        revision=0,
        considered=built.considered,
        rejected=built.rejected,
    )
    parts.store.commit(Changeset((PutExplanation(explanation, caller.project_id, "{}"),)))
    return Infeasible(f"no placement meets the request (seed {seed})", explanation=explanation)
