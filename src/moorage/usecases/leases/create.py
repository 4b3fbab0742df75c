"""Grant a lease: its places are booked for its period, or it is refused with the reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import EndBookings, PutEntry, PutLease
from moorage.domain.errors import (
    DuplicateName,
    Infeasible,
    InvalidDescription,
    NotFound,
    WrongState,
)
from moorage.domain.lease_actions import read_actions
from moorage.domain.leases import Lease, LeaseState, Reservation
from moorage.domain.waitlist import EntryState, EntryStep, entry_after
from moorage.usecases.access import own_ensemble, sees
from moorage.usecases.create_ensemble import described
from moorage.usecases.digest import same_request
from moorage.usecases.explain import known_refusal
from moorage.usecases.joint import Ask
from moorage.usecases.leases.asking import Brought, Displaced, Granted, LeaseAsk
from moorage.usecases.leases.carried import promise
from moorage.usecases.leases.checked import CREATE, Question
from moorage.usecases.leases.edges import first_edges
from moorage.usecases.leases.shaping import (
    check_margins,
    check_members,
    checked_end,
    checked_lead,
    checked_start,
)
from moorage.usecases.leases.view import displaced_by
from moorage.usecases.patience import again
from moorage.usecases.proposal import Naming, Proposal
from moorage.usecases.quotas import check_quota, judged_by
from moorage.usecases.settle import settle, unplaced
from moorage.usecases.soundness import check_names, check_policies
from moorage.usecases.standing import standing
from moorage.usecases.waitlist.turn import turn_of

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Terms
    from moorage.domain.period import Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller, Store

__all__ = ["Displaced", "Granted", "LeaseAsk", "create_lease"]


def create_lease(
    parts: Parts, caller: Caller, asked: LeaseAsk, naming: Naming, *, dry_run: bool = False
) -> Granted:
    """Grant a lease of an ensemble, which is made in the same transaction if it is described.

    Granted means booked: at every instant of its period, with lead and cleaning, all members of
    all roles have their places beside whoever stays there. Where only preemptible users are in
    the way, they end before. The same request under the same id gets the answer it got before.

    Raises:
        NotFound: no such ensemble for this caller.
        InvalidDescription: neither or both of ensemble and description, a window or a lead in the
            past, no members, or as for an ensemble.
        LimitExceeded: too long, too far ahead, too many members or reservations.
        QuotaExceeded: more than its project may lease.
        WrongState: the ensemble is placed, or has a lease.
        Infeasible: it cannot be promised; the explanation says what is in the way.
        DuplicateName: the id was used by another request.
        CheckRefused: the operator's own check says no.
        Busy: time ran out, the ledger moved too often, or the check gives no answer.
    """
    if (made := made_before(parts.store, caller, naming)) is not None:
        return made
    if not dry_run and (refused := known_refusal(parts, caller, naming)) is not None:
        raise refused
    try:
        return again(parts, lambda: _create(parts, caller, asked, naming, dry_run=dry_run))
    except (DuplicateName, Infeasible, WrongState):
        # The same request on another connection was quicker: both get one answer.
        if naming.digest and (made := made_before(parts.store, caller, naming)) is not None:
            return made
        raise


def _create(
    parts: Parts, caller: Caller, asked: LeaseAsk, naming: Naming, *, dry_run: bool
) -> Granted:
    now = parts.store.now()
    asked = _renewed(parts.store, asked)
    terms = asked.terms
    if asked.brought is None:
        check_margins(parts.limits, lead=terms.lead, cleaning=terms.cleaning)
        terms = checked_lead(checked_start(terms, now), now)
    terms = checked_end(parts.limits, terms, now)
    ensemble, generation = _ensemble(parts, caller, asked)
    check_members(parts.limits, ensemble)
    lease = _lease(parts, caller, asked, naming, terms, ensemble)
    within = None
    if asked.brought is None:  # what another service has granted stands
        within = judged_by(parts.limits, any_priority=asked.any_priority)
        check_quota(parts, lease, None, within)
    question = Question(parts, caller, CREATE)

    def also(decision: Decision) -> tuple[Change, ...]:
        placed = _placed(lease, decision)
        if asked.brought is None:
            placed = question.put(placed, ensemble)
        return (
            PutLease(placed, None, within),
            *first_edges(placed, parts.ids, decision.created_at),
            *_ended_with(ensemble, terms, asked.brought),
            *_left(asked.entry, decision.created_at),
        )

    proposal = Proposal(
        ensemble,
        generation,
        unplaced(ensemble),
        promise=promise(lease),
        also=also,
        outranks=0 if asked.brought else terms.priority,
        operator=caller.operator,
        unasked=asked.unasked or asked.entry is not None,
        **turn_of(parts, lease, ensemble, asked),
    )
    ask = Ask(time_limit=asked.time_limit, objective=asked.objective, seed=asked.seed)
    own = Naming(parts.ids.uuid(), within=naming)
    settled = settle(parts, proposal, ask, own, dry_run=dry_run)
    return Granted(
        lease=replace(_placed(lease, settled.decision), serial=settled.serials.get(lease.id, 0)),
        decision=settled.decision,
        ensemble=settled.ensemble,
        snapshot=settled.snapshot,
        displaced=settled.displaced,
        preempted=settled.preempted,
        dry_run=dry_run,
    )


def _lease(
    parts: Parts,
    caller: Caller,
    asked: LeaseAsk,
    naming: Naming,
    terms: Terms,
    ensemble: Ensemble,
) -> Lease:
    """The lease as it will be stored, yet without a placement."""
    brought = asked.brought.reservations if asked.brought else {}
    return Lease(
        id=naming.id,
        project_id=ensemble.project_id,
        user_id=caller.user_id,
        name=asked.name,
        ensemble_id=ensemble.id,
        decision_id="",
        terms=terms,
        state=LeaseState.PENDING,
        reservations=tuple(
            Reservation(brought.get(role.name) or parts.ids.uuid(), role.name)
            for role in ensemble.roles
        ),
        units=len(ensemble.members),
        actions=read_actions(asked.actions),
        annotations=asked.annotations,
        digest=naming.digest if asked.entry is None else asked.entry.digest,
    )


def _renewed(store: Store, asked: LeaseAsk) -> LeaseAsk:
    """The same with the entry of the waitlist as it stands.

    Raises:
        WrongState: it waits no more.
    """
    if asked.entry is None:
        return asked
    entry = store.waitlist_entry(asked.entry.id)
    if entry.state is not EntryState.WAITING:
        raise WrongState(f"the entry of the waitlist is {entry.state}")
    return replace(asked, entry=entry)


def _left(entry: WaitlistEntry | None, now: Instant) -> tuple[Change, ...]:
    """The entry that it was until now."""
    if entry is None:
        return ()
    state = entry_after(entry.state, EntryStep.GRANT)
    return (PutEntry(replace(entry, state=state, updated_at=now), entry.generation),)


def _placed(lease: Lease, decision: Decision) -> Lease:
    at = decision.created_at
    return replace(lease, decision_id=decision.id, created_at=at, updated_at=at)


def _ensemble(parts: Parts, caller: Caller, asked: LeaseAsk) -> tuple[Ensemble, int | None]:
    """The ensemble that is to be placed, and its stored generation if it is there already."""
    if asked.entry is not None and asked.entry.ensemble is not None:
        return asked.entry.ensemble, None
    if (asked.ensemble_id is None) is (asked.description is None):
        raise InvalidDescription(
            "a lease is of an ensemble, or of one that is described", path="lease.ensemble"
        )
    snapshot = parts.store.snapshot()
    if asked.description is not None:
        ensemble = described(parts, caller, asked.description, Naming(parts.ids.uuid()))
        check_policies(snapshot.topology, ensemble)
        check_names(parts.store, caller, snapshot, ensemble)
        return _with_servers(ensemble, asked.brought), None
    assert asked.ensemble_id is not None
    ensemble = own_ensemble(parts.store, caller, asked.ensemble_id)
    check_placeless(parts.store, snapshot, ensemble)
    return ensemble, ensemble.generation


def check_placeless(store: Store, snapshot: Snapshot, ensemble: Ensemble) -> None:
    """Let an ensemble pass that has no placement.

    Raises:
        WrongState: it is placed, or has a lease.
    """
    for lease in store.leases_of(ensemble.id):
        if lease.state is not LeaseState.CLOSED:
            raise WrongState(f"the ensemble has {lease.called} already, which is {lease.state}")
    if standing(snapshot, ensemble).places:
        raise WrongState("the ensemble is placed already: it has one placement at a time")


def _with_servers(ensemble: Ensemble, brought: Brought | None) -> Ensemble:
    """The ensemble, some of whose members are servers already."""
    if brought is None:
        return ensemble
    waiting = {role: list(servers) for role, servers in brought.servers.items()}
    members = tuple(
        replace(one, server_id=some.pop(0)) if (some := waiting.get(one.name.role)) else one
        for one in ensemble.members
    )
    return replace(ensemble, members=members)


def _ended_with(ensemble: Ensemble, terms: Terms, brought: Brought | None) -> tuple[Change, ...]:
    """The end of servers that the lease brings along: that of those which draw from it."""
    if brought is None:
        return ()
    servers = frozenset(one.server_id for one in ensemble.members if one.server_id is not None)
    return (EndBookings(servers, terms.occupied.end),) if servers else ()


def made_before(store: Store, caller: Caller, naming: Naming) -> Granted | None:
    """The lease that the same request got, if it got one.

    Raises:
        DuplicateName: the id was used by another request.
    """
    if not naming.digest:  # an id that nobody gave, and nobody has
        return None
    try:
        known = store.lease(naming.id)
    except NotFound:
        return None
    if not sees(caller, known.project_id):
        raise DuplicateName("lease", naming.id)
    same_request("lease", naming.id, stored=known.digest, given=naming.digest)
    return Granted(
        lease=known,
        decision=store.decision(known.decision_id),
        ensemble=store.ensemble(known.ensemble_id),
        snapshot=store.snapshot(),
        displaced=displaced_by(store, known),
        claims=store.claims(decision_id=known.decision_id),
    )
