"""The end of claims and holds: the server is active, the build failed, or the time has lapsed.

Bookings lapse without any action, so expiring a decision or claim writes no booking, and a consumer
that has booked the place since keeps it. Only the place of a lapsed claim in a lease is booked
again, for the lease. Expiring twice, or in two processes at once, changes nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import (
    Change,
    Changeset,
    DeleteAllocations,
    DropBookings,
    ExpectEnsemble,
    PutBookings,
    PutClaim,
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
)
from moorage.domain.ensembles import OF_NOVA
from moorage.domain.errors import (
    ConcurrentUpdate,
    ConsumerConflict,
    DuplicateName,
    HoldExpired,
    NotFound,
    WrongState,
)
from moorage.domain.refusal_commands import to_add_server, to_place, to_see_claim
from moorage.usecases.claims.headroom_end import end_beside_no_place
from moorage.usecases.claims.place_returns import commit_with_returns
from moorage.usecases.decide.loop import DecisionFlow, DecisionRequest, DecisionResult, run_decision
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.request import (
    ForcedEnd,
    KnownHosts,
    Proposal,
    RequestIdentity,
)
from moorage.usecases.decide.writes import (
    decision_after_claims,
    end_claim,
    hold_bookings,
    member_consumer,
    options_like,
    step_decision,
    with_server,
)
from moorage.usecases.preemption.eviction import transferred_warning
from moorage.usecases.relocation.lease_promise import continuation_of
from moorage.usecases.shared.access import own_claim
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.role_access import check_unshared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store
    from moorage.usecases.shared.access import ClaimAccess


def expire(env: UseCaseEnvironment, due: Decision | Claim) -> bool:
    """Expire a decision or claim that is due, after reading it again; False if it is not due."""
    try:
        if isinstance(due, Decision):
            return _expire_decision(env, due.id)
        return _expire_claim(env, due.id)
    except (ConcurrentUpdate, NotFound):
        # Renewed, claimed, expired or deleted meanwhile; if still due, it is read again later.
        return False


def _expire_decision(env: UseCaseEnvironment, decision_id: str) -> bool:
    """Expire a decision; its ensemble's headroom ends too, unless a member has a place still."""
    decision = env.store.decision(decision_id)
    now = env.store.now()
    if decision.state is not DecisionState.HELD or decision.expires_at > now:
        return False
    ensemble = if_stored(env.store.ensemble, decision.ensemble_id)
    ended = () if ensemble is None else end_beside_no_place(env.store, ensemble, now)
    env.store.commit(Changeset((step_decision(decision, DecisionStep.LAPSE, now), *ended)))
    return True


def _expire_claim(env: UseCaseEnvironment, claim_id: str) -> bool:
    """Expire a lapsed claim, even if its member or its whole ensemble is deleted."""
    ensemble = if_stored(env.store.ensemble, env.store.claim(claim_id).ensemble_id)
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
            returned = return_unclaimed_place(env.store, ensemble, decision, claim, now)
            expected = (*expected, returned)
        if decision.state_at(now) is not DecisionState.HELD:
            ended = end_beside_no_place(env.store, ensemble, now, claim.member)
            expected = (*expected, *ended)
    rest = decision_after_claims(env.store, decision, {claim.id}, now)
    env.store.commit(Changeset((*expected, end_claim(claim, now), *rest)))
    return True


def return_unclaimed_place(
    store: Store, ensemble: Ensemble, decision: Decision, claim: Claim, now: Instant
) -> Change:
    """The change to the bookings of a claim that ends without a server.

    A decision that still holds its unclaimed places gets the place back, until the early end that
    the claim had of it; otherwise it is freed.

    The claim is building until `now`, the instant at which the decision's state is judged.
    """
    member = ensemble.member(claim.member)
    place = decision.places.get(claim.member)
    claimed = (ForcedEnd.of(one) for _, one in store.bookings(consumer=member.uuid))
    ending = next((one for one in claimed if one is not None), None)
    over = ending is not None and ending.end <= now
    if place is None or over or decision.state_at(now) is not DecisionState.HELD:
        return DropBookings(frozenset({member.uuid}))
    bookings = hold_bookings(member, place, decision, ending=ending)
    return PutBookings(member_consumer(ensemble, member), bookings)


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """A claim that is no longer building; `settled` is the new decision, if there is one."""

    claim: Claim
    settled: DecisionResult | None = None


