"""The end of claims and holds: the server is active, the build failed, or the time has lapsed.

Bookings lapse by themselves at their instant, so expiring a decision or claim names no booking, and
whoever has taken the place since keeps it. Only the place of a claim in a lease is still booked: it
goes back to the lease. Expiring twice, or in two processes at once, changes nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import (
    Change,
    Changeset,
    DropBookings,
    ExpectEnsemble,
    PutBookings,
    PutClaim,
    PutDecision,
    PutEnsemble,
    SwapHold,
)
from moorage.domain.consumers import SERVER_TYPE, Consumer
from moorage.domain.decisions import (
    Claim,
    ClaimState,
    ClaimStep,
    Decision,
    DecisionState,
    DecisionStep,
    claim_after,
    decision_after,
)
from moorage.domain.errors import ConcurrentUpdate, HoldExpired, NotFound
from moorage.usecases.decide.loop import DecisionFlow, DecisionRequest, DecisionResult, run_decision
from moorage.usecases.decide.member_places import MemberStatus, member_places
from moorage.usecases.decide.request import DecisionHooks, KnownHosts, Proposal, RequestIdentity
from moorage.usecases.decide.writes import (
    decision_after_claims,
    end_claim,
    hold_bookings,
    member_consumer,
    options_like,
)
from moorage.usecases.preemption.eviction import transferred_warning
from moorage.usecases.relocation.lease_promise import continuation_of
from moorage.usecases.shared.access import own_claim
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.period import Instant
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store


def expire(env: UseCaseEnvironment, due: Decision | Claim) -> bool:
    """Expire what is due, read anew; False if there was nothing left to do."""
    try:
        if isinstance(due, Decision):
            return _expire_decision(env, due.id)
        return _expire_claim(env, due.id)
    except (ConcurrentUpdate, NotFound):
        # Renewed, claimed, expired or deleted meanwhile; if it is still due it comes again.
        return False


def _expire_decision(env: UseCaseEnvironment, decision_id: str) -> bool:
    decision = env.store.decision(decision_id)
    now = env.store.now()
    if decision.state is not DecisionState.HELD or decision.expires_at > now:
        return False
    state = decision_after(decision.state, DecisionStep.LAPSE)
    expired = replace(decision, state=state, updated_at=now)
    env.store.commit(Changeset((PutDecision(expired, decision.generation),)))
    return True


def _expire_claim(env: UseCaseEnvironment, claim_id: str) -> bool:
    """Note a lapsed claim, though its member or its whole ensemble is gone."""
    ensemble = _ensemble(env, env.store.claim(claim_id).ensemble_id)
    claim = env.store.claim(claim_id)
    now = env.store.now()
    if claim.state is not ClaimState.BUILDING or claim.lapses_at > now:
        return False
    decision = env.store.decision(claim.decision_id)
    expected: tuple[Change, ...] = ()
    if ensemble is not None:
        expected = (ExpectEnsemble(ensemble.id, ensemble.generation),)
        if decision.lease_id is not None and any(
            one.name == claim.member for one in ensemble.members
        ):
            expected = (*expected, return_unclaimed_place(ensemble, decision, claim, now))
    rest = decision_after_claims(env.store, decision, {claim.id}, now)
    env.store.commit(Changeset((*expected, end_claim(claim, now), *rest)))
    return True


def _ensemble(env: UseCaseEnvironment, ensemble_id: str) -> Ensemble | None:
    try:
        return env.store.ensemble(ensemble_id)
    except NotFound:
        return None


def return_unclaimed_place(
    ensemble: Ensemble, decision: Decision, claim: Claim, now: Instant
) -> Change:
    """What becomes of the place of a claim that ends without a server.

    It is freed; a lease that keeps unclaimed places still has it again.

    Args:
        ensemble: as it is stored; the member is in it.
        decision: the claim's, as it is stored.
        claim: it was building until now.
        now: the instant that all is judged at.
    """
    member = ensemble.member(claim.member)
    place = decision.places.get(claim.member)
    kept = decision.state_at(now) is DecisionState.HELD
    if decision.lease_id is None or place is None or not kept:
        return DropBookings(frozenset({member.uuid}))
    return PutBookings(member_consumer(ensemble, member), hold_bookings(member, place, decision))


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """A claim that is no longer building; `settled` where its member was placed anew."""

    claim: Claim
    ensemble: Ensemble
    settled: DecisionResult | None = None
    dry_run: bool = False


def activate(
    env: UseCaseEnvironment, caller: Caller, claim_id: str, server_id: str, *, dry_run: bool = False
) -> ClaimOutcome:
    """The claim's place becomes the server's allocation, in one transaction.

    Telling the same outcome again changes nothing.

    Raises:
        NotFound: no such claim for this caller; the server is another project's, or none.
        HoldExpired: the claim lapsed, and the place is gone.
        WrongState: it ended otherwise, or with another server.
        ConsumerConflict: the server has allocations already.
    """

    def attempt() -> ClaimOutcome:
        own_claim(env.store, caller, claim_id)
        claim, ensemble = claim_and_ensemble(env.store, claim_id)
        if claim.state is ClaimState.ACTIVE and claim.server_id == server_id:
            return ClaimOutcome(claim, ensemble)
        active = active_claim(claim, server_id, env.store.now())
        if dry_run:
            return ClaimOutcome(active, ensemble, dry_run=True)
        env.store.commit(Changeset(_activation(env.store, ensemble, active)))
        return ClaimOutcome(env.store.claim(claim.id), env.store.ensemble(ensemble.id))

    return retry(env, attempt)


def fail(
    env: UseCaseEnvironment, caller: Caller, claim_id: str, *, dry_run: bool = False
) -> ClaimOutcome:
    """The build failed: the place is freed, or its lease's again.

    Telling the same outcome again changes nothing.

    Raises:
        NotFound: no such claim for this caller.
        HoldExpired: it lapsed while this was written.
        WrongState: it ended otherwise.
    """

    def attempt() -> ClaimOutcome:
        own_claim(env.store, caller, claim_id)
        claim, ensemble = claim_and_ensemble(env.store, claim_id)
        if claim.state is ClaimState.FAILED:
            return ClaimOutcome(claim, ensemble)
        decision = env.store.decision(claim.decision_id)
        failed = _failed(claim, env.store.now())
        if dry_run:
            return ClaimOutcome(failed, ensemble, dry_run=True)
        env.store.commit(
            Changeset(
                (
                    ExpectEnsemble(ensemble.id, ensemble.generation),
                    PutClaim(failed, ClaimState.BUILDING.value, not_after=claim.lapses_at),
                    return_unclaimed_place(ensemble, decision, claim, failed.updated_at),
                    *decision_after_claims(env.store, decision, {claim.id}, failed.updated_at),
                )
            )
        )
        return ClaimOutcome(env.store.claim(claim.id), ensemble)

    return retry(env, attempt)


def fail_and_redecide(
    env: UseCaseEnvironment, caller: Caller, claim_id: str, *, dry_run: bool = False
) -> ClaimOutcome:
    """The build failed: place the member elsewhere, all others staying put.

    The new decision is held until the present one would end, for the same objective. Telling it
    again changes nothing.

    Raises:
        NotFound: no such claim for this caller.
        HoldExpired: it lapsed while a place was looked for.
        WrongState: it ended otherwise.
        Infeasible: there is no other place; the claim is still building.
    """
    return run_decision(
        env,
        lambda: _fail_and_redecide(env, caller, claim_id, dry_run=dry_run),
        dry_run=dry_run,
    )


def _fail_and_redecide(
    env: UseCaseEnvironment, caller: Caller, claim_id: str, *, dry_run: bool
) -> DecisionFlow[ClaimOutcome]:
    own_claim(env.store, caller, claim_id)
    claim, ensemble = claim_and_ensemble(env.store, claim_id)
    snapshot = env.store.snapshot()
    stand = member_places(snapshot, ensemble)
    if claim.state is ClaimState.FAILED and stand.of(claim.member) is MemberStatus.HELD:
        return ClaimOutcome(claim, ensemble)
    failed = _failed(claim, snapshot.taken_at)
    decision = env.store.decision(claim.decision_id)
    place = decision.places.get(claim.member)
    member: frozenset[MemberName] = frozenset({claim.member})
    carried = continuation_of(env, decision)
    proposal = Proposal(
        ensemble,
        ensemble.generation,
        (lambda _: member,),
        promise=carried.promise,
        known=KnownHosts(
            barred={"failed": frozenset() if place is None else frozenset({place.host})}
        ),
        allowed=DecisionHooks(
            also=lambda made: (
                PutClaim(
                    replace(failed, decision_id=made.id),
                    ClaimState.BUILDING.value,
                    not_after=claim.lapses_at,
                ),
                *carried.also(made),
            )
        ),
    )
    settled = yield DecisionRequest(
        proposal, options_like(decision), RequestIdentity(env.ids.uuid())
    )
    ended = failed if dry_run else env.store.claim(claim.id)
    return ClaimOutcome(ended, settled.ensemble, settled, dry_run)


def _failed(claim: Claim, now: Instant) -> Claim:
    return replace(claim, state=claim_after(claim.state_at(now), ClaimStep.FAIL), updated_at=now)


def claim_and_ensemble(store: Store, claim_id: str) -> tuple[Claim, Ensemble]:
    """A claim and its ensemble, the claim as it is at this generation of the ensemble or later.

    A new decision moves claims and writes the ensemble; read the other way round, the ensemble
    could be newer than the claim, and nobody would notice that the claim has moved.

    Raises:
        NotFound: one of them is gone.
    """
    ensemble = store.ensemble(store.claim(claim_id).ensemble_id)
    return store.claim(claim_id), ensemble


def active_claim(claim: Claim, server_id: str, now: Instant) -> Claim:
    """The claim once its server has the place.

    Raises:
        HoldExpired: it has lapsed.
        WrongState: it ended already.
    """
    if claim.state_at(now) is ClaimState.EXPIRED:
        raise HoldExpired("the claim has lapsed and its place is gone")
    state = claim_after(claim.state, ClaimStep.ACTIVATE)
    return replace(claim, state=state, server_id=server_id, updated_at=now)


def activation_changes(
    store: Store, ensemble: Ensemble, active: Claim, exchange: Sequence[Change]
) -> tuple[Change, ...]:
    """A claim becomes active: its hold is exchanged, its member gets the server.

    Args:
        store: where the claim's decision is.
        ensemble: as it is stored.
        active: the claim as it will be; it is building still.
        exchange: what takes the hold away and gives the server its allocations.
    """
    decision = store.decision(active.decision_id)
    members = tuple(
        replace(one, server_id=active.server_id) if one.name == active.member else one
        for one in ensemble.members
    )
    grown = replace(ensemble, members=members, updated_at=active.updated_at)
    return (
        PutClaim(active, ClaimState.BUILDING.value, not_after=active.lapses_at),
        *exchange,
        PutEnsemble(grown, ensemble.generation),
        *decision_after_claims(store, decision, {active.id}, active.updated_at),
        *(_warned(store, grown, active) if decision.preemptible else ()),
    )


def _warned(store: Store, ensemble: Ensemble, active: Claim) -> Iterator[Change]:
    """The warning of a server that takes a place with an early end for a lease."""
    member = ensemble.member(active.member)
    there = store.bookings(consumer=member.uuid)
    held = [replace(one, consumer=str(active.server_id)) for _, one in there]
    if held:
        yield from transferred_warning(store, ensemble, member, held, active.updated_at)


def _activation(store: Store, ensemble: Ensemble, active: Claim) -> tuple[Change, ...]:
    assert active.server_id is not None
    server = Consumer(
        uuid=active.server_id,
        project_id=ensemble.project_id,
        user_id=ensemble.user_id,
        type=SERVER_TYPE,
    )
    swap = SwapHold(ensemble.member(active.member).uuid, server)
    return activation_changes(store, ensemble, active, [swap])
