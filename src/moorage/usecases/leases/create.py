"""Grant a lease: book its places for its period, or refuse it with the reasons."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from moorage.domain.changes import EndBookings, PutEntry, PutLease
from moorage.domain.errors import (
    DuplicateName,
    Infeasible,
    InvalidDescription,
    WrongState,
)
from moorage.domain.lease_actions import read_actions
from moorage.domain.leases import Lease, LeaseState, Reservation
from moorage.domain.references import references_of
from moorage.domain.waitlist import EntryState, EntryStep, entry_after
from moorage.usecases.decide.loop import DecisionFlow, DecisionRequest, run_decision, unplaced
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import (
    Proposal,
    RefusalReader,
    RequestIdentity,
    WaitlistGate,
    ignore_waitlist,
)
from moorage.usecases.decide.search_result import DisplacedConsumer
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.effects.lease_timers import first_timers
from moorage.usecases.ensembles.create import described_ensemble
from moorage.usecases.ensembles.names import reclaimed_name_condition
from moorage.usecases.leases.external_check import CheckRequest
from moorage.usecases.leases.queries import displaced_by
from moorage.usecases.leases.requests import ExistingGrant, LeaseRequest, LeaseResult
from moorage.usecases.leases.shaping import (
    check_margins,
    check_members,
    checked_end,
    checked_lead,
    checked_start,
)
from moorage.usecases.preemption.preempted_leases import preempted_leases
from moorage.usecases.refusals.explanation import answer_once
from moorage.usecases.relocation.lease_promise import placed_lease, promise
from moorage.usecases.shared.access import made_by_request, own_ensemble
from moorage.usecases.shared.lease_check import CREATE
from moorage.usecases.shared.quotas import check_quota, quota_limits
from moorage.usecases.shared.role_access import check_no_shares
from moorage.usecases.waitlist_turn import turn_of_window

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Terms
    from moorage.domain.period import Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store

__all__ = ["DisplacedConsumer", "LeaseRequest", "LeaseResult", "create_lease"]


def create_lease(
    env: UseCaseEnvironment,
    caller: Caller,
    request: LeaseRequest,
    identity: RequestIdentity,
) -> LeaseResult:
    """Grant a lease of a stored ensemble, or of a described one, which is created with it.

    Granted means booked: for the lease's whole period, with lead and cleaning time, all members of
    all roles have places beside all other bookings. If only preemptible servers are in the way,
    they get earlier ends. A repeat of the request with the same id returns the lease that it was
    granted.

    Raises:
        NotFound: no such ensemble for this caller.
        InvalidDescription: the request names neither or both of ensemble and description, a window
            or a lead in the past, or no members; or its description is invalid.
        LimitExceeded: the lease is too long, too far ahead, or has too many members or
            reservations.
        QuotaExceeded: the project's quota would be exceeded.
        WrongState: the ensemble is placed, or has a lease.
        NameTaken: the ensemble has released its places, and another ensemble has taken its name
            since.
        Infeasible: the lease does not fit; the error carries the explanation.
        DuplicateName: another request used the same id.
        CheckRefused: the operator's check of leases refuses it.
        Busy: time ran out, there were too many conflicting commits, or the check did not answer.
    """
    flow = partial(_create, env, caller, request, identity)
    return answer_once(
        env,
        caller,
        identity,
        partial(made_before, env.store, identity),
        partial(run_decision, env, flow),
        (DuplicateName, Infeasible, WrongState),
    )


def _create(
    env: UseCaseEnvironment, caller: Caller, request: LeaseRequest, identity: RequestIdentity
) -> DecisionFlow[LeaseResult]:
    now = env.store.now()
    request = _renewed(env.store, request)
    terms = request.terms
    if request.existing_grant is None:
        check_margins(env.limits, lead=terms.lead, cleaning=terms.cleaning)
        terms = checked_lead(checked_start(terms, now), now)
    terms = checked_end(env.limits, terms, now)
    ensemble, generation = _ensemble(env, caller, request)
    check_members(env.limits, ensemble)
    lease = _lease(env, caller, request, identity, terms, ensemble)
    within = None
    if request.existing_grant is None:  # what another service has granted stands
        within = quota_limits(env.limits, any_priority=request.any_priority)
        check_quota(env, lease, None, within)
    question = CheckRequest(env, caller, CREATE)
    # A waitlist entry or an imported lease keeps its ensemble even if the name was taken since.
    again_named = (
        generation is not None and request.entry is None and request.existing_grant is None
    )
    named = reclaimed_name_condition(env.store, ensemble) if again_named else ()

    def further_changes(decision: Decision) -> tuple[Change, ...]:
        placed = placed_lease(lease, decision)
        if request.existing_grant is None:
            placed = question.put(placed, ensemble)
        return (
            *named,
            PutLease(placed, None, within),
            *first_timers(placed, env.ids, decision.created_at),
            *_ended_with(ensemble, terms, request.existing_grant),
            *_left(request.entry, decision.created_at),
        )

    proposal = Proposal(
        ensemble,
        generation,
        (unplaced(ensemble),),
        promise=replace(promise(lease), outranks=0 if request.existing_grant else terms.priority),
        waitlist_gate=_turn(env, lease, ensemble, request),
        further_changes=further_changes,
        reader=RefusalReader(operator=caller.operator, detail=request.refusal),
    )
    options = DecisionOptions(
        time_limit=request.time_limit, objective=request.objective, seed=request.seed
    )
    own = RequestIdentity(env.ids.uuid(), within=identity)
    settled = yield DecisionRequest(proposal, options, own)
    return LeaseResult(
        lease=replace(
            placed_lease(lease, settled.decision), serial=settled.serials.get(lease.id, 0)
        ),
        decision=settled.decision,
        ensemble=settled.ensemble,
        snapshot=settled.snapshot,
        displaced=settled.displaced,
        preempted=preempted_leases(settled.concessions),
    )


def _lease(
    env: UseCaseEnvironment,
    caller: Caller,
    request: LeaseRequest,
    identity: RequestIdentity,
    terms: Terms,
    ensemble: Ensemble,
) -> Lease:
    """The lease to store, without a placement yet."""
    existing_grant = request.existing_grant.reservations if request.existing_grant else {}
    return Lease(
        id=identity.id,
        project_id=ensemble.project_id,
        user_id=caller.user_id,
        name=request.name,
        ensemble_id=ensemble.id,
        decision_id="",
        terms=terms,
        state=LeaseState.PENDING,
        reservations=tuple(
            Reservation(existing_grant.get(role.name) or env.ids.uuid(), role.name, role.kind)
            for role in ensemble.roles
        ),
        units=len(ensemble.members),
        actions=read_actions(request.actions),
        annotations=request.annotations,
        digest=identity.digest if request.entry is None else request.entry.digest,
    )


def _turn(
    env: UseCaseEnvironment, lease: Lease, ensemble: Ensemble, request: LeaseRequest
) -> WaitlistGate:
    """The waitlist gate of the request; a lease that another service granted skips it."""
    if request.existing_grant is not None:
        return ignore_waitlist
    turn = turn_of_window(env, ensemble, lease.terms)
    return turn if request.entry is None else replace(turn, entry=request.entry.id)


def _renewed(store: Store, request: LeaseRequest) -> LeaseRequest:
    """The request with its waitlist entry as stored now.

    Raises:
        WrongState: the entry is not waiting any more.
    """
    if request.entry is None:
        return request
    entry = store.waitlist_entry(request.entry.id)
    if entry.state is not EntryState.WAITING:
        raise WrongState(f"the entry of the waitlist is {entry.state}")
    return replace(request, entry=entry)


def _left(entry: WaitlistEntry | None, now: Instant) -> tuple[Change, ...]:
    """The change that marks the waitlist entry as granted."""
    if entry is None:
        return ()
    state = entry_after(entry.state, EntryStep.GRANT)
    return (PutEntry(replace(entry, state=state, updated_at=now), entry.generation),)


def _ensemble(
    env: UseCaseEnvironment, caller: Caller, request: LeaseRequest
) -> tuple[Ensemble, int | None]:
    """The ensemble to place, and its stored generation; None for one that is not stored yet."""
    if request.entry is not None and request.entry.ensemble is not None:
        return request.entry.ensemble, None
    if (request.ensemble_id is None) is (request.description is None):
        raise InvalidDescription(
            "give either the id of an ensemble or a description", path="lease.ensemble"
        )
    if request.description is not None:
        ensemble = described_ensemble(env, caller, request.description, compiled=request.compiled)
        check_leasable(ensemble)
        return _with_servers(ensemble, request.existing_grant), None
    assert request.ensemble_id is not None
    ensemble = own_ensemble(env.store, caller, request.ensemble_id)
    check_leasable(ensemble)
    check_placeless(env.store, env.store.snapshot(), ensemble)
    return ensemble, ensemble.generation


def check_leasable(ensemble: Ensemble) -> None:
    """Check that an ensemble's members are one project's, one thing only, and depend on no other.

    Raises:
        InvalidDescription: a role has alternatives, or belongs to another project; or a policy
            refers to another ensemble.
    """
    for statement in ensemble.policies:
        if references_of(statement):
            raise InvalidDescription(
                f"policy {statement.name} refers to another ensemble, which may move before the"
                " lease starts",
                path="policies",
            )
    check_no_shares(ensemble, "a lease is one project's")
    for role in ensemble.roles:
        if role.alternatives:
            raise InvalidDescription(
                f"role {role.name} has alternatives; a lease holds places of one kind for each"
                " role: describe it with one of them",
                path="members",
            )


def check_placeless(store: Store, snapshot: Snapshot, ensemble: Ensemble) -> None:
    """Check that an ensemble has neither a placement nor an open lease.

    Raises:
        WrongState: the ensemble is placed, or has a lease.
    """
    for lease in store.leases_of(ensemble.id):
        if lease.state is not LeaseState.CLOSED:
            raise WrongState(f"the ensemble has {lease.called} already, which is {lease.state}")
    if locate_members(snapshot, ensemble).places:
        raise WrongState("already placed; release it first, or lease from its description")


def _with_servers(ensemble: Ensemble, existing_grant: ExistingGrant | None) -> Ensemble:
    """The ensemble with the servers of an imported lease assigned to its members."""
    if existing_grant is None:
        return ensemble
    waiting = {role: list(servers) for role, servers in existing_grant.servers.items()}
    members = tuple(
        replace(one, server_id=some.pop(0)) if (some := waiting.get(one.name.role)) else one
        for one in ensemble.members
    )
    return replace(ensemble, members=members)


def _ended_with(
    ensemble: Ensemble, terms: Terms, existing_grant: ExistingGrant | None
) -> tuple[Change, ...]:
    """The change that ends an imported lease's servers at the end of its cleaning time."""
    if existing_grant is None:
        return ()
    servers = frozenset(one.server_id for one in ensemble.members if one.server_id is not None)
    return (EndBookings(servers, terms.occupied.end),) if servers else ()


def made_before(store: Store, identity: RequestIdentity) -> LeaseResult | None:
    """The lease that an earlier request with the same id and content was granted, or None.

    Raises:
        DuplicateName: another request used the same id.
    """
    known = made_by_request("lease", identity, store.lease)
    if known is None:
        return None
    return LeaseResult(
        lease=known,
        decision=store.decision(known.decision_id),
        ensemble=store.ensemble(known.ensemble_id),
        snapshot=store.snapshot(),
        displaced=displaced_by(store, known),
        claims=store.claims(decision_id=known.decision_id),
    )
