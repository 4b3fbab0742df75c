"""Why not: the explanation of a refusal, stored with the problem so that it can be replayed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, PutExplanation
from moorage.domain.errors import Infeasible, NotFound
from moorage.domain.explain import Explanation, Stage
from moorage.domain.period import SECOND
from moorage.engine.conflicts import Core, Oracle, emptied
from moorage.engine.instance import dumps_built
from moorage.engine.relax import nearer, relaxations
from moorage.engine.whynot import explain

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.engine.whynot import WhyNot
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller
    from moorage.usecases.proposal import Naming
    from moorage.usecases.trial import Otherwise


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
    return Infeasible(refused_because(explanation), explanation=explanation, stored=stored)


def refused_because(explanation: Explanation) -> str:
    """The refusal in a sentence."""
    return f"no placement meets the request ({explanation.shortly})"


def explained(parts: Parts, built: Built, snapshot: Snapshot, *, seed: int) -> Explanation:
    """Stage, counts, minimal conflicts and verified relaxations, within the budget.

    Where not even an empty fleet would do, whoever is on this one has no part in it: then the
    conflicts and relaxations are an empty fleet's, as far as they are found within as long again.
    """
    found = explain(built, parts.solver, remaining=_budget(parts), seed=seed)
    if found.stage is Stage.STATIC:
        return explained_of_empty(parts, built, snapshot, seed=seed, helps=NOW)
    return _explanation(parts, snapshot, found)


NOW: Final = "fits now"
EMPTY: Final = "fits the fleet when empty"
"""What is known of relaxations that help an empty fleet, and not this one."""


def explained_of_empty(
    parts: Parts, built: Built, snapshot: Snapshot, *, seed: int, helps: str
) -> Explanation:
    """Why a request has no place on this fleet when nobody is on it; of stage `static`.

    Args:
        parts: the solver and the budget.
        built: the request on the fleet as it is.
        snapshot: what it was made from.
        seed: for the solver.
        helps: what is said of relaxations that fit the fleet as it is.
    """
    empty, remaining = emptied(built.request, built), _budget(parts)
    found = explain(empty, parts.solver, remaining=remaining, seed=seed)
    cores = [Core(one.elements, one.minimal) for one in found.conflicts]
    oracle = Oracle(parts.solver, remaining, seed)
    helping = [replace(one, result=helps) for one in relaxations(built, cores, oracle)]
    known = {str(one.change) for one in helping}
    others = [one for one in found.relaxations if str(one.change) not in known]
    helping += [replace(one, result=EMPTY) for one in others]
    why = _explanation(parts, snapshot, found)
    return replace(why, stage=Stage.STATIC, relaxations=tuple(helping))


UNTRIED: Final = "more may fit if leases move for it: that was not searched to the end"
"""Said where time ran out before."""

_SHARE: Final = 4
"""The part of the time for an explanation that may go into `nearest`: one in so many."""


def nearest(parts: Parts, why: Explanation, built: Built, otherwise: Otherwise) -> Explanation:
    """The explanation with relaxations for which others make room, where these ask for less.

    Args:
        parts: the budget, and the stopwatch.
        why: with what helps while everybody is where he is, and the conflicts of the problem.
        built: the problem that has no answer.
        otherwise: the same request with something else in it.
    """
    budget = parts.limits.explanation_budget / SECOND / _SHARE
    if budget <= 0 or not otherwise.helps(built.request):
        return why
    until, sure = parts.stopwatch() + budget, True

    def remaining() -> float:
        return until - parts.stopwatch()

    def granted(request: EnsembleRequest) -> bool:
        nonlocal sure
        found = otherwise.granted(request, remaining())
        sure = sure and found is not None
        return found is True

    cores = [Core(one.elements, one.minimal) for one in why.conflicts]
    known = [one for one in why.relaxations if one.result != EMPTY]
    found = nearer(built, cores, known, granted, remaining)
    named = {str(one.change) for one in found}
    others = (one for one in why.relaxations if one.result == EMPTY)
    every = (*found, *(one for one in others if str(one.change) not in named))
    if not (sure and remaining() > 0):
        return replace(why, relaxations=every, note=UNTRIED)
    return replace(why, relaxations=every, note="" if found else why.note)


def _budget(parts: Parts) -> Callable[[], float]:
    """The seconds that are left for an explanation which begins now."""
    until = parts.stopwatch() + parts.limits.explanation_budget / SECOND
    return lambda: until - parts.stopwatch()


def _explanation(parts: Parts, snapshot: Snapshot, found: WhyNot) -> Explanation:
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
