"""How a claim ended: its server is active, or the build failed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import (
    Change,
    Changeset,
    DropBookings,
    PutClaim,
    PutDecision,
    PutEnsemble,
    SwapHold,
)
from moorage.domain.consumers import Consumer
from moorage.domain.decisions import (
    Claim,
    ClaimState,
    ClaimStep,
    DecisionState,
    DecisionStep,
    claim_after,
    decision_after,
)
from moorage.domain.errors import Busy, ConcurrentUpdate, HoldExpired
from moorage.usecases.access import own_claim
from moorage.usecases.joint import Ask
from moorage.usecases.settle import Naming, Proposal, Settled, settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.period import Instant
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller, Store

SERVER_TYPE = "INSTANCE"
"""The consumer type Nova writes for its servers."""


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
        NotFound: no such claim for this caller.
        HoldExpired: the claim lapsed, and the place is gone.
        WrongState: it ended otherwise, or with another server.
        ConsumerConflict: the server has allocations already.
    """
    for _ in range(parts.limits.attempts):
        own_claim(parts.store, caller, claim_id)
        claim, ensemble = with_ensemble(parts.store, claim_id)
        if claim.state is ClaimState.ACTIVE and claim.server_id == server_id:
            return Ended(claim, ensemble)
        active = active_claim(claim, server_id, parts.store.now())
        if dry_run:
            return Ended(active, ensemble, dry_run=True)
        try:
            parts.store.commit(Changeset(_activation(parts.store, ensemble, active)))
        except ConcurrentUpdate as error:
            if error.subject not in {ensemble.id, claim.decision_id}:
                raise
            continue
        return Ended(parts.store.claim(claim.id), parts.store.ensemble(ensemble.id))
    raise Busy("too many claims of this ensemble change at once")


def fail(parts: Parts, caller: Caller, claim_id: str, *, dry_run: bool = False) -> Ended:
    """The build failed: the place is freed.

    Raises:
        NotFound: no such claim for this caller.
        WrongState: it ended already.
    """
    claim = own_claim(parts.store, caller, claim_id)
    ensemble = parts.store.ensemble(claim.ensemble_id)
    now = parts.store.now()
    failed = replace(claim, state=claim_after(claim.state, ClaimStep.FAIL), updated_at=now)
    if dry_run:
        return Ended(failed, ensemble, dry_run=True)
    member = ensemble.member(claim.member)
    parts.store.commit(
        Changeset(
            (
                PutClaim(failed, claim.state.value),
                DropBookings(frozenset({member.uuid})),
                *closing(parts.store, claim),
            )
        )
    )
    return Ended(parts.store.claim(claim.id), ensemble)


def fail_and_redecide(
    parts: Parts, caller: Caller, claim_id: str, *, dry_run: bool = False
) -> Ended:
    """The build failed: place the member elsewhere, all others staying put.

    Raises:
        NotFound: no such claim for this caller.
        WrongState: it ended already.
        Infeasible: there is no other place; the claim is still building.
    """
    claim = own_claim(parts.store, caller, claim_id)
    ensemble = parts.store.ensemble(claim.ensemble_id)
    now = parts.store.now()
    failed = replace(claim, state=claim_after(claim.state, ClaimStep.FAIL), updated_at=now)
    decision = parts.store.decision(claim.decision_id)
    place = decision.places.get(claim.member)
    member: frozenset[MemberName] = frozenset({claim.member})
    proposal = Proposal(
        ensemble,
        ensemble.generation,
        lambda _: member,
        barred=frozenset() if place is None else frozenset({place.host}),
        also=lambda made: (PutClaim(replace(failed, decision_id=made.id), claim.state.value),),
        dropped_claims=frozenset({claim.id}),
    )
    settled = settle(parts, proposal, Ask(), Naming(parts.ids.uuid()), dry_run=dry_run)
    ended = failed if dry_run else parts.store.claim(claim.id)
    return Ended(ended, settled.ensemble, settled, dry_run)


def closing(store: Store, ended: Claim) -> Iterator[Change]:
    """Close a confirmed decision whose last building claim ends."""
    decision = store.decision(ended.decision_id)
    others: Iterable[Claim] = store.claims(decision_id=decision.id)
    building = any(one.state is ClaimState.BUILDING and one.id != ended.id for one in others)
    if decision.state is DecisionState.CONFIRMED and not building:
        state = decision_after(decision.state, DecisionStep.CLOSE)
        yield PutDecision(
            replace(decision, state=state, updated_at=store.now()), decision.generation
        )


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
    members = tuple(
        replace(one, server_id=active.server_id) if one.name == active.member else one
        for one in ensemble.members
    )
    grown = replace(ensemble, members=members, updated_at=active.updated_at)
    return (
        PutClaim(active, ClaimState.BUILDING.value),
        *exchange,
        PutEnsemble(grown, ensemble.generation),
        *closing(store, active),
    )


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
