"""Refusing what can never be, when it is described and not at the n-th boot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.period import FOREVER, SECOND, Period
from moorage.domain.requests import Objective
from moorage.engine.build import build
from moorage.engine.conflicts import Oracle, emptied
from moorage.usecases.explain import NOW, explained_of_empty, refusal
from moorage.usecases.joint import request_for
from moorage.usecases.standing import standing

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Naming


def refuse_the_impossible(
    parts: Parts, ensemble: Ensemble, naming: Naming, *, dry_run: bool
) -> None:
    """Let an ensemble pass unless it is proved that this fleet could not hold it when empty.

    Raises:
        Infeasible: it is proved; the explanation's stage is `static`.
    """
    if not ensemble.members:
        return
    snapshot = parts.store.snapshot()
    period = Period(snapshot.taken_at, FOREVER)
    everyone = frozenset(member.name for member in ensemble.members)
    stand = standing(snapshot, ensemble)
    built = build(request_for(ensemble, stand, everyone, period, Objective.SPREAD), snapshot)
    budget = parts.limits.explanation_budget / SECOND
    oracle = Oracle(parts.solver, lambda: budget)
    empty = emptied(built.request, built)
    if oracle.feasible(empty.problem) is False:
        why = explained_of_empty(parts, built, snapshot, seed=0, helps=NOW)
        raise refusal(parts, empty, why, naming, stored=not dry_run)
