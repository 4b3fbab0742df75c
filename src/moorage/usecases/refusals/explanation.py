"""Stores explanations of refused requests, with the problem, so that it can be replayed."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from moorage.domain import deadline
from moorage.domain.changes import Changeset, PutExplanation
from moorage.domain.deadline import TimeExpired
from moorage.domain.errors import Busy, Infeasible, NotFound, Unavailable
from moorage.domain.explain import UNFINISHED, Explanation, RefusedRequest, Stage
from moorage.domain.period import SECOND
from moorage.engine.explain.conflicts import Core, DeletionFilter, Oracle
from moorage.engine.explain.elements import on_empty_hosts
from moorage.engine.explain.refusal import (
    COUNTING,
    INFEASIBLE,
    LATE,
    RefusalExplanation,
    counted_static,
    explain,
    whole_conflict,
)
from moorage.engine.explain.relaxation_candidates import ChangeTerms
from moorage.engine.explain.relaxations import (
    FoundRelaxations,
    find_relaxations,
    fits,
    relaxations_with_room,
)
from moorage.usecases.shared.instances import stored_instance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.errors import MoorageError
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.ports import Caller
    from moorage.usecases.refusals.trial import Trial
    from moorage.usecases.shared.environment import Environment

T = TypeVar("T")

_log = logging.getLogger(__name__)


def refusal(
    env: Environment,
    built: BuiltProblem,
    explanation: Explanation,
    identity: RequestIdentity,
    *,
    ensemble: Ensemble,
    stored: bool = True,
) -> Infeasible:
    """The error of a refused request, with its explanation.

    If `stored`, the explanation is committed with the request; else only the error has it, and so
    it is where the ledger takes no writes now.

    Raises:
        Unavailable: see `keep_explanation`.
    """
    if stored:
        change = PutExplanation(
            explanation,
            built.request.project_id,
            stored_instance(built),
            request=identity.name if identity.digest else None,
            digest=identity.digest or None,
            keep=env.limits.explanations,
            asked=RefusedRequest(ensemble.id, ensemble.name, ensemble.user_id),
        )
        stored = keep_explanation(env, change)
    if stored:
        _log.info(
            "no placement for ensemble %s of project %s: stage %s, explanation %s",
            ensemble.id,
            ensemble.project_id,
            explanation.stage,
            explanation.id,
        )
    if not stored and explanation.pending_until is not None:
        # What is found later could not be read.
        explanation = replace(explanation, note=UNFINISHED, pending_until=None)
    return _infeasible(explanation, stored=stored)


def keep_explanation(env: Environment, change: PutExplanation) -> bool:
    """Store an explanation; False in a dry run, or if others have the write lock for too long.

    An answer is worth more than its record.

    Raises:
        Unavailable: the ledger cannot be written.
    """
    try:
        with deadline.at_least(deadline.COMMITTING):
            return env.store.commit(Changeset((change,))).written
    except Unavailable:
        raise
    except Busy as busy:
        _log.warning("explanation %s is not stored: %s", change.explanation.id, busy)
        return False


def answer_once(
    env: Environment,
    caller: Caller,
    identity: RequestIdentity,
    made_before: Callable[[], T | None],
    answer: Callable[[], T],
    races: tuple[type[MoorageError], ...],
) -> T:
    """The answer to a request; a repeat with the same id gets the stored answer or refusal.

    `races` are the errors of `answer` if the same request is granted on another connection
    meanwhile.

    Raises:
        Infeasible: the same request was refused before.
        MoorageError: as `made_before` and `answer`.
    """
    if (made := made_before()) is not None:
        return made
    if (refused := _known_refusal(env, caller, identity)) is not None:
        raise refused
    try:
        return answer()
    except races:
        if (made := made_before()) is not None:
            return made
        raise


def _known_refusal(
    env: Environment, caller: Caller, identity: RequestIdentity
) -> Infeasible | None:
    """The stored refusal of the same request with the id its client gave; None: there is none."""
    if not identity.digest:
        return None
    try:
        refusal, _ = env.store.refusal(
            identity.name, project_id=caller.project_id, digest=identity.digest
        )
    except NotFound:
        return None
    return _infeasible(refusal.explanation, stored=True)


def _infeasible(explanation: Explanation, *, stored: bool) -> Infeasible:
    return Infeasible(refused_because(explanation), explanation=explanation, stored=stored)


def refused_because(explanation: Explanation, *, exact: bool = False) -> str:
    """The refusal in a sentence; `exact`: with the details for operators."""
    return f"no placement meets the request ({explanation.in_words(exact=exact)})"


def explain_request(
    env: Environment,
    built: BuiltProblem,
    snapshot: Snapshot,
    *,
    seed: int,
    present: Mapping[str, int] = MappingProxyType({}),
) -> Explanation:
    """The explanation with minimal conflicts and verified relaxations, within the budget.

    A search has proved that the request has no placement. If it does not fit even an empty fleet,
    the conflicts and relaxations are those on the empty fleet, for which there is the same budget
    once more. `present` are the counts of roles that are resized.
    """
    budget = env.limits.explanation_budget / SECOND
    remaining = env.countdown(budget)
    found = replace(_untold(built), conflicts=(whole_conflict(built),))
    try:
        if budget > 0 and counted_static(built):
            found = replace(found, stage=Stage.STATIC)
        else:
            found = explain(
                built,
                env.solver,
                remaining=remaining,
                seed=seed,
                terms=ChangeTerms(env.limits.disclosure, present),
                proved=True,
                skip_stage=Stage.STATIC,
            )
    except TimeExpired:
        pass  # that all of its parts cannot hold together was proved before
    why = _explanation(env, snapshot, found)
    if found.stage is not Stage.STATIC:
        return why
    return in_time(
        why,
        lambda _: explain_static(env, built, snapshot, seed=seed, helps=NOW, present=present),
    )


def in_time(why: Explanation, step: Callable[[Explanation], Explanation]) -> Explanation:
    """The explanation after one more step; if time runs out in it, unchanged but not complete."""
    try:
        return step(why)
    except TimeExpired:
        return replace(why, note=LATE, complete=False)


def alternatives_in_time(
    why: Explanation, step: Callable[[Explanation], Explanation]
) -> Explanation:
    """As `in_time`, for alternatives: a client may wait for them no longer."""
    with deadline.alternatives() as waited_for:
        return in_time(why, step) if waited_for else replace(why, note=LATE, complete=False)


def unexplained(env: Environment, built: BuiltProblem, snapshot: Snapshot) -> Explanation:
    """An explanation without reasons, for a refusal that is not read."""
    return _explanation(env, snapshot, replace(_untold(built), note="", complete=True))


def _untold(built: BuiltProblem) -> RefusalExplanation:
    """A refusal explanation without reasons."""
    return RefusalExplanation(
        verdict=INFEASIBLE,
        stage=Stage.UNKNOWN,
        conflicts=(),
        found=FoundRelaxations(),
        considered=built.considered,
        rejected=built.rejected,
        note=LATE,
        complete=False,
    )


NOW: Final = "fits now"
EMPTY: Final = "fits the fleet when empty"
"""Result text of relaxations that help on the empty fleet, but not on the present one."""
PERHAPS: Final = "fits the fleet when empty; whether also now was not found out in time"
"""Result text of relaxations that help on the empty fleet, and perhaps on the present one."""


def explain_static(
    env: Environment,
    built: BuiltProblem,
    snapshot: Snapshot,
    *,
    seed: int,
    helps: str,
    present: Mapping[str, int] = MappingProxyType({}),
) -> Explanation:
    """The explanation, of stage `static`, of a request that does not fit even the empty fleet.

    That is proved. `built` is the problem on the present fleet; `helps` is the result text of
    relaxations that fit there. A conflict is minimal only if it is so on both fleets.
    """
    remaining = env.countdown(env.limits.explanation_budget / SECOND)
    with deadline.at_least(COUNTING):
        empty = on_empty_hosts(built.request, built)
    terms = ChangeTerms(env.limits.disclosure, present)
    found = explain(
        empty,
        env.solver,
        remaining=remaining,
        seed=seed,
        terms=terms,
        proved=True,
        stage=Stage.STATIC,
    )
    oracle = Oracle(env.solver, remaining, seed)
    here = DeletionFilter(built, oracle)
    conflicts = tuple(
        replace(one, minimal=one.minimal and here.proves_minimal(one.elements))
        for one in found.conflicts
    )
    cores = [Core(one.elements, one.minimal) for one in conflicts]

    def said(change: str, changed: EnsembleRequest) -> str:
        fitting = False if change in now.useless else fits(built, changed, oracle)
        return {True: helps, False: EMPTY, None: PERHAPS}[fitting]

    with deadline.alternatives():
        # What does not help on the empty fleet does not help on the present one.
        now = find_relaxations(built, cores, oracle, terms, found.found.useless)
        known = {str(one.change) for one in now.relaxations}
        others = [
            replace(one, result=said(str(one.change), changed))
            for one, changed in zip(found.relaxations, found.found.requests, strict=True)
            if str(one.change) not in known
        ]
    why = _explanation(env, snapshot, found)
    return replace(
        why,
        conflicts=conflicts,
        relaxations=(
            *(replace(one, result=helps) for one in now.relaxations),
            *others,
        ),
        note=found.note or ("" if oracle.complete and now.timely else LATE),
        complete=found.complete and oracle.complete and now.timely,
    )


UNTRIED: Final = "more may fit if leases move for it: that was not searched to the end"
"""Note of an explanation whose trials with relocation were cut short."""

_SHARE: Final = 4
"""`with_nearest_relaxations` may take 1/_SHARE of the time for an explanation."""


def with_nearest_relaxations(
    env: Environment,
    why: Explanation,
    built: BuiltProblem,
    otherwise: Trial,
    present: Mapping[str, int] = MappingProxyType({}),
) -> Explanation:
    """The explanation with smaller relaxations that are possible if strategies make room.

    `why` has the conflicts, and the relaxations that fit with all other bookings unchanged;
    `otherwise` tries the changed requests.
    """
    budget = env.limits.explanation_budget / SECOND / _SHARE
    if budget <= 0 or not otherwise.helps(built.request):
        return why
    left = env.countdown(budget)

    def remaining() -> float:
        return deadline.left(left())

    def granted(request: EnsembleRequest) -> bool | None:
        return otherwise.grants(request, remaining())

    cores = [Core(one.elements, one.minimal) for one in why.conflicts]
    known = [one for one in why.relaxations if one.result == NOW]
    terms = ChangeTerms(env.limits.disclosure, present)
    found = relaxations_with_room(built, cores, known, granted, remaining, terms)
    named = {str(one.change) for one in found.relaxations}
    others = (one for one in why.relaxations if one.result != NOW)
    every = (*found.relaxations, *(one for one in others if str(one.change) not in named))
    if not found.timely or remaining() <= 0:
        return replace(why, relaxations=every, note=UNTRIED, complete=False)
    return replace(why, relaxations=every, note=why.note if not found.relaxations else "")


def _explanation(env: Environment, snapshot: Snapshot, found: RefusalExplanation) -> Explanation:
    return Explanation(
        id=env.ids.uuid(),
        verdict=found.verdict,
        stage=found.stage,
        computed_at=snapshot.taken_at,
        revision=snapshot.revision,
        conflicts=found.conflicts,
        relaxations=found.relaxations,
        considered=found.considered,
        rejected=found.rejected,
        note=found.note,
        complete=found.complete,
        exact=env.limits.disclosure.exact,
    )
