"""Request a lease that may wait: it is granted, or put on the waitlist."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutEntry
from moorage.domain.errors import (
    Infeasible,
    InvalidDescription,
    QuotaExceeded,
)
from moorage.domain.explain import Explanation, Stage
from moorage.domain.period import Period
from moorage.domain.quotas import QuotaName
from moorage.domain.waitlist import WaitlistEntry, WaitsFor, needed
from moorage.usecases.decide.request import RefusalDetail, RequestIdentity
from moorage.usecases.ensembles.create import ensemble_from_description
from moorage.usecases.leases.create import check_leasable, create_lease, made_before
from moorage.usecases.leases.shaping import check_margins, checked_end, checked_lead, checked_start
from moorage.usecases.shared.access import made_by_request, own_ensemble
from moorage.usecases.shared.quotas import defaults
from moorage.usecases.waitlist.estimates import estimate_entry
from moorage.usecases.waitlist.queries import ListedEntry, listed_entry
from moorage.usecases.waitlist.starts import NoWindow, first_that_fits, unexplained

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.leases.requests import LeaseRequest, LeaseResult
    from moorage.usecases.ports import Caller, Store


@dataclass(frozen=True, slots=True)
class WaitRequest:
    """The terms on which a lease request waits."""

    latest: Instant | None = None
    """The latest acceptable start; None: the requested start only, unless it floats."""
    until: Instant | None = None
    """When the entry expires; None: once its latest start has passed."""
    floats: bool = False
    """Whether the request has no start of its own: any start within the horizon is acceptable."""


def create_or_wait(
    env: UseCaseEnvironment,
    caller: Caller,
    request: LeaseRequest,
    wait: WaitRequest,
    identity: RequestIdentity,
) -> LeaseResult | ListedEntry:
    """Grant a lease at the earliest acceptable start, or put it on the waitlist.

    A repeat of the request with the same id returns its entry, or the lease it became.

    Raises:
        InvalidDescription: the range of starts is empty or in the past; or as for a lease.
        Infeasible: the request does not fit an empty fleet either, so waiting does not help.
        LimitExceeded: as for a lease.
        QuotaExceeded: the project has too many entries, or may not use the priority.
        NotFound, WrongState, DuplicateName, CheckRefused, Busy: as for a lease.
    """
    if (made := made_before(env.store, identity)) is not None:
        return made
    if (known := _entered_before(env.store, identity)) is not None:
        return known
    now = env.store.now()
    request, entry = _entry(env, caller, request, wait, identity, now)
    try:
        return _at_once(env, caller, request, entry, identity)
    except QuotaExceeded as refused:
        if refused.what == QuotaName.PRIORITY:  # its place in the list would be one it may not have
            raise
        entry = replace(entry, waits_for=WaitsFor.QUOTA, why=refused.message)
    except Infeasible as refused:
        why = refused.explanation
        assert isinstance(why, Explanation)
        if why.stage is Stage.STATIC:
            raise
        kept = why.id if refused.stored else None
        entry = replace(entry, why=refused.message, explanation=kept)
    entry = _with_ensemble(env, caller, request, entry)
    done = env.store.commit(Changeset((PutEntry(entry, None, _limit(env)),)))
    if done.written:
        estimate_entry(env, entry.id)
    return listed_entry(env.store, env.store.waitlist_entry(entry.id))


def _limit(env: UseCaseEnvironment) -> int:
    """The default limit on a project's entries."""
    return defaults(env.limits).limit(QuotaName.WAITLIST, None)


def _at_once(
    env: UseCaseEnvironment,
    caller: Caller,
    request: LeaseRequest,
    entry: WaitlistEntry,
    identity: RequestIdentity,
) -> LeaseResult:
    """Grant the lease now; a refusal is that of its first start."""
    length = request.terms.period.end - request.terms.period.start

    def create(start: Instant) -> LeaseResult:
        terms = request.terms.moved(Period(start, start + length))
        one = replace(request, terms=terms, refusal=RefusalDetail.UNSTORED)
        return create_lease(unexplained(env), caller, one, identity)

    first = entry.first_at(env.store.now())
    if entry.latest > request.terms.period.start:
        ensemble = _requested_ensemble(env, caller, request)
        try:
            if first <= entry.latest:
                return first_that_fits(
                    env, ensemble, entry, first, create, operator=caller.operator
                )
        except NoWindow:
            pass  # said of the first start, with what is in the way there
        first = min(first, entry.latest)
        request = replace(request, terms=request.terms.moved(Period(first, first + length)))
    return create_lease(env, caller, request, identity)


def _entry(
    env: UseCaseEnvironment,
    caller: Caller,
    request: LeaseRequest,
    wait: WaitRequest,
    identity: RequestIdentity,
    now: Instant,
) -> tuple[LeaseRequest, WaitlistEntry]:
    """The request with a start that is not in the past, and the entry it would become."""
    check_margins(env.limits, lead=request.terms.lead, cleaning=request.terms.cleaning)
    terms = checked_start(request.terms, now)
    length = terms.period.end - terms.period.start
    first, horizon = terms.period.start, now + env.limits.horizon - length - terms.cleaning
    last = first if wait.latest is None else wait.latest
    if wait.floats and wait.latest is None:
        last = horizon if wait.until is None else min(horizon, wait.until)
    if last <= first:
        terms = checked_lead(terms, now)
    until = last + 1 if wait.until is None else wait.until
    if last < first:
        raise InvalidDescription(
            "the latest start lies before the start", path="lease.wait.latest_start"
        )
    if until <= now:
        raise InvalidDescription("the end of the wait lies in the past", path="lease.wait.until")
    checked_end(env.limits, terms.moved(Period(last, last + length)), now)
    request = replace(request, terms=terms)
    entry = WaitlistEntry(
        id=identity.id,
        project_id=caller.project_id,
        user_id=caller.user_id,
        name=request.name,
        terms=terms,
        latest=last,
        until=until,
        entered_at=now,
        ensemble_id=request.ensemble_id or "",
        roles=caller.roles,
        any_priority=request.any_priority,
        asked_from=caller.project_id,
        actions=request.actions,
        annotations=request.annotations,
        objective=request.objective,
        seed=request.seed,
        digest=identity.digest,
        created_at=now,
        updated_at=now,
    )
    return request, entry


def _requested_ensemble(env: UseCaseEnvironment, caller: Caller, request: LeaseRequest) -> Ensemble:
    """The ensemble to place."""
    if request.description is not None:
        ensemble = ensemble_from_description(
            env, caller, request.description, RequestIdentity(env.ids.uuid())
        )
    else:
        assert request.ensemble_id is not None, "a lease is of one of them"
        ensemble = own_ensemble(env.store, caller, request.ensemble_id)
    check_leasable(ensemble)
    return ensemble


def _with_ensemble(
    env: UseCaseEnvironment, caller: Caller, request: LeaseRequest, entry: WaitlistEntry
) -> WaitlistEntry:
    ensemble = _requested_ensemble(env, caller, request)
    return replace(
        entry,
        project_id=ensemble.project_id,
        ensemble_id=ensemble.id,
        ensemble=None if request.description is None else ensemble,
        units=len(ensemble.members),
        classes=needed(ensemble),
    )


def _entered_before(store: Store, identity: RequestIdentity) -> ListedEntry | None:
    """The entry that the same request made before, in any state, or None."""
    known = made_by_request("lease", identity, store.waitlist_entry)
    if known is None:
        return None
    return listed_entry(store, known)
