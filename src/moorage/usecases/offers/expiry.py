"""The end of an offer that was not accepted: places are freed, its ensemble is deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import (
    Changeset,
    DeleteEnsemble,
    DropBookings,
    DropEffects,
    PutDecision,
    PutEffect,
    PutLease,
)
from moorage.domain.decisions import DecisionState, DecisionStep, decision_after
from moorage.domain.effects import TIMERS, Effect, EffectKind
from moorage.domain.errors import CapacityExceeded, ConcurrentUpdate, NotFound, ProviderConflict
from moorage.domain.leases import LeaseState, LeaseStep, lease_after
from moorage.domain.offers import OfferState
from moorage.usecases.effects.outcome import effect_finished, finish, postponed
from moorage.usecases.offers.queries import offer_lost, open_offer
from moorage.usecases.preemption.restoration import restored_ends
from moorage.usecases.preemption.victims import displaced_for
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.changes import Change
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.usecases.collaborators import Parts
    from moorage.usecases.ports import Caller


def withdraw_offer(parts: Parts, caller: Caller, offer_id: str, *, dry_run: bool = False) -> None:
    """Give an offer up: its places are free at once.

    Raises:
        NotFound: no such offer for this caller.
        WrongState: it was accepted.
        OfferOver: it is over already.
    """

    def attempt() -> None:
        now = parts.store.now()
        lease, _ = open_offer(parts.store, caller, offer_id, now)
        if dry_run:
            return
        try:
            _commit(parts, lease, tuple(offer_end_changes(parts, lease, OfferState.WITHDRAWN, now)))
        except NotFound as gone:
            offer_lost(parts.store, caller, offer_id, gone)

    retry(parts, attempt)


def give_up_offer(parts: Parts, lease_id: str) -> None:
    """Let go of what was kept while a series was made; nothing where it is over or granted."""

    def attempt() -> None:
        lease = parts.store.lease(lease_id)
        if lease.state is LeaseState.OFFERED:
            now = parts.store.now()
            _commit(parts, lease, tuple(offer_end_changes(parts, lease, OfferState.WITHDRAWN, now)))

    retry(parts, attempt)


def carry_out(parts: Parts, effect: Effect) -> str:
    """End an offer that has expired, and give back what was to make room for one that is over.

    Raises:
        ConcurrentUpdate, NotFound: somebody else was quicker.
    """
    now = parts.store.now()
    try:
        lease = parts.store.lease(effect.subject)
    except NotFound:
        return finish(parts.store, effect, "the offer is gone")
    if lease.offer is None or not lease.proposed:
        return finish(parts.store, effect, "it was accepted")
    if lease.state is LeaseState.CLOSED:
        _commit(parts, lease, (effect_finished(effect, "it is over", now),))
        return "it is over"
    if lease.offer.expires_at > now:
        parts.store.commit(Changeset((postponed(effect, lease.offer.expires_at, now),)))
        return "not yet"
    # The effect is among the timers of the lease: it is written as done, not forgotten.
    changes = [
        one
        for one in offer_end_changes(parts, lease, OfferState.EXPIRED, now)
        if not isinstance(one, DropEffects)
    ]
    _commit(parts, lease, (*changes, effect_finished(effect, "it has expired", now)))
    return "it has expired"


def offer_end_changes(
    parts: Parts, lease: Lease, state: OfferState, now: Instant, *, ensemble: bool = True
) -> Iterator[Change]:
    """What the end of an offer changes; whoever yields to it is for `_returned`.

    Args:
        parts: where its decision and its ensemble are.
        lease: the offer.
        state: what became of it.
        now: when.
        ensemble: whether its ensemble goes with it.
    """
    assert lease.offer is not None, "only offers end so"
    closed = replace(
        lease,
        state=lease_after(lease.state, LeaseStep.CLOSE),
        offer=replace(lease.offer, state=state),
        updated_at=now,
    )
    yield PutLease(closed, lease.generation)
    yield DropEffects(lease.id, TIMERS)
    yield from offer_deletion_changes(parts, lease, DecisionStep.RELEASE, now, ensemble=ensemble)


def offer_deletion_changes(
    parts: Parts, lease: Lease, step: DecisionStep, now: Instant, *, ensemble: bool = True
) -> Iterator[Change]:
    """The end of an offer's places, and of the ensemble that had them."""
    decision = parts.store.decision(lease.decision_id)
    if decision.state is DecisionState.HELD:
        lapsed = decision.state_at(now) is not DecisionState.HELD
        state = decision_after(decision.state, DecisionStep.LAPSE if lapsed else step)
        yield PutDecision(replace(decision, state=state, updated_at=now), decision.generation)
    stored = parts.store.ensemble(lease.ensemble_id)
    yield DropBookings(frozenset(one.uuid for one in stored.members), decision=decision.id)
    if ensemble:
        yield DeleteEnsemble(stored.id, stored.generation)


def due_at_once(parts: Parts, lease: Lease, now: Instant) -> Iterator[Change]:
    """Have a worker give back what was to make room for an offer that ends in this changeset."""
    if displaced_for(parts.store, lease.id):
        yield PutEffect(
            Effect(
                id=parts.ids.uuid(),
                kind=EffectKind.EXPIRE,
                subject=lease.id,
                project_id=lease.project_id,
                due=now,
                not_before=now,
                created_at=now,
                updated_at=now,
            ),
            None,
        )


def _returned(parts: Parts, lease: Lease) -> Iterator[Change]:
    """Their former ends for those who would have ended for the offer, as far as there is room."""
    snapshot = parts.store.snapshot()
    try:
        members = parts.store.ensemble(lease.ensemble_id).members
    except NotFound:
        members = ()
    nothing = {one.uuid: () for one in members}
    yield from restored_ends(parts.store, snapshot, [lease.id], nothing, parts.limits.notice)


def _commit(parts: Parts, lease: Lease, changes: tuple[Change, ...]) -> None:
    """Write these, and give back what was to make room for the offer."""
    keepers = parts.store.keepers().revision
    back = tuple(_returned(parts, lease))
    try:
        parts.store.commit(Changeset((*changes, *back), keepers_revision=keepers if back else None))
    except (CapacityExceeded, ProviderConflict) as overtaken:
        # Where a later end was given back somebody else has come meanwhile: look again.
        raise ConcurrentUpdate(overtaken.message, subject=lease.id) from overtaken
