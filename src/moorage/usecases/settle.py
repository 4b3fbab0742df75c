"""Read, decide, commit: the loop behind every joint decision.

An answer that a concurrent commit overtook is judged again on the newer snapshot, and solved
again only if it broke. Nothing is locked while thinking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutDecision, PutEnsemble
from moorage.domain.errors import (
    Busy,
    CapacityExceeded,
    ConstraintViolated,
    InvalidDescription,
    ProviderConflict,
    WrongState,
)
from moorage.domain.leases import LeaseState
from moorage.usecases.deciding import Answer, bounded, decision_for
from moorage.usecases.explain import refusal
from moorage.usecases.leases.given_back import room_left
from moorage.usecases.leases.gone import endings
from moorage.usecases.leases.outrank import outranking
from moorage.usecases.limits import hold_within, time_limit_within
from moorage.usecases.looking import Looking, Sight
from moorage.usecases.patience import Patience
from moorage.usecases.proposal import Settled
from moorage.usecases.quotas import check_priority
from moorage.usecases.reasons import reasons
from moorage.usecases.reliance import reliance
from moorage.usecases.standing import MemberStatus, standing
from moorage.usecases.writing import changes_for, current_decision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.usecases.joint import Ask
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Naming, Proposal
    from moorage.usecases.standing import Standing


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

    Raises:
        Infeasible: no placement meets the request; the explanation is stored, unless
            this is a dry run, or nobody asked.
        InvalidDescription: `max_additional` names no role with members, or the stay has ended.
        LimitExceeded: the hold, or the project's held places.
        QuotaExceeded: the priority, or the held places.
        HoldExpired: the hold to go on with has lapsed meanwhile.
        Busy: time ran out, or the ledger moved too often.
        ConcurrentUpdate: the ensemble or its decision changed meanwhile.
        WrongState: the places are a lease's, and this is not that lease's affair.
    """
    _check_roles(proposal.ensemble, ask)
    _check_priority(parts, proposal, ask)
    hold = hold_within(parts.limits, ask.hold)
    time_limit = time_limit_within(parts.limits, ask.time_limit)
    looking = Looking(parts, proposal, ask, time_limit)
    patience = Patience(parts, time_limit)
    while True:
        keepers = parts.store.keepers()
        # Nobody has decided anything about an ensemble that is made only now.
        new = proposal.generation is None
        before = None if new else current_decision(parts.store, proposal.ensemble)
        _check_lease(parts, proposal, before)
        snapshot = parts.store.snapshot()
        if not dry_run and not proposal.turn(snapshot, keepers):
            continue
        stand = standing(snapshot, proposal.ensemble)
        there = tuple(one for one in keepers.ensembles if one.id not in proposal.instead_of)
        sight = Sight(snapshot, stand, there)
        look = looking.look(sight)
        if look.found is None:
            look = outranking(parts, proposal, ask, look, sight, time_limit) or look
        if look.found is None:
            stored = naming.explained or not (dry_run or proposal.unasked)
            why = reasons(parts, proposal, ask, look, sight)
            raise refusal(parts, look.built, why, naming.within or naming, stored=stored)
        answer = Answer(snapshot, stand, look.found, before, look)
        decision = decision_for(parts, proposal, ask, answer, naming, hold)
        if dry_run:
            return Settled(
                decision,
                proposal.ensemble,
                snapshot,
                dry_run=True,
                displaced=look.every_displaced,
                preempted=look.preempted,
            )
        changes = (
            *(one for gone in look.preempted for one in gone.changes(parts, decision.updated_at)),
            *(one for moved in look.moved for one in moved.changes(decision.updated_at)),
            *endings(parts.store, look.moved, decision.updated_at),
            *changes_for(parts.store, proposal, decision, answer),
            *bounded(parts, decision, answer),
            *room_left(parts, proposal, decision, answer),
        )
        giving_way = dict(look.evicted)
        for moved in look.moved:
            giving_way |= moved.relied()
        for gone in look.preempted:
            giving_way |= gone.of.relied
        beside = frozenset[str]().union(*(moved.providers() for moved in look.moved))
        relied = reliance(snapshot, look.found, stand, giving_way, beside, look.ends_by)
        try:
            done = parts.store.commit(
                Changeset(
                    changes,
                    relies_on=relied.relies_on,
                    seen=relied.seen,
                    standing=relied.standing,
                    topology_revision=snapshot.topology_revision,
                    keepers_revision=keepers.revision,
                )
            )
        except (ProviderConflict, CapacityExceeded, ConstraintViolated) as overtaken:
            looking.learn(overtaken, snapshot)
            if not patience.pause():
                raise Busy("the ledger moved too often while deciding") from overtaken
            continue
        return Settled(
            *_written(changes),
            parts.store.snapshot(),
            displaced=look.every_displaced,
            preempted=look.preempted,
            serials=done.serials,
        )


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


def _check_lease(parts: Parts, proposal: Proposal, before: Decision | None) -> None:
    """Let a proposal pass for an ensemble that has no lease, or for that very lease."""
    lease_id = None if before is None else before.lease_id
    if lease_id is None or (proposal.promise is not None and proposal.promise.lease_id == lease_id):
        return
    if parts.store.lease(lease_id).state is not LeaseState.CLOSED:
        raise WrongState(f"the places are those of lease {lease_id}: change that, or cancel it")
