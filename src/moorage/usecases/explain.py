"""Why not: the explanation of a refusal, stored with the problem so that it can be replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutExplanation
from moorage.domain.errors import Infeasible
from moorage.domain.explain import Explanation
from moorage.domain.period import SECOND
from moorage.engine.instance import dumps_built
from moorage.engine.whynot import explain

if TYPE_CHECKING:
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts


def refusal(
    parts: Parts, built: Built, snapshot: Snapshot, name: str, *, seed: int, stored: bool
) -> Infeasible:
    """The error that says why there is no placement.

    The explanation is stored under `name` unless nothing is to be written: then the error
    alone carries it.
    """
    explanation = explained(parts, built, snapshot, name, seed=seed)
    if stored:
        instance = dumps_built(built).decode()
        project = built.request.project_id
        parts.store.commit(Changeset((PutExplanation(explanation, project, instance),)))
    elements = [str(one) for conflict in explanation.conflicts for one in conflict.elements]
    because = f": {'; '.join(elements)}" if elements else ""
    return Infeasible(
        f"no placement meets the request ({explanation.stage}{because})",
        explanation=explanation,
        stored=stored,
    )


def explained(
    parts: Parts, built: Built, snapshot: Snapshot, name: str, *, seed: int
) -> Explanation:
    """Stage, counts, minimal conflicts and verified relaxations, within the budget."""
    started = parts.stopwatch()
    budget = parts.limits.explanation_budget / SECOND
    found = explain(
        built,
        parts.solver,
        remaining=lambda: budget - (parts.stopwatch() - started),
        seed=seed,
    )
    return Explanation(
        id=name,
        verdict=found.verdict,
        stage=found.stage,
        computed_at=snapshot.taken_at,
        revision=snapshot.revision,
        conflicts=found.conflicts,
        relaxations=found.relaxations,
        considered=found.considered,
        rejected=found.rejected,
        note=found.note,
    )