def activate(
    env: UseCaseEnvironment,
    caller: Caller,
    claim_id: str,
    server_id: str,
    *,
    access: ClaimAccess = own_claim,
) -> ClaimOutcome:
    """Turn the claim's place into the server's allocations, in one transaction.

    Reporting the same outcome again changes nothing.

    Raises:
        NotFound: no such claim for this caller; or the consumer `server_id` is of another project
            or no server.
        HoldExpired: the claim lapsed, and its place with it.
        WrongState: the claim ended with another outcome, or with another server.
        DuplicateName: another consumer has this UUID: it has allocations, or is a member elsewhere.
    """

    def attempt() -> ClaimOutcome:
        access(env.store, caller, claim_id)
        claim, ensemble = claim_and_ensemble(env.store, claim_id)
        if claim.state is ClaimState.ACTIVE and claim.server_id == server_id:
            return ClaimOutcome(claim)
        active = active_claim(claim, ensemble, server_id, env.store.now())
        try:
            env.store.commit(Changeset(_activation(env.store, ensemble, active)))
        except (ConsumerConflict, DuplicateName):
            raise _of_another(ensemble, active, server_id) from None
        return ClaimOutcome(env.store.claim(claim.id))

    return retry(env, attempt)


def _of_another(ensemble: Ensemble, claim: Claim, uuid: str) -> DuplicateName:
    """The error of a UUID that another consumer has; the owner of a slice's server may see it."""
    own = f"the {claim.kind} itself"
    if claim.kind in OF_NOVA:
        join = to_add_server(ensemble.name, claim.member.role, uuid)
        own = f"the server built for {claim.member}{join}"
    message = f"UUID {uuid} is another consumer's already; report that of {own}"
    return DuplicateName("consumer", uuid, message=message)


def end(
    env: UseCaseEnvironment,
    caller: Caller,
    claim_id: str,
    *,
    access: ClaimAccess = own_claim,
) -> ClaimOutcome:
    """Record that a slice, volume or port is gone: its allocations are deleted.

    The place returns to its lease, or to a decision that is still held, as that of a server does;
    to none where the ensemble is deleted. Reporting it again changes nothing.

    Raises:
        NotFound: no such claim for this caller.
        WrongState: it is not active, or of a server: that ends with the server's allocations.
    """

    def attempt() -> ClaimOutcome:
        claim = access(env.store, caller, claim_id)
        if claim.state is ClaimState.ENDED:
            return ClaimOutcome(claim)
        if claim.kind in OF_NOVA:
            raise WrongState("the claim of a server ends when Nova deletes the server")
        state = _after(claim, ClaimStep.END, env.store.now())
        commit_with_returns(env.store, Changeset((DeleteAllocations(str(claim.server_id)),)))
        return ClaimOutcome(replace(env.store.claim(claim.id), state=state))

    return retry(env, attempt)


def fail(
    env: UseCaseEnvironment,
    caller: Caller,
    claim_id: str,
    reason: str = "",
    *,
    access: ClaimAccess = own_claim,
) -> ClaimOutcome:
    """Record that the build failed: the place is held again, or freed if the decision is over.

    Reporting the same outcome again changes nothing.

    Raises:
        NotFound: no such claim for this caller.
        HoldExpired: the claim lapsed during this call.
        WrongState: the claim ended with another outcome.
    """

    def attempt() -> ClaimOutcome:
        access(env.store, caller, claim_id)
        claim, ensemble = claim_and_ensemble(env.store, claim_id)
        if claim.state is ClaimState.FAILED:
            return ClaimOutcome(claim)
        decision = env.store.decision(claim.decision_id)
        failed = _failed(claim, env.store.now(), reason)
        ended: tuple[Change, ...] = ()
        if decision.state_at(failed.updated_at) is not DecisionState.HELD:
            ended = end_beside_no_place(env.store, ensemble, failed.updated_at, claim.member)
        env.store.commit(
            Changeset(
                (
                    ExpectEnsemble(ensemble.id, ensemble.generation),
                    PutClaim(failed, ClaimState.BUILDING.value, not_after=claim.lapses_at),
                    return_unclaimed_place(env.store, ensemble, decision, claim, failed.updated_at),
                    *decision_after_claims(env.store, decision, {claim.id}, failed.updated_at),
                    *ended,
                )
            )
        )
        return ClaimOutcome(env.store.claim(claim.id))

    return retry(env, attempt)


def fail_and_redecide(
    env: UseCaseEnvironment,
    caller: Caller,
    claim_id: str,
    reason: str = "",
) -> ClaimOutcome:
    """Record that the build failed, and place the member on another host; no other member moves.

    The new decision keeps the end of the present hold, and its objective. Reporting the failure
    again changes nothing.

    Raises:
        NotFound: no such claim for this caller.
        HoldExpired: the claim lapsed during the search.
        WrongState: the claim ended with another outcome, or the member's role belongs to another
            project than the ensemble.
        Infeasible: there is no other place; the claim is still building.
    """
    return run_decision(env, lambda: _fail_and_redecide(env, caller, claim_id, reason))


