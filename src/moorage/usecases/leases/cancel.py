"""Cancel a lease: end an active one early, close one that has not started."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from moorage.domain.changes import DropBookings, PutLease
from moorage.domain.decisions import DecisionState, DecisionStep
from moorage.domain.errors import InUse
from moorage.domain.leases import LeaseState, LeaseStep, Terms, lease_after
from moorage.domain.period import Period
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.writes import step_decision
from moorage.usecases.effects.lease_timers import timers_after_change
from moorage.usecases.effects.notifications import checked_lease_end
from moorage.usecases.ensembles.delete import delete_ensemble, open_leases
from moorage.usecases.leases.lifecycle import progress_of
from moorage.usecases.leases.queries import own_lease
from moorage.usecases.preemption.restoration import commit_with_restored_ends
from moorage.usecases.shared.access import check_generation, own_ensemble
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


def cancel_lease(
    env: UseCaseEnvironment,
    caller: Caller,
    lease_id: str,
    generation: int | None = None,
    *,
    closed: bool = False,
) -> Lease:
    """Cancel a lease and free its unclaimed places.

    A lease that is not active yet is closed, and servers displaced for it get later ends where
    there is room. An active lease goes to ENDING at once; the effects of its end and its cleaning
    are written in the same changeset. Its servers stay booked until the end that was promised, or
    until they are deleted. With `closed` it is closed at once, without its time of cleaning.

    Raises:
        NotFound: no such lease for this caller.
        StaleGeneration: the lease has another generation.
        WrongState: the lease has ended already.
    """

    def attempt() -> Lease:
        lease = own_lease(env.store, caller, lease_id)
        check_generation(lease, generation)
        now = env.store.now()
        if lease.state is LeaseState.ACTIVE:
            cancelled, changes = _ended(env, lease, now, closed=closed)
        else:
            cancelled, changes = _never(env, lease, now)
        every = (*changes, *timers_after_change(cancelled, env.ids, now))
        commit_with_restored_ends(env, lease, every, partial(_held_members, env, lease))
        return env.store.lease(lease_id)

    return retry(env, attempt)


def delete_leased_ensemble(
    env: UseCaseEnvironment,
    caller: Caller,
    ensemble_id: str,
    generation: int | None,
) -> None:
    """Cancel an ensemble's lease, and delete the ensemble.

    A process that is killed in between has cancelled the lease; a repeat goes on.

    Raises:
        NotFound: no such ensemble for this caller.
        StaleGeneration: the ensemble has another generation.
        InUse: the lease's places are cleaned after its end, or it is no lease yet.
    """
    ensemble = own_ensemble(env.store, caller, ensemble_id)
    check_generation(ensemble, generation)
    there = open_leases(env, ensemble)
    for one in there:
        cleaned = one.state is LeaseState.ACTIVE and one.terms.cleaning
        if cleaned or one.state in {LeaseState.ENDING, LeaseState.OFFERED}:
            why = "is cleaned after its end" if cleaned else f"is {one.state}"
            raise InUse("ensemble", ensemble.id, f"{one.called} {why}")
    for one in there:
        cancel_lease(env, caller, one.id, closed=True)
    delete_ensemble(env, caller, ensemble_id, generation)


def _never(env: UseCaseEnvironment, lease: Lease, now: Instant) -> tuple[Lease, tuple[Change, ...]]:
    """Close a lease that is not active yet; if its period has begun, that ends now."""
    store = env.store
    begun = lease.terms.period.start <= now
    terms = _over(lease.terms, now) if begun else lease.terms
    state = _unbegun(lease.state)
    # As closed it has no places, so none is missing.
    cancelled = replace(lease, terms=terms, state=state, degraded=False, missing=0, updated_at=now)
    ensemble = store.ensemble(lease.ensemble_id)
    decision = store.decision(lease.decision_id)
    changes: list[Change] = [PutLease(cancelled, lease.generation)]
    if decision.state_at(now) in {DecisionState.HELD, DecisionState.CONFIRMED}:
        changes.append(step_decision(decision, DecisionStep.RELEASE, now))
    members = frozenset(one.uuid for one in ensemble.members)
    return cancelled, (
        *changes,
        DropBookings(members, decision=decision.id),
        *checked_lease_end(cancelled, now),
    )


def _unbegun(state: LeaseState) -> LeaseState:
    """The state of a lease that is cancelled before its start.

    Raises:
        WrongState: the lease has ended already.
    """
    if state is LeaseState.STARTING:
        state = lease_after(state, LeaseStep.END)
    elif state is not LeaseState.PENDING:
        lease_after(state, LeaseStep.END)
    return lease_after(state, LeaseStep.CLOSE)


def _ended(
    env: UseCaseEnvironment, lease: Lease, now: Instant, *, closed: bool
) -> tuple[Lease, tuple[Change, ...]]:
    """End an active lease now.

    A lease that started at this very instant and has no claims has nothing to end: it is closed.
    """
    progress = progress_of(env, lease, _over(lease.terms, now))
    at_once = closed or not (now > lease.terms.period.start or progress.used)
    progress.advance_to(LeaseStep.CLOSE if at_once else LeaseStep.END)
    return progress.lease, progress.changes()


def _over(terms: Terms, now: Instant) -> Terms:
    """The terms with an end that is not in the future.

    The period keeps a length of at least one unit of time, also if the lease started at this
    instant or the clock was set back.
    """
    start, end = terms.period.start, terms.period.end
    period = Period(start, max(min(now, end), start + 1))
    early = terms.expiry is not None and terms.expiry < period.end - period.start
    return replace(terms, period=period, expiry=terms.expiry if early else None)


def _held_members(env: UseCaseEnvironment, lease: Lease, snapshot: Snapshot) -> list[str]:
    """UUIDs of the members whose places are not claimed."""
    ensemble = env.store.ensemble(lease.ensemble_id)
    member_places = locate_members(snapshot, ensemble)
    return [one.uuid for one in ensemble.members if member_places.of(one.name) is MemberStatus.HELD]
