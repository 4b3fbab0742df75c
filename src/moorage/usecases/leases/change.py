"""Change a lease: extend, shrink, grow, move, rename; each is one transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutLease
from moorage.domain.errors import InvalidDescription, WrongState
from moorage.domain.leases import (
    Aspect,
    LeaseState,
    LeaseStep,
    check_change,
    lease_after,
)
from moorage.domain.period import Period
from moorage.usecases.decide.loop import DecisionFlow, DecisionRequest, run_decision
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.request import (
    Proposal,
    RefusalReader,
    RequestIdentity,
    resized_from,
)
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.effects.lease_timers import timers_after_change
from moorage.usecases.ensembles.policy_checks import check_policies
from moorage.usecases.leases.external_check import CheckRequest, lease_for_check
from moorage.usecases.leases.host_servers import with_end_of_lease
from moorage.usecases.leases.queries import own_lease
from moorage.usecases.leases.requests import LeaseChange, LeaseResult, RestatedMembers
from moorage.usecases.leases.shaping import (
    check_members,
    checked_end,
    checked_lead,
    checked_start,
    resized,
)
from moorage.usecases.preemption.preempted_leases import preempted_leases
from moorage.usecases.preemption.victims import displaced_for
from moorage.usecases.relocation.lease_promise import promise
from moorage.usecases.shared.access import check_generation
from moorage.usecases.shared.lease_check import UPDATE
from moorage.usecases.shared.quotas import check_quota, defaults
from moorage.usecases.shared.role_resolution import LedgerNames, resolve
from moorage.usecases.waitlist_turn import turn_of_window

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease, Terms
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller
    from moorage.usecases.shared.limits import Limits

__all__ = ["LeaseChange", "LeaseResult", "change_lease"]


def change_lease(
    env: UseCaseEnvironment,
    caller: Caller,
    lease_id: str,
    change: LeaseChange,
    generation: int | None,
    identity: RequestIdentity,
) -> LeaseResult:
    """Change a lease; fields that are None keep their values.

    Members of a role with a new description are placed anew. The lease keeps its present places
    until the changed ones are committed. Members stay where they are if possible, claimed members
    always. Unclaimed members of a pending lease are placed anew if the change does not fit
    otherwise. A role that shrinks loses unclaimed places.

    Raises:
        NotFound: no such lease for this caller.
        StaleGeneration: the lease has another generation.
        WrongState: the lease's state does not allow the change.
        InvalidDescription, LimitExceeded, QuotaExceeded: as for a new lease; a limit or quota never
            refuses a change that uses no more of it than before.
        Contradiction: the policies cannot be met with this number of members on any fleet.
        InUse: the role would have to lose claimed places.
        Infeasible: the changed lease does not fit; the lease stays as it was.
        CheckRefused, Busy: as for a new lease.
    """

    def attempt() -> DecisionFlow[LeaseResult]:
        lease = own_lease(env.store, caller, lease_id)
        check_generation(lease, generation)
        return (yield from _change(env, caller, lease, change, identity))

    return run_decision(env, attempt)


def _change(
    env: UseCaseEnvironment,
    caller: Caller,
    lease: Lease,
    change: LeaseChange,
    identity: RequestIdentity,
) -> DecisionFlow[LeaseResult]:
    now = env.store.now()
    terms = _terms(env.limits, lease, change, now)
    if change.name is not None:
        check_change(lease.state, Aspect.NAME)
    renamed = replace(
        lease,
        name=change.name or lease.name,
        annotations=lease.annotations if change.annotations is None else change.annotations,
        updated_at=now,
    )
    ensemble = env.store.ensemble(lease.ensemble_id)
    if (
        terms == lease.terms
        and change.restated is None
        and all(ensemble.count(role) == count for role, count in change.counts.items())
    ):
        return _renamed(env, lease, renamed, ensemble)
    if change.counts or change.restated:
        check_change(lease.state, Aspect.MEMBERS)
    state = lease_after(lease.state, LeaseStep.CHANGE)
    after = replace(renamed, terms=terms, state=state)
    return (yield from _replaced(env, caller, lease, after, ensemble, change, identity=identity))


def _renamed(
    env: UseCaseEnvironment, lease: Lease, renamed: Lease, ensemble: Ensemble
) -> LeaseResult:
    """Write a change of name and annotations alone, which needs no decision."""
    if renamed != replace(lease, updated_at=renamed.updated_at):
        env.store.commit(Changeset((PutLease(renamed, lease.generation),)))
    return LeaseResult(
        lease=env.store.lease(lease.id),
        decision=env.store.decision(lease.decision_id),
        ensemble=ensemble,
        snapshot=env.store.snapshot(),
        displaced=displaced_for(env.store, lease.id),
        claims=env.store.claims(decision_id=lease.decision_id),
    )


def _terms(limits: Limits, lease: Lease, change: LeaseChange, now: Instant) -> Terms:
    """The terms after the change, if the state allows it."""
    period = lease.terms.period
    start = period.start if change.start is None else change.start
    end = period.end if change.end is None else change.end
    if (start, end) == (period.start, period.end):
        return lease.terms
    if start != period.start:
        check_change(lease.state, Aspect.START)
    if end != period.end:
        check_change(lease.state, Aspect.END)
        if period.end <= now:
            raise WrongState("the lease has ended: its end cannot be changed")
    if end <= start:
        raise InvalidDescription("a lease ends after it starts", path="lease.end")
    terms = lease.terms.moved(Period(start, end))
    if start != period.start:
        terms = checked_lead(checked_start(terms, now), now)
    return checked_end(limits, terms, now)


def _replaced(  # noqa: PLR0913 - what was, what shall be, and how it is asked for
    env: UseCaseEnvironment,
    caller: Caller,
    before: Lease,
    after: Lease,
    ensemble: Ensemble,
    change: LeaseChange,
    *,
    identity: RequestIdentity,
) -> DecisionFlow[LeaseResult]:
    """Decide a changed window or changed members jointly, and write the changed lease."""
    snapshot = env.store.snapshot()
    member_places = locate_members(snapshot, ensemble)
    decision = env.store.decision(before.decision_id)
    stated = _restated(env, ensemble, change.restated)
    changed = resized(env, snapshot, stated, member_places, change.counts, decision.period)
    if change.counts or change.restated:  # so many may be too few for what the policies ask for
        check_policies(snapshot.topology, changed, own=False)
    check_members(env.limits, changed)
    after = replace(after, units=len(changed.members))
    check_quota(env, after, before)
    present = {one.name for one in ensemble.members}
    fresh = frozenset(
        one.name
        for one in changed.members
        if one.name not in present or changed.role(one.name.role) != ensemble.role(one.name.role)
    )
    pending = before.state is LeaseState.PENDING
    promised = promise(after, at=snapshot.taken_at if fresh else None)

    question = CheckRequest(env, caller, UPDATE, lease_for_check(before, ensemble))

    def further_changes(made: Decision) -> tuple[Change, ...]:
        placed = replace(after, decision_id=made.id, updated_at=made.updated_at)
        placed = question.put(placed, changed)
        return (
            PutLease(placed, before.generation, defaults(env.limits)),
            *with_end_of_lease(snapshot, before, ensemble, member_places, after.terms),
            *timers_after_change(placed, env.ids, made.updated_at),
        )

    only_resized = after.terms == before.terms and change.restated is None
    reader = RefusalReader(
        operator=caller.operator,
        detail=change.refusal,
        resized_from=resized_from(ensemble, changed) if only_resized else {},
    )
    proposal = Proposal(
        changed,
        ensemble.generation,
        (lambda _: fresh, *((_all_held(fresh),) if pending else ())),
        freed=frozenset(one.uuid for one in ensemble.members)
        - {one.uuid for one in changed.members},
        before=ensemble,
        restated=frozenset(one.name for one in changed.policies if one not in ensemble.policies),
        promise=replace(promised, outranks=after.terms.priority, gives_back=True),
        waitlist_gate=turn_of_window(env, changed, after.terms),
        further_changes=further_changes,
        reader=reader,
    )
    options = DecisionOptions(objective=decision.objective, seed=decision.solve.seed)
    settled = yield DecisionRequest(
        proposal, options, RequestIdentity(env.ids.uuid(), within=identity)
    )
    lease, displaced = after, settled.displaced
    if settled.written:
        lease, displaced = env.store.lease(before.id), displaced_for(env.store, before.id)
    return LeaseResult(
        lease=lease,
        decision=settled.decision,
        ensemble=settled.ensemble,
        snapshot=settled.snapshot,
        displaced=displaced,
        preempted=preempted_leases(settled.concessions),
        claims=env.store.claims(decision_id=settled.decision.id),
    )


def _restated(
    env: UseCaseEnvironment, ensemble: Ensemble, restated: RestatedMembers | None
) -> Ensemble:
    """The ensemble with its new roles and policies; its members stay.

    Raises:
        UnknownName: a role asks for an unknown resource class.
    """
    if restated is None:
        return ensemble
    for role in resolve(LedgerNames(env.store, None), restated.roles, env.limits.nova):
        ensemble = ensemble.with_role(role)
    return replace(ensemble, policies=restated.policies)


def _all_held(fresh: frozenset[MemberName]) -> Callable[[MemberPlaces], frozenset[MemberName]]:
    """Selects the new members and all members with unclaimed places."""
    return lambda member_places: (
        fresh
        | {name for name, status in member_places.status.items() if status is MemberStatus.HELD}
    )
