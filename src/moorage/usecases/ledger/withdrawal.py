"""Withdrawal: providers and inventories are deleted though places on them are held or promised.

Placement refuses to delete what has allocations, and nothing else; Nova relies on that when it
deletes a compute service. Holds and reservations are not visible to Nova, so they cannot prevent
it. Their members lose their places in the same commit. A lease is marked as degraded, and
`relocation.repair` searches for other places. Members of a decision without a lease are placed anew
by an effect, or stay unplaced if there is no room. Owners are notified of both.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import (
    Changeset,
    DropBookings,
    PutClaim,
    PutDecision,
    PutEnsemble,
    PutLease,
)
from moorage.domain.decisions import ClaimState, ClaimStep, DecisionState, claim_after
from moorage.domain.effects import EffectKind
from moorage.domain.errors import (
    ConcurrentUpdate,
    Infeasible,
    InventoryInUse,
    NotFound,
    ProviderConflict,
    ProviderInUse,
)
from moorage.domain.leases import LeaseState
from moorage.usecases.decide.loop import decide_proposal
from moorage.usecases.decide.member_places import MemberStatus, bookings_of, locate_members
from moorage.usecases.decide.request import (
    Proposal,
    RefusalDetail,
    RefusalReader,
    RequestIdentity,
)
from moorage.usecases.decide.writes import current_decision, end_claim, options_like, with_server
from moorage.usecases.effects import notifications
from moorage.usecases.effects.outcome import effect_finished, finish
from moorage.usecases.paging import Page
from moorage.usecases.relocation.lease_health import NOTHING, OPEN, health_notice, with_missing
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.domain.changes import Change, Committed
    from moorage.domain.decisions import Decision
    from moorage.domain.effects import Effect
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Store

ATTEMPTS: Final = 20
"""How often withdrawal is tried if places are held, or decisions change, concurrently."""
_PROMISING: Final = (*OPEN, LeaseState.OFFERED)


def commit_with_withdrawal(store: Store, changeset: Changeset) -> Committed:
    """Commit a changeset; withdraw held or promised places that prevent it.

    Raises:
        ProviderInUse, InventoryInUse: there are allocations, or places without a decision.
        MoorageError: other errors of the commit.
    """
    holders: frozenset[str] = frozenset()
    for attempt in range(ATTEMPTS):
        last = attempt == ATTEMPTS - 1
        try:
            return store.commit(_withdrawing(store, changeset, holders))
        except (InventoryInUse, ProviderInUse) as error:
            if last or not error.held_by:
                raise
            holders |= error.held_by
        except ProviderConflict:
            raise
        except (ConcurrentUpdate, NotFound):
            if last or not holders:
                raise  # it is the caller's own that came too late
    raise ConcurrentUpdate(
        "new holds kept being made on the provider; retry", subject="resource provider"
    )


def _withdrawing(store: Store, changeset: Changeset, holders: frozenset[str]) -> Changeset:
    """The changeset, preceded by the withdrawal of these consumers' held places."""
    if not holders:
        return changeset
    changes = withdrawn(store, store.snapshot(), holders)
    return replace(changeset, changes=(*changes, *changeset.changes))


def withdrawn(store: Store, snapshot: Snapshot, holders: frozenset[str]) -> Iterator[Change]:
    """The changes by which these consumers lose their held or promised places.

    A spare of a headroom that loses its place is gone: the headroom is smaller by it. With a server
    among them, whose allocations the caller deletes, its member loses the place and its claim ends.
    """
    lost, spares = _lost_spares(store, holders)
    yield DropBookings(spares)
    decisions = {
        one.decision
        for consumer in holders
        for one in bookings_of(snapshot, consumer)
        if one.decision is not None
    }
    for decision, ensemble in newest_decisions(store, decisions):
        yield from _ended_claims(store, decision, ensemble, holders, snapshot.taken_at)
        if ensemble is None:
            continue
        members = [one for one in ensemble.members if holders & {one.uuid, one.server_id}]
        changed = lost.pop(ensemble.id, ensemble)
        yield from _lost(store, decision, changed, members, snapshot.taken_at)
    for ensemble in lost.values():
        yield PutEnsemble(replace(ensemble, updated_at=snapshot.taken_at), ensemble.generation)


def newest_decisions(
    store: Store, decisions: Iterable[str]
) -> Iterator[tuple[Decision, Ensemble | None]]:
    """The newest decisions of the ensembles that these decisions placed: they have all claims.

    An ensemble that is forgotten is None: its servers stay without.
    """
    found: dict[str, Decision] = {}
    for decision in filter(None, (if_stored(store.decision, one) for one in sorted(decisions))):
        found[decision.ensemble_id] = decision
    for ensemble_id, decision in found.items():
        newest = store.decisions(
            project_id=decision.project_id, ensemble_id=ensemble_id, page=Page(limit=1)
        )
        yield newest[0], if_stored(store.ensemble, ensemble_id)