def _fail_and_redecide(
    env: UseCaseEnvironment, caller: Caller, claim_id: str, reason: str
) -> DecisionFlow[ClaimOutcome]:
    own_claim(env.store, caller, claim_id)
    claim, ensemble = claim_and_ensemble(env.store, claim_id)
    check_unshared(ensemble, claim.member.role, to_place(ensemble.name, what="all its members"))
    snapshot = env.store.snapshot()
    member_places = locate_members(snapshot, ensemble)
    decision = env.store.decision(claim.decision_id)
    # A failure without a new place leaves the claim at an older decision, and its place held too.
    moved = claim.state is ClaimState.FAILED and decision.created_at >= claim.updated_at
    if moved and member_places.of(claim.member) is MemberStatus.HELD:
        return ClaimOutcome(claim)
    failed = _failed(claim, snapshot.taken_at, reason)
    place = decision.places.get(claim.member)
    member: frozenset[MemberName] = frozenset({claim.member})
    carried = continuation_of(env, decision)
    proposal = Proposal(
        ensemble,
        ensemble.generation,
        (lambda _: member,),
        promise=carried.promise,
        known_hosts=KnownHosts(
            barred={"failed": frozenset() if place is None else frozenset({place.host})}
        ),
        further_changes=lambda made: (
            PutClaim(
                replace(failed, decision_id=made.id),
                ClaimState.BUILDING.value,
                not_after=claim.lapses_at,
            ),
            *carried.further_changes(made),
        ),
    )
    settled = yield DecisionRequest(
        proposal, options_like(decision), RequestIdentity(env.ids.uuid())
    )
    return ClaimOutcome(env.store.claim(claim.id), settled)


def _failed(claim: Claim, now: Instant, reason: str) -> Claim:
    state = _after(claim, ClaimStep.FAIL, now)
    return replace(claim, state=state, reason=reason, updated_at=now)


def _after(claim: Claim, step: ClaimStep, now: Instant) -> ClaimState:
    try:
        return claim_after(claim.state_at(now), step)
    except WrongState as error:
        raise WrongState(f"{error.message}{to_see_claim(claim.id)}") from None


def claim_and_ensemble(store: Store, claim_id: str) -> tuple[Claim, Ensemble]:
    """A claim and its ensemble, the claim read after the ensemble.

    A new decision moves claims and writes the ensemble. If the claim were read first, the ensemble
    could be newer, and `ExpectEnsemble` would not detect that the claim has moved.

    Raises:
        NotFound: the claim or its ensemble is deleted.
    """
    ensemble = store.ensemble(store.claim(claim_id).ensemble_id)
    return store.claim(claim_id), ensemble


def active_claim(claim: Claim, ensemble: Ensemble, server_id: str, now: Instant) -> Claim:
    """The claim in state active, with its server.

    Raises:
        HoldExpired: the claim has lapsed.
        WrongState: the claim ended already.
    """
    if claim.state_at(now) is ClaimState.EXPIRED:
        raise HoldExpired(
            "the claim has lapsed and its place is no longer held for it"
            f"{to_place(ensemble.name, what=str(claim.member))}"
        )
    state = _after(claim, ClaimStep.ACTIVATE, now)
    return replace(claim, state=state, server_id=server_id, updated_at=now)


def activation_changes(
    store: Store, ensemble: Ensemble, active: Claim, exchange: Sequence[Change]
) -> tuple[Change, ...]:
    """The changes by which a claim becomes active and its member gets the server.

    `active` is the claim as it will be stored; `exchange` are the changes that replace the member's
    bookings by the server's allocations.
    """
    decision = store.decision(active.decision_id)
    grown = with_server(ensemble, active.member, active.server_id)
    grown = replace(grown, updated_at=active.updated_at)
    return (
        PutClaim(active, ClaimState.BUILDING.value, not_after=active.lapses_at),
        *exchange,
        PutEnsemble(grown, ensemble.generation),
        *decision_after_claims(store, decision, {active.id}, active.updated_at),
        *(eviction_warning(store, grown, active) if decision.preemptible else ()),
    )


def eviction_warning(store: Store, ensemble: Ensemble, active: Claim) -> Iterator[Change]:
    """The eviction warning of a server whose place has an early end for a lease."""
    member = ensemble.member(active.member)
    there = store.bookings(consumer=member.uuid)
    held = [replace(one, consumer=str(active.server_id)) for _, one in there]
    if held:
        yield from transferred_warning(store, ensemble, member, held, active.updated_at)


def _activation(store: Store, ensemble: Ensemble, active: Claim) -> tuple[Change, ...]:
    assert active.server_id is not None
    server = Consumer(
        uuid=active.server_id,
        project_id=ensemble.project_of(active.member.role),
        user_id=ensemble.user_of(active.member.role),
        type=SERVER_TYPE if active.kind in OF_NOVA else active.kind.upper(),
    )
    swap = SwapHold(ensemble.member(active.member).uuid, server)
    return activation_changes(store, ensemble, active, [swap])
