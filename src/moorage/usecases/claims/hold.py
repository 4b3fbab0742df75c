"""Renew or release a decision's hold, or confirm the decision: the third step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
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
from moorage.domain.refusal_commands import to_place, to_see_lease, to_see_places
from moorage.usecases.claims.headroom_end import headroom_end
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.reliance import preemptible_revisions
from moorage.usecases.decide.writes import member_consumer
from moorage.usecases.shared.access import check_generation
from moorage.usecases.shared.limits import too_long
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.role_access import own_decision
from moorage.usecases.shared.ticket_flavors import flavor_deletion

if TYPE_CHECKING:
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store

_CLAIMED = {MemberStatus.BUILDING, MemberStatus.ACTIVE}
_WITHOUT_PLACES = {DecisionState.EXPIRED, DecisionState.RELEASED}
_CONFIRMED = {DecisionState.CONFIRMED, DecisionState.CLOSED}


def renew(
    env: UseCaseEnvironment,
    caller: Caller,
    decision_id: str,
    until: Instant,
    generation: int | None,
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
        lambda: _renew(env, _free_decision(env, caller, decision_id, generation), until),
    )


def _renew(env: UseCaseEnvironment, decision: Decision, until: Instant) -> Decision:
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
        state=_after(decision, now, DecisionStep.RENEW),
        expires_at=until,
        renewals=decision.renewals + 1,
        updated_at=now,
    )
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
) -> Decision:
    """Free every unclaimed place of a decision, and the headroom; building claims go on.

    Raises:
        NotFound: no such decision for this caller.
        WrongState: the decision is over, or is a lease's placement.
        StaleGeneration: the decision has another generation.
    """
    return retry(
        env,
        lambda: _release(env, _free_decision(env, caller, decision_id, generation)),
    )


def _release(env: UseCaseEnvironment, decision: Decision) -> Decision:
    now = env.store.now()
    state = _after(decision, now, DecisionStep.RELEASE)
    released = replace(decision, state=state, updated_at=now)
    ensemble = env.store.ensemble(decision.ensemble_id)
    members = frozenset(member.uuid for member in ensemble.members)
    env.store.commit(
        Changeset(
            (
                PutDecision(released, decision.generation),
                DropBookings(members, decision=decision.id),
                *headroom_end(ensemble, now),
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
            f"decision {decision.id} is the placement of a lease: change or cancel that"
            f"{to_see_lease(decision.lease_id)}"
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


def _after(decision: Decision, now: Instant, step: DecisionStep) -> DecisionState:
    """The decision's state after a step.

    Raises:
        WrongState: there is no such step from its state; with what to do instead.
    """
    state = decision.state_at(now)
    try:
        return decision_after(state, step)
    except WrongState as error:
        lost = state in _WITHOUT_PLACES
        remedy = (
            to_place(decision.ensemble_id, what="its members")
            if lost
            else to_see_places(decision.ensemble_id)
        )
        raise WrongState(f"{error}{remedy}") from None


def check_held(decision: Decision, now: Instant, ensemble: str | None = None) -> None:
    """Check that the decision's hold has not lapsed; other states are left to `decision_after`.

    `ensemble` is the name for the refusal, where it is known; else it has the id.

    Raises:
        HoldExpired: the hold has lapsed.
    """
    if decision.state_at(now) is DecisionState.EXPIRED:
        remedy = to_place(
            decision.ensemble_id if ensemble is None else ensemble, what="its members"
        )
        raise HoldExpired(f"the hold has lapsed{remedy}")


def check_lease_active(store: Store, decision: Decision, now: Instant) -> None:
    """Check that the decision's lease, if it has one, is active at `now`.

    Raises:
        WrongState: the lease has not begun, or is over.
    """
    if decision.lease_id is None:
        return
    lease = store.lease(decision.lease_id)
    if not lease.claimable(now):
        raise WrongState(
            f"places of lease {lease.id} can be claimed during {lease.terms.period};"
            f" it is {lease.state}{to_see_lease(lease.id)}"
        )


@dataclass(frozen=True, slots=True)
class ConfirmResult:
    """A confirmed decision: how many members are claimed or building, and which were freed."""

    decision: Decision
    ensemble: Ensemble
    claimed: int
    building: int
    released: tuple[MemberName, ...]


def confirm(
    env: UseCaseEnvironment,
    caller: Caller,
    decision_id: str,
    generation: int | None,
) -> ConfirmResult:
    """Confirm a decision: unclaimed places are freed, claims still building go on.

    Confirming again changes nothing.

    Raises:
        NotFound: no such decision for this caller.
        HoldExpired: the hold lapsed.
        WrongState: the decision is no longer held, or its lease is not active.
        StaleGeneration: the decision has another generation.
    """

    def attempt() -> ConfirmResult:
        decision = own_decision(env.store, caller, decision_id)
        if decision.state in _CONFIRMED:
            return _told_again(env, decision)
        check_generation(decision, generation)
        return _confirm(env, decision)

    return retry(env, attempt)


def _confirm(env: UseCaseEnvironment, decision: Decision) -> ConfirmResult:
    snapshot = env.store.snapshot()
    check_held(decision, snapshot.taken_at)
    check_lease_active(env.store, decision, snapshot.taken_at)
    state = _after(decision, snapshot.taken_at, DecisionStep.CONFIRM)
    ensemble = env.store.ensemble(decision.ensemble_id)
    member_places = locate_members(snapshot, ensemble)
    freed = held_members(member_places, ensemble, decision)
    building = _building(member_places, decision)
    if not building:
        state = decision_after(state, DecisionStep.CLOSE)
    kept = {
        name: place for name, place in decision.places.items() if member_places.of(name) in _CLAIMED
    }
    confirmed = replace(
        decision, state=state, places=MappingProxyType(kept), updated_at=snapshot.taken_at
    )
    env.store.commit(
        Changeset(
            (
                PutDecision(confirmed, decision.generation, not_after=decision.expires_at),
                ExpectEnsemble(ensemble.id, ensemble.generation),
                DropBookings(frozenset(member.uuid for member in freed), decision=decision.id),
                *flavor_deletion(env, decision, ensemble, snapshot.taken_at),
            )
        )
    )
    confirmed = env.store.decision(decision.id)
    return ConfirmResult(
        decision=confirmed,
        ensemble=ensemble,
        claimed=len(kept),
        building=building,
        released=tuple(sorted(member.name for member in freed)),
    )


def _told_again(env: UseCaseEnvironment, decision: Decision) -> ConfirmResult:
    """The result of confirming a confirmed decision again: nothing changes."""
    ensemble = env.store.ensemble(decision.ensemble_id)
    member_places = locate_members(env.store.snapshot(), ensemble)
    return ConfirmResult(
        decision=decision,
        ensemble=ensemble,
        claimed=sum(member_places.of(name) in _CLAIMED for name in decision.places),
        building=_building(member_places, decision),
        released=(),
    )


def _building(member_places: MemberPlaces, decision: Decision) -> int:
    return sum(member_places.of(name) is MemberStatus.BUILDING for name in decision.places)