def _ended_claims(
    store: Store,
    decision: Decision,
    ensemble: Ensemble | None,
    holders: frozenset[str],
    now: Instant,
) -> Iterator[Change]:
    """The ends of the claims of these consumers; servers also of members that are there no more."""
    members = () if ensemble is None else ensemble.members
    names = {one.name for one in members if one.uuid in holders}
    for claim in store.claims(decision_id=decision.id):
        if claim.state is ClaimState.BUILDING and claim.member in names:
            yield end_claim(claim, now)
        elif claim.state is ClaimState.ACTIVE and claim.server_id in holders:
            ended = replace(claim, state=claim_after(claim.state, ClaimStep.END), updated_at=now)
            yield PutClaim(ended, claim.state.value)


def _lost_spares(
    store: Store, holders: frozenset[str]
) -> tuple[dict[str, Ensemble], frozenset[str]]:
    """The ensembles, by id, without the spares among these consumers; and those spares."""
    found: dict[str, Ensemble] = {}
    lost: set[str] = set()
    for consumer in sorted(holders):
        for ensemble in store.ensembles_of_server(consumer):
            if consumer in ensemble.spares:
                lost.add(consumer)
                rest = tuple(one for one in ensemble.headroom if one.uuid not in holders)
                found[ensemble.id] = replace(ensemble, headroom=rest)
    return found, frozenset(lost)


def _lost(
    store: Store, decision: Decision, ensemble: Ensemble, members: Sequence[Member], now: Instant
) -> Iterator[Change]:
    names = frozenset(one.name for one in members)
    yield DropBookings(frozenset(one.uuid for one in members))
    lease = None if decision.lease_id is None else store.lease(decision.lease_id)
    # The new generation makes concurrent readers of the members conflict. A lease keeps its
    # promised places in the decision.
    without = ensemble
    for name in names:
        without = with_server(without, name, None)
    yield PutEnsemble(replace(without, updated_at=now), ensemble.generation)
    places = {
        name: place
        for name, place in decision.places.items()
        if lease is not None or name not in names
    }
    held = lease is None and decision.state_at(now) is DecisionState.HELD
    changed = replace(
        decision,
        places=MappingProxyType(places),
        withdrawn=tuple(sorted({*decision.withdrawn, *(names if held else ())})),
        updated_at=now,
    )
    yield PutDecision(changed, decision.generation)
    if held:
        yield notifications.idempotent_effect(
            EffectKind.REPLACE,
            ensemble.id,
            ensemble.project_id,
            due=now,
            now=now,
            details={
                "ensemble": ensemble.id,
                "decision": decision.id,
                "members": sorted(map(str, names)),
            },
            same=(decision.id, decision.generation, *sorted(map(str, names))),
        )
    elif lease is not None and lease.state in _PROMISING:
        found = with_missing(lease, lease.missing + len(members), NOTHING, now)
        yield PutLease(found, lease.generation)
        if lease.state is not LeaseState.OFFERED:
            yield health_notice(found, now)


# --- the effect -----------------------------------------------------------------------------


def carry_out(env: UseCaseEnvironment, effect: Effect) -> str:
    """Place members that lost their places anew, with all others staying.

    The new decision is held for as long as the present one. Without room the members stay unplaced.

    Returns:
        The outcome, or why nothing was done.

    Raises:
        ConcurrentUpdate, NotFound: the ensemble was changed or deleted meanwhile.
        Busy: time ran out; the effect stays pending.
    """
    ensemble = if_stored(env.store.ensemble, effect.subject)
    if ensemble is None:
        return finish(env.store, effect, "the ensemble is gone")
    decision, snapshot = current_decision(env.store, ensemble), env.store.snapshot()
    if decision is None or decision.id != effect.details["decision"]:
        return finish(env.store, effect, "another decision has taken its place")
    if decision.state_at(snapshot.taken_at) is not DecisionState.HELD:
        return finish(env.store, effect, f"the decision is {decision.state_at(snapshot.taken_at)}")
    lost = _lost_of(effect, ensemble)
    if not _unplaced(locate_members(snapshot, ensemble), lost):
        return finish(env.store, effect, "its members have places again")
    outcome = "placed anew"
    proposal = Proposal(
        ensemble,
        ensemble.generation,
        (lambda member_places: _unplaced(member_places, lost),),
        further_changes=lambda made: (effect_finished(effect, outcome, made.updated_at),),
        reader=RefusalReader(detail=RefusalDetail.UNSTORED),
    )
    try:
        decide_proposal(env, proposal, options_like(decision), RequestIdentity(env.ids.uuid()))
    except Infeasible as error:
        return finish(env.store, effect, f"there are no other places: {error.message}")
    return outcome


def _lost_of(effect: Effect, ensemble: Ensemble) -> frozenset[MemberName]:
    names = effect.details["members"]
    assert isinstance(names, list | tuple), "written by `withdrawn`"
    return frozenset(one.name for one in ensemble.members if str(one.name) in names)


def _unplaced(member_places: MemberPlaces, lost: frozenset[MemberName]) -> frozenset[MemberName]:
    return frozenset(name for name in lost if member_places.of(name) is MemberStatus.UNPLACED)
