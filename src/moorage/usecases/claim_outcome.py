"""How a claim ended: its server is active, or the build failed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import (
    Change,
    Changeset,
    ExpectEnsemble,
    PutClaim,
    PutEnsemble,
    SwapHold,
)
from moorage.domain.consumers import SERVER_TYPE, Consumer
from moorage.domain.decisions import (
    Claim,
    ClaimState,
    ClaimStep,
    claim_after,
)
from moorage.domain.errors import HoldExpired
from moorage.usecases.access import own_claim
from moorage.usecases.leases.carried import carried_on
from moorage.usecases.leases.evict import served
from moorage.usecases.leases.unclaimed import unclaimed
from moorage.usecases.patience import again
from moorage.usecases.proposal import Naming, Proposal, Settled
from moorage.usecases.settle import settle
from moorage.usecases.standing import MemberStatus, standing
from moorage.usecases.writing import ask_as, without_claims

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.period import Instant
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller, Store


@dataclass(frozen=True, slots=True)
class Ended:
    """A claim that is no longer building; `settled` where its member was placed anew."""

    claim: Claim
    ensemble: Ensemble
    settled: Settled | None = None
    dry_run: bool = False


def activate(
    parts: Parts, caller: Caller, claim_id: str, server_id: str, *, dry_run: bool = False
) -> Ended:
    """The claim's place becomes the server's allocation, in one transaction.

    Telling the same outcome again changes nothing.

    Raises:
        NotFound: no such claim for this caller; the server is another project's, or none.
        HoldExpired: the claim lapsed, and the place is gone.
        WrongState: it ended otherwise, or with another server.
        ConsumerConflict: the server has allocations already.
    """

    def attempt() -> Ended:
        own_claim(parts.store, caller, claim_id)
        claim, ensemble = with_ensemble(parts.store, claim_id)
        if claim.state is ClaimState.ACTIVE and claim.server_id == server_id:
            return Ended(claim, ensemble)
        active = active_claim(claim, server_id, parts.store.now())
        if dry_run:
            return Ended(active, ensemble, dry_run=True)
        parts.store.commit(Changeset(_activation(parts.store, ensemble, active)))
        return Ended(parts.store.claim(claim.id), parts.store.ensemble(ensemble.id))

    return again(parts, attempt)


def fail(parts: Parts, caller: Caller, claim_id: str, *, dry_run: bool = False) -> Ended:
    """The build failed: the place is freed, or its lease's again.

    Telling the same outcome again changes nothing.

    Raises:
        NotFound: no such claim for this caller.
        HoldExpired: it lapsed while this was written.
        WrongState: it ended otherwise.
    """

    def attempt() -> Ended:
        own_claim(parts.store, caller, claim_id)
        claim, ensemble = with_ensemble(parts.store, claim_id)
        if claim.state is ClaimState.FAILED:
            return Ended(claim, ensemble)
        decision = parts.store.decision(claim.decision_id)
        failed = _failed(claim, parts.store.now())
        if dry_run:
            return Ended(failed, ensemble, dry_run=True)
        parts.store.commit(
            Changeset(
                (
                    ExpectEnsemble(ensemble.id, ensemble.generation),
                    PutClaim(failed, ClaimState.BUILDING.value, not_after=claim.lapses_at),
                    unclaimed(ensemble, decision, claim, failed.updated_at),
                    *without_claims(parts.store, decision, {claim.id}, failed.updated_at),
                )
            )
        )
        return Ended(parts.store.claim(claim.id), ensemble)

    return again(parts, attempt)


def fail_and_redecide(
    parts: Parts, caller: Caller, claim_id: str, *, dry_run: bool = False
) -> Ended:
    """The build failed: place the member elsewhere, all others staying put.

    The new decision is held until the present one would end, for the same objective. Telling it
    again changes nothing.

    Raises:
        NotFound: no such claim for this caller.
        HoldExpired: it lapsed while a place was looked for.
        WrongState: it ended otherwise.
        Infeasible: there is no other place; the claim is still building.
    """
    return again(parts, lambda: _fail_and_redecide(parts, caller, claim_id, dry_run=dry_run))


def _fail_and_redecide(parts: Parts, caller: Caller, claim_id: str, *, dry_run: bool) -> Ended:
    own_claim(parts.store, caller, claim_id)
    claim, ensemble = with_ensemble(parts.store, claim_id)
    snapshot = parts.store.snapshot()
    stand = standing(snapshot, ensemble)
    if claim.state is ClaimState.FAILED and stand.of(claim.member) is MemberStatus.HELD:
        return Ended(claim, ensemble)
    failed = _failed(claim, snapshot.taken_at)
    decision = parts.store.decision(claim.decision_id)
    place = decision.places.get(claim.member)
    member: frozenset[MemberName] = frozenset({claim.member})
    carried = carried_on(parts, decision)
    proposal = Proposal(
        ensemble,
        ensemble.generation,
        lambda _: member,
        barred={"failed": frozenset() if place is None else frozenset({place.host})},
        also=lambda made: (
            PutClaim(
                replace(failed, decision_id=made.id),
                ClaimState.BUILDING.value,
                not_after=claim.lapses_at,
            ),
            *carried.also(made),
        ),
        dropped_claims=frozenset({claim.id}),
        promise=carried.promise,
    )
    settled = settle(parts, proposal, ask_as(decision), Naming(parts.ids.uuid()), dry_run=dry_run)
    ended = failed if dry_run else parts.store.claim(claim.id)
    return Ended(ended, settled.ensemble, settled, dry_run)


def _failed(claim: Claim, now: Instant) -> Claim:
    return replace(claim, state=claim_after(claim.state_at(now), ClaimStep.FAIL), updated_at=now)


def with_ensemble(store: Store, claim_id: str) -> tuple[Claim, Ensemble]:
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


def activation(
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
        *without_claims(store, decision, {active.id}, active.updated_at),
        *(_warned(store, grown, active) if decision.preemptible else ()),
    )


def _warned(store: Store, ensemble: Ensemble, active: Claim) -> Iterator[Change]:
    """A server is told when it ends that takes a place which yields to a lease."""
    member = ensemble.member(active.member)
    there = store.bookings(consumer=member.uuid)
    held = [replace(one, consumer=str(active.server_id)) for _, one in there]
    if held:
        yield from served(store, ensemble, member, held, active.updated_at)


def _activation(store: Store, ensemble: Ensemble, active: Claim) -> tuple[Change, ...]:
    assert active.server_id is not None
    server = Consumer(
        uuid=active.server_id,
        project_id=ensemble.project_id,
        user_id=ensemble.user_id,
        type=SERVER_TYPE,
    )
    swap = SwapHold(ensemble.member(active.member).uuid, server)
    return activation(store, ensemble, active, [swap])
