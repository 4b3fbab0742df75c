"""One look at the ledger as it is, and what to commit for it: nothing is written here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset
from moorage.domain.errors import WrongState
from moorage.domain.leases import LeaseState
from moorage.domain.period import SECOND
from moorage.usecases.deciding import Answer, bounded, decision_for
from moorage.usecases.explain import refusal
from moorage.usecases.leases.given_back import room_left
from moorage.usecases.leases.gone import endings
from moorage.usecases.leases.outrank import outranking
from moorage.usecases.looking import Look, Looking, Sight
from moorage.usecases.reasons import reasons
from moorage.usecases.reliance import Reliance, reliance
from moorage.usecases.standing import standing
from moorage.usecases.writing import changes_for, current_decision

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.errors import (
        CapacityExceeded,
        ConstraintViolated,
        Infeasible,
        ProviderConflict,
    )
    from moorage.domain.period import Duration
    from moorage.usecases.joint import Ask
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Naming, Proposal

MOMENT: Final = SECOND // 5
"""How long is looked for an answer, each way, while everybody else who writes has to wait."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What came of it."""

    sight: Sight
    look: Look
    decision: Decision | None = None
    """None: no placement meets the request."""
    changeset: Changeset | None = None
    """What is to be committed; None also where nothing shall be written."""


@dataclass(eq=False)
class Thinking:
    """Thinks of answers to one request, whenever it is asked."""

    parts: Parts
    proposal: Proposal
    ask: Ask
    naming: Naming
    hold: Duration
    time_limit: Duration
    dry_run: bool

    def __post_init__(self) -> None:
        self._looking = Looking(self.parts, self.proposal, self.ask, self.time_limit)
        self._sight: Sight | None = None

    def think(self, *, alone: bool = False) -> Thought | None:
        """What to do as things are now; None: those who wait before it must have their turn first.

        With `alone` everybody is waiting for the answer: then it is looked for in a moment, and
        nobody else has a turn. Otherwise those who wait have had it when None is returned.

        Raises:
            Busy: time ran out before an answer or a proof.
            ConcurrentUpdate, QuotaExceeded, HoldExpired, WrongState: see `settle`.
        """
        parts = self._hurried() if alone else self.parts
        time_limit = MOMENT if alone else self.time_limit
        self._looking.take(time_limit)
        store, proposal = parts.store, self.proposal
        keepers = store.keepers()
        # Nobody has decided anything about an ensemble that is made only now.
        new = proposal.generation is None
        before = None if new else current_decision(store, proposal.ensemble)
        _check_lease(parts, proposal, before)
        snapshot = store.snapshot()
        if not self.dry_run and not proposal.turn(snapshot, keepers, merely=alone):
            return None
        stand = standing(snapshot, proposal.ensemble)
        there = tuple(one for one in keepers.ensembles if one.id not in proposal.instead_of)
        sight = self._sight = Sight(snapshot, stand, there)
        look = self._looking.look(sight)
        if look.found is None:
            look = outranking(parts, proposal, self.ask, look, sight, time_limit) or look
        if look.found is None:
            return Thought(sight, look)
        answer = Answer(snapshot, stand, look.found, before, look)
        decision = decision_for(parts, proposal, self.ask, answer, self.naming, self.hold)
        if self.dry_run:
            return Thought(sight, look, decision)
        relied = _relied(answer)
        changeset = Changeset(
            self._changes(decision, answer),
            relies_on=relied.relies_on,
            seen=relied.seen,
            standing=relied.standing,
            topology_revision=snapshot.topology_revision,
            keepers_revision=keepers.revision,
        )
        return Thought(sight, look, decision, changeset)

    def learn(self, overtaken: ProviderConflict | CapacityExceeded | ConstraintViolated) -> None:
        """Note what became of the last thought."""
        if self._sight is not None:
            self._looking.learn(overtaken, self._sight.snapshot)

    def refusal(self, thought: Thought) -> Infeasible:
        """Why there is no placement; stored where somebody may read it."""
        naming, look = self.naming, thought.look
        stored = naming.explained or not (self.dry_run or self.proposal.unasked)
        why = reasons(self.parts, self.proposal, self.ask, look, thought.sight)
        return refusal(self.parts, look.built, why, naming.within or naming, stored=stored)

    def _hurried(self) -> Parts:
        """With less time for what comes beside the answer."""
        return replace(self.parts, limits=replace(self.parts.limits, time_limit=MOMENT))

    def _changes(self, decision: Decision, answer: Answer) -> tuple[Change, ...]:
        parts, proposal, look = self.parts, self.proposal, answer.look
        now = decision.updated_at
        return (
            *(one for gone in look.preempted for one in gone.changes(parts, now)),
            *(one for moved in look.moved for one in moved.changes(now)),
            *endings(parts.store, look.moved, now),
            *changes_for(parts.store, proposal, decision, answer),
            *bounded(parts, decision, answer),
            *room_left(parts, proposal, decision, answer),
        )


def _relied(answer: Answer) -> Reliance:
    """What must still be so at the commit, also of those who go or move for it."""
    look = answer.look
    giving_way = dict(look.evicted)
    for moved in look.moved:
        giving_way |= moved.relied()
    for gone in look.preempted:
        giving_way |= gone.of.relied
    beside = frozenset[str]().union(*(moved.providers() for moved in look.moved))
    return reliance(answer.snapshot, answer.found, answer.stand, giving_way, beside, look.ends_by)


def _check_lease(parts: Parts, proposal: Proposal, before: Decision | None) -> None:
    """Let a proposal pass for an ensemble that has no lease, or for that very lease."""
    lease_id = None if before is None else before.lease_id
    if lease_id is None or (proposal.promise is not None and proposal.promise.lease_id == lease_id):
        return
    if parts.store.lease(lease_id).state is not LeaseState.CLOSED:
        raise WrongState(f"the places are those of lease {lease_id}: change that, or cancel it")
