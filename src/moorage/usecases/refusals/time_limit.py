"""Requests whose time ran out before a placement was found, or a proof that there is none.

That is told as what it is: a verdict `undecided` of stage `unknown`, not complete. It is kept as
refusals are, with the problem, but not as the answer to the request: a repetition searches again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.changes import PutExplanation
from moorage.domain.errors import Undecided
from moorage.domain.explain import Explanation, RefusedRequest, Stage
from moorage.engine.explain.refusal import UNDECIDED
from moorage.usecases.refusals.explanation import keep_explanation
from moorage.usecases.shared.instances import stored_instance

if TYPE_CHECKING:
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.request import Proposal
    from moorage.usecases.decide.search_result import SearchResult

_log = logging.getLogger(__name__)

NO_ANSWER: Final = "time ran out before an answer, or a proof that there is none"
"""Note of an undecided request's explanation, and its error."""


def undecided(
    env: DecideEnvironment,
    proposal: Proposal,
    unsolved: SearchResult | None,
) -> Undecided:
    """The error of a request whose time ran out; `unsolved` is its problem, if it was stated.

    Raises:
        Unavailable: see `keep_explanation`.
    """
    ensemble, built = proposal.ensemble, None if unsolved is None else unsolved.built
    reader = proposal.reader
    with deadline.at_least(deadline.COMMITTING):
        snapshot = env.store.snapshot()
        why = Explanation(
            id=env.ids.uuid(),
            verdict=UNDECIDED,
            stage=Stage.UNKNOWN,
            computed_at=snapshot.taken_at,
            revision=snapshot.revision,
            considered=0 if built is None else built.considered,
            rejected={} if built is None else built.rejected,
            note=NO_ANSWER,
            complete=False,
            exact=env.with_disclosure_for(operator=reader.operator).limits.disclosure.exact,
        )
        change = PutExplanation(
            why,
            ensemble.project_id,
            "" if built is None else stored_instance(built),
            keep=env.limits.explanations,
            asked=RefusedRequest(ensemble.id, ensemble.name, ensemble.user_id),
        )
        stored = keep_explanation(env, change)
    _log.info("no answer in time for ensemble %s of %s", ensemble.id, ensemble.project_id)
    return Undecided(NO_ANSWER, explanation=why, stored=stored)
