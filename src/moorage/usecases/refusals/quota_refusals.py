"""Explanations of requests that a quota refuses, kept as those of other refusals are."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.changes import Changeset, PutExplanation
from moorage.domain.errors import MoorageError
from moorage.domain.explain import Conflict, Element, Explanation, Fact, Stage
from moorage.domain.period import SECOND, say_duration
from moorage.domain.quotas import DURATIONS, QuotaName, remedies

if TYPE_CHECKING:
    from moorage.domain.errors import QuotaExceeded
    from moorage.domain.explain import RefusedRequest
    from moorage.usecases.ports import Caller
    from moorage.usecases.shared.environment import Environment

_log = logging.getLogger(__name__)
REFUSED: Final = "refused"
"""The verdict: whether it fits was not searched."""
ANY_PROJECT: Final = "PROJECT"
"""How a command names the project to an operator, who may have acted for another one."""


def explain_quota(
    env: Environment,
    caller: Caller,
    error: QuotaExceeded,
    asked: RefusedRequest,
    *,
    stored: bool,
) -> None:
    """Give the error of a request its explanation and remedies.

    If `stored`, the explanation is kept, and an event reports it. Where it cannot be written now,
    the refusal is answered without it.
    """
    project = ANY_PROJECT if caller.operator else caller.project_id
    error.remedies = remedies(error, project)
    why = _explanation(env, error)
    error.explanation = why
    if not stored:
        return
    change = PutExplanation(
        why, caller.project_id, instance="", keep=env.limits.explanations, asked=asked
    )
    try:
        with deadline.at_least(deadline.COMMITTING):
            env.store.commit(Changeset((change,)))
    except MoorageError as failed:
        _log.warning("the refusal of project %s is not kept: %s", caller.project_id, failed.message)
        return
    error.stored = True
    _log.info(
        "quota %s of project %s refuses: explanation %s", error.what, caller.project_id, why.id
    )


def _explanation(env: Environment, error: QuotaExceeded) -> Explanation:
    requested, limit = str(error.requested), str(error.limit)
    used = "" if QuotaName(error.what) is QuotaName.PRIORITY else f", used {error.used}"
    if error.what in DURATIONS:
        requested, limit = (say_duration(int(one) * SECOND) for one in (requested, limit))
        used = ""
    conflict = Conflict(
        elements=(Element("quota", str(error.what)),),
        needs=(f"{requested} more" if used else requested,),
        facts=(Fact(f"limit {limit}{used}", None),),
    )
    return Explanation(
        id=env.ids.uuid(),
        verdict=REFUSED,
        stage=Stage.QUOTA,
        computed_at=env.store.now(),
        revision=env.store.last_snapshot().revision,
        conflicts=(conflict,),
        note="; or ".join(error.remedies),
    )
