"""Read, decide, commit: the loop behind every joint decision.

An answer that a concurrent commit overtook is judged again on the newer snapshot, and solved
again only if it broke. Nothing is locked while thinking, until that has been in vain a few times:
then for one attempt nobody else writes (ADR-0017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.changes import PutDecision, PutEnsemble
from moorage.domain.errors import (
    Busy,
    CapacityExceeded,
    ConstraintViolated,
    InvalidDescription,
    ProviderConflict,
)
from moorage.usecases.limits import hold_within, time_limit_within
from moorage.usecases.patience import Patience
from moorage.usecases.proposal import Settled
from moorage.usecases.quotas import check_priority
from moorage.usecases.standing import MemberStatus
from moorage.usecases.thinking import Thinking

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.changes import Change, Changeset, Committed
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.usecases.joint import Ask
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Naming, Proposal
    from moorage.usecases.standing import Standing
    from moorage.usecases.thinking import Thought

TURN: Final = 4
"""Every so many attempts one is made alone, and the last one in any case."""


def unplaced_or_held(ensemble: Ensemble) -> Callable[[Standing], frozenset[MemberName]]:
    """Place every member anew that no server has or is being built for."""
    keeps = {MemberStatus.BUILDING, MemberStatus.ACTIVE}
    return lambda stand: frozenset(
        m.name for m in ensemble.members if stand.of(m.name) not in keeps
    )


def unplaced(ensemble: Ensemble) -> Callable[[Standing], frozenset[MemberName]]:
    """Place only members that stand nowhere."""
    return lambda stand: frozenset(m.name for m in ensemble.members if m.name not in stand.places)


def settle(parts: Parts, proposal: Proposal, ask: Ask, naming: Naming, *, dry_run: bool) -> Settled:
    """Decide and hold, all or nothing.

    What others commit meanwhile matters only where the answer depends on it (see `reliance`). An
    answer that is overtaken is judged anew after a pause, and looked for anew only if it broke;
    if that happens again, then away from the hosts that others are busy with, where possible.
    Every `TURN`th attempt, and the last one, is made while all others who write wait.

    Raises:
        Infeasible: no placement meets the request; the explanation is stored, unless
            this is a dry run, or nobody asked.
        InvalidDescription: `max_additional` names no role with members, or the stay has ended.
        LimitExceeded: the hold, or the project's held places.
        QuotaExceeded: the priority, or the held places.
        HoldExpired: the hold to go on with has lapsed meanwhile.
        Busy: time ran out before an answer or a proof, or no turn came to write.
        ConcurrentUpdate: the ensemble or its decision changed meanwhile.
        WrongState: the places are a lease's, and this is not that lease's affair.
    """
    _check_roles(proposal.ensemble, ask)
    _check_priority(parts, proposal, ask)
    hold = hold_within(parts.limits, ask.hold)
    time_limit = time_limit_within(parts.limits, ask.time_limit)
    thinking = Thinking(parts, proposal, ask, naming, hold, time_limit, dry_run)
    patience = Patience(parts, time_limit)
    alone = False
    while True:
        try:
            thought, done = (_alone if alone else _freely)(thinking)
        except Busy:
            # What could not be told in a moment is looked at with more time.
            if not (alone and patience.pause()):
                raise
            alone = False
            continue
        except (ProviderConflict, CapacityExceeded, ConstraintViolated) as overtaken:
            thinking.learn(overtaken)
            left = patience.pause()
            if alone and not left:
                raise Busy("the ledger moved too often while deciding") from overtaken
            alone = not left or patience.attempts % TURN == 0
            continue
        if thought is None:
            alone = False
        elif thought.decision is None:
            raise thinking.refusal(thought)
        elif dry_run:
            return Settled(
                thought.decision,
                proposal.ensemble,
                thought.sight.snapshot,
                dry_run=True,
                displaced=thought.look.every_displaced,
                preempted=thought.look.preempted,
            )
        elif thought.changeset is not None and done is not None:
            return Settled(
                *_written(thought.changeset.changes),
                parts.store.snapshot(),
                displaced=thought.look.every_displaced,
                preempted=thought.look.preempted,
                serials=done.serials,
            )


def _freely(thinking: Thinking) -> tuple[Thought | None, Committed | None]:
    """An attempt beside all others; no thought: those before it have had their turn meanwhile."""
    thought = thinking.think()
    if thought is None or thought.changeset is None:
        return thought, None
    return thought, thinking.parts.store.commit(thought.changeset)


def _alone(thinking: Thinking) -> tuple[Thought | None, Committed | None]:
    """An attempt while nobody else writes; no thought: somebody must have a turn before it."""
    thoughts: list[Thought | None] = []

    def propose() -> Changeset | None:
        thought = thinking.think(alone=True)
        thoughts.append(thought)
        return None if thought is None else thought.changeset

    done = thinking.parts.store.commit_alone(propose)
    return thoughts[-1], done


def _written(changes: Sequence[Change]) -> tuple[Decision, Ensemble]:
    """The new decision and its ensemble as they are stored now: nobody else wrote in between.

    Only the new decision is born with its changeset, and its ensemble is the only one changed.
    """
    decisions = [one for one in changes if isinstance(one, PutDecision) and one.generation is None]
    ensembles = [one for one in changes if isinstance(one, PutEnsemble)]
    return decisions[-1].stored, ensembles[-1].stored


def _check_roles(ensemble: Ensemble, ask: Ask) -> None:
    """Let `max_additional` pass when it names roles with members."""
    for name in ask.additional:
        if not any(member.name.role == name for member in ensemble.members):
            raise InvalidDescription(f"no role {name} with members", path="max_additional")


def _check_priority(parts: Parts, proposal: Proposal, ask: Ask) -> None:
    """Let the priority of a stay pass that its project may ask for, or that it has already."""
    if ask.priority and not (ask.as_before or ask.any_priority):
        check_priority(parts, proposal.ensemble.project_id, ask.priority)
