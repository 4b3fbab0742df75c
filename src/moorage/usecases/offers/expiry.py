"""The end of an offer that was not accepted: its places are freed, its copy is deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import (
    Changeset,
    DeleteEnsemble,
    DropBookings,
    DropEffects,
    PutEffect,
    PutLease,
)
from moorage.domain.decisions import DecisionState, DecisionStep
from moorage.domain.effects import TIMERS, Effect, EffectKind
from moorage.domain.errors import NotFound
from moorage.domain.leases import LeaseState, LeaseStep, lease_after
from moorage.domain.offers import OfferState
from moorage.usecases.decide.writes import step_decision
from moorage.usecases.effects.outcome import effect_finished, finish, postponed
from moorage.usecases.offers.queries import offer_lost, open_offer
from moorage.usecases.preemption.restoration import commit_with_restored_ends
from moorage.usecases.preemption.victims import displaced_for
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.changes import Change
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


def withdraw_offer(env: UseCaseEnvironment, caller: Caller, offer_id: str) -> None:
    """Withdraw an offer: its places are freed at once.

    Raises:
        NotFound: no such offer for this caller.
        WrongState: the offer was accepted.
        OfferOver: the offer is over already.
    """

    def attempt() -> None:
        now = env.store.now()
        lease, _ = open_offer(env.store, caller, offer_id, now)
        try:
            _commit(env, lease, tuple(offer_end_changes(env, lease, OfferState.WITHDRAWN, now)))
        except NotFound as gone:
            offer_lost(env.store, caller, offer_id, gone)

    retry(env, attempt)


def give_up_offer(env: UseCaseEnvironment, lease_id: str) -> None:
    """Withdraw an offer that held places while a series was created, if it is still open."""

    def attempt() -> None:
        lease = env.store.lease(lease_id)
        if lease.state is LeaseState.OFFERED:
            now = env.store.now()
            _commit(env, lease, tuple(offer_end_changes(env, lease, OfferState.WITHDRAWN, now)))

    retry(env, attempt)


def carry_out(env: UseCaseEnvironment, effect: Effect) -> str:
    """End an offer that has expired, and restore the ends of consumers displaced for it.

    Raises:
        ConcurrentUpdate, NotFound: the offer or the effect was changed concurrently.
    """
    now = env.store.now()
    lease = if_stored(env.store.lease, effect.subject)
    if lease is None:
        return finish(env.store, effect, "the offer is gone")
    if lease.offer is None or not lease.proposed:
        return finish(env.store, effect, "it was accepted")
    if lease.state is LeaseState.CLOSED:
        _commit(env, lease, (effect_finished(effect, "it is over", now),))
        return "it is over"
    if lease.offer.expires_at > now:
        env.store.commit(Changeset((postponed(effect, lease.offer.expires_at, now),)))
        return "not yet"
    # The effect is one of the offer's timers: it is stored as done, so it must not be dropped.
    changes = [
        one
        for one in offer_end_changes(env, lease, OfferState.EXPIRED, now)
        if not isinstance(one, DropEffects)
    ]
    _commit(env, lease, (*changes, effect_finished(effect, "it has expired", now)))
    return "it has expired"


def offer_end_changes(
    env: UseCaseEnvironment, lease: Lease, state: OfferState, now: Instant, *, ensemble: bool = True
) -> Iterator[Change]:
    """The changes that end an offer, without those of displaced consumers (see `_commit`).

    `ensemble` says whether the offer's ensemble is deleted too.
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
    yield from offer_deletion_changes(env, lease, DecisionStep.RELEASE, now, ensemble=ensemble)


def offer_deletion_changes(
    env: UseCaseEnvironment,
    lease: Lease,
    step: DecisionStep,
    now: Instant,
    *,
    ensemble: bool = True,
) -> Iterator[Change]:
    """The changes that free an offer's places, end its decision and delete its ensemble."""
    decision = env.store.decision(lease.decision_id)
    if decision.state is DecisionState.HELD:
        lapsed = decision.state_at(now) is not DecisionState.HELD
        yield step_decision(decision, DecisionStep.LAPSE if lapsed else step, now)
    stored = env.store.ensemble(lease.ensemble_id)
    yield DropBookings(frozenset(one.uuid for one in stored.members), decision=decision.id)
    if ensemble:
        yield DeleteEnsemble(stored.id, stored.generation)


def due_at_once(env: UseCaseEnvironment, lease: Lease, now: Instant) -> Iterator[Change]:
    """The effect by which a worker restores the ends of consumers displaced for an ended offer."""
    if displaced_for(env.store, lease.id):
        yield PutEffect(
            Effect(
                id=env.ids.uuid(),
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


def _commit(env: UseCaseEnvironment, lease: Lease, changes: tuple[Change, ...]) -> None:
    """Commit the changes, and restore the ends of consumers displaced for the offer."""

    def members(_: Snapshot) -> list[str]:
        ensemble = if_stored(env.store.ensemble, lease.ensemble_id)
        return [] if ensemble is None else [one.uuid for one in ensemble.members]

    commit_with_restored_ends(env, lease, changes, members)
