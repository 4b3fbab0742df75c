"""Renew or release a decision's hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import (
    Change,
    Changeset,
    DropBookings,
    ExpectEnsemble,
    PutBookings,
    PutDecision,
)
from moorage.domain.decisions import DecisionState, DecisionStep, decision_after
from moorage.domain.errors import HoldExpired, LimitExceeded, WrongState
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.reliance import preemptible_revisions
from moorage.usecases.decide.writes import member_consumer
from moorage.usecases.shared.access import check_generation, own_decision
from moorage.usecases.shared.limits import too_long
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.ticket_flavors import flavor_deletion

if TYPE_CHECKING:
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.period import Instant
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


def renew(
    env: UseCaseEnvironment,
    caller: Caller,
    decision_id: str,
    until: Instant,
    generation: int | None,
    *,
    dry_run: bool = False,
) -> Decision:
    """Extend or shorten a decision's hold: it ends at `until`.

    Raises:
        NotFound: no such decision for this caller.
        HoldExpired: the hold lapsed already.
        WrongState: the decision is no longer held, or is a lease's placement.
        LimitExceeded: `until` is past or too far ahead, or the hold was renewed too often.
        StaleGeneration: the decision has another generation.
    """
    return retry(
        env,
        lambda: _renew(
            env, _free_decision(env, caller, decision_id, generation), until, dry_run=dry_run
        ),
    )


def _renew(
    env: UseCaseEnvironment, decision: Decision, until: Instant, *, dry_run: bool
) -> Decision:
    snapshot, limits = env.store.snapshot(), env.limits
    now = snapshot.taken_at
    check_held(decision, now)
    if not now < until <= now + limits.longest_hold:
        raise too_long(
            "hold", "longest_hold", limit=limits.longest_hold, requested=max(until - now, 0)
        )
    if decision.renewals >= limits.renewals:
        raise LimitExceeded("renewals", limit=limits.renewals, used=decision.renewals, requested=1)
    renewed = replace(
        decision,
        state=decision_after(decision.state, DecisionStep.RENEW),
        expires_at=until,
        renewals=decision.renewals + 1,
        updated_at=now,
    )
    if dry_run:
        return renewed
    ensemble = env.store.ensemble(decision.ensemble_id)
    changes: list[Change] = [
        PutDecision(renewed, decision.generation, not_after=decision.expires_at),
        ExpectEnsemble(ensemble.id, ensemble.generation),
    ]
    member_places = locate_members(snapshot, ensemble)
    ends: dict[str, int] = {}
    for member in held_members(member_places, ensemble, decision):
        bookings = tuple(
            replace(one, lapses_at=until) for one in member_places.bookings[member.name]
        )
        changes.append(PutBookings(member_consumer(ensemble, member), bookings))
        ends |= preemptible_revisions(snapshot, bookings)
    env.store.commit(Changeset(tuple(changes), relies_on=ends))
    return env.store.decision(decision.id)


def release(
    env: UseCaseEnvironment,
    caller: Caller,
    decision_id: str,
    generation: int | None,
    *,
    dry_run: bool = False,
) -> Decision:
    """Free every unclaimed place of a decision; building claims go on.

    Raises:
        NotFound: no such decision for this caller.
        WrongState: the decision is over, or is a lease's placement.
        StaleGeneration: the decision has another generation.
    """
    return retry(
        env,
        lambda: _release(
            env, _free_decision(env, caller, decision_id, generation), dry_run=dry_run
        ),
    )


def _release(env: UseCaseEnvironment, decision: Decision, *, dry_run: bool) -> Decision:
    now = env.store.now()
    state = decision_after(decision.state_at(now), DecisionStep.RELEASE)
    released = replace(decision, state=state, updated_at=now)
    if dry_run:
        return released
    ensemble = env.store.ensemble(decision.ensemble_id)
    members = frozenset(member.uuid for member in ensemble.members)
    env.store.commit(
        Changeset(
            (
                PutDecision(released, decision.generation),
                DropBookings(members, decision=decision.id),
                *flavor_deletion(env, decision, ensemble, now),
            )
        )
    )
    return env.store.decision(decision.id)


def _free_decision(
    env: UseCaseEnvironment, caller: Caller, decision_id: str, generation: int | None
) -> Decision:
    """The caller's decision with this generation, if it is no lease's placement."""
    decision = own_decision(env.store, caller, decision_id)
    check_generation(decision, generation)
    if decision.lease_id is not None:
        raise WrongState(
            f"decision {decision.id} is the placement of lease {decision.lease_id}:"
            " change or cancel the lease"
        )
    return decision


def held_members(
    member_places: MemberPlaces, ensemble: Ensemble, decision: Decision
) -> tuple[Member, ...]:
    """Members whose place is held by this decision and not claimed."""
    return tuple(
        member
        for member in ensemble.members
        if member_places.of(member.name) is MemberStatus.HELD
        and any(booking.decision == decision.id for booking in member_places.bookings[member.name])
    )


def check_held(decision: Decision, now: Instant) -> None:
    """Check that the decision's hold has not lapsed; other states are left to `decision_after`.

    Raises:
        HoldExpired: the hold has lapsed.
    """
    if decision.state_at(now) is DecisionState.EXPIRED:
        raise HoldExpired("the hold has lapsed; decide again")
