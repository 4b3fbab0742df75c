"""Why not: the explanation of a refusal, stored with the problem so that it can be replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutExplanation
from moorage.domain.errors import Infeasible, NotFound
from moorage.domain.explain import Explanation
from moorage.domain.period import SECOND
from moorage.engine.instance import dumps_built
from moorage.engine.whynot import explain

if TYPE_CHECKING:
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller
    from moorage.usecases.proposal import Naming


def refusal(
    parts: Parts, built: Built, explanation: Explanation, naming: Naming, *, stored: bool
) -> Infeasible:
    """The error that says why there is no placement.

    The explanation is stored with the request it answers, unless nothing is to be written:
    then the error alone carries it.
    """
    if stored:
        change = PutExplanation(
            explanation,
            built.request.project_id,
            dumps_built(built).decode(),
            request=naming.id if naming.digest else None,
            digest=naming.digest or None,
            keep=parts.limits.explanations,
        )
        parts.store.commit(Changeset((change,)))
    return _infeasible(explanation, stored=stored)


def known_refusal(parts: Parts, caller: Caller, naming: Naming) -> Infeasible | None:
    """The refusal that the same request got before, under the id its client gave."""
    if not naming.digest:
        return None
    try:
        explanation, _, _ = parts.store.refusal(
            naming.id, project_id=caller.project_id, digest=naming.digest
        )
    except NotFound:
        return None
    return _infeasible(explanation, stored=True)


def _infeasible(explanation: Explanation, *, stored: bool) -> Infeasible:
    return Infeasible(
        f"no placement meets the request ({explanation.shortly})",
        explanation=explanation,
        stored=stored,
    )


def explained(parts: Parts, built: Built, snapshot: Snapshot, *, seed: int) -> Explanation:
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
        id=parts.ids.uuid(),
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
