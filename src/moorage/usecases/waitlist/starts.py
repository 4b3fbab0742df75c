"""The earliest start in a range that capacity and quotas allow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.disclosure import EXACT
from moorage.domain.errors import Busy, Infeasible, QuotaExceeded
from moorage.domain.leases import Lease, LeaseState
from moorage.domain.period import FOREVER, Period
from moorage.engine.capacity.starts import Starts
from moorage.usecases.decide.loop import unplaced
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import LeasePromise, Proposal
from moorage.usecases.decide.search_result import Observation
from moorage.usecases.decide.solution import DecisionOptions, request_for
from moorage.usecases.refusals.earliest_window import disclosed_earliest_start
from moorage.usecases.refusals.trial import Trial, WindowRequest
from moorage.usecases.shared.access import own_ensemble
from moorage.usecases.shared.quotas import check_quota, quota_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.disclosure import Disclosure
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.leases.requests import LeaseResult
    from moorage.usecases.ports import Caller

_TRIES: Final = 20
"""How many windows may be found and then refused before the search of a range ends."""


class NoWindow(Infeasible):
    """No start of a range fits; the obstacles are those of its first start."""


def unexplained(env: UseCaseEnvironment) -> UseCaseEnvironment:
    """The environment without a budget for explanations."""
    return replace(env, limits=replace(env.limits, explanation_budget=0))


def placeable(env: UseCaseEnvironment, caller: Caller, entry: WaitlistEntry) -> Ensemble:
    """The ensemble of an entry.

    Raises:
        NotFound: the ensemble is gone.
    """
    if entry.ensemble is not None:
        return entry.ensemble
    return own_ensemble(env.store, caller, entry.ensemble_id)


def quota_refusal(
    env: UseCaseEnvironment, entry: WaitlistEntry, start: Instant
) -> QuotaExceeded | None:
    """The quota refusal of an entry's lease with this start; None if quotas allow it."""
    length = entry.terms.period.end - entry.terms.period.start
    lease = Lease(
        *(entry.id, entry.project_id, entry.user_id, entry.name, entry.ensemble_id, ""),
        terms=entry.terms.moved(Period(start, start + length)),
        state=LeaseState.PENDING,
        reservations=(),
        units=entry.units,
    )
    try:
        check_quota(env, lease, None, quota_limits(env.limits, any_priority=entry.any_priority))
    except QuotaExceeded as refused:
        return refused
    return None


def window_request_of(
    env: UseCaseEnvironment,
    ensemble: Ensemble,
    starts: Starts,
    seen: tuple[Snapshot, Sequence[Ensemble]],
    entry: WaitlistEntry,
) -> WindowRequest:
    """The window request of an entry over a range of starts."""
    snapshot, exclusive = seen
    members = frozenset(one.name for one in ensemble.members)
    member_places, terms = locate_members(snapshot, ensemble), entry.terms
    promise = LeasePromise(
        *(entry.id, starts.whole, FOREVER),
        cleaning=terms.cleaning,
        lead=terms.lead,
        priority=terms.priority,
        outranks=terms.priority,
    )
    proposal = Proposal(ensemble, None, (unplaced(ensemble),), promise=promise)
    options = DecisionOptions(objective=entry.objective, seed=entry.seed)
    trial = Trial(env, proposal, options, Observation(snapshot, member_places, tuple(exclusive)))
    request = request_for(ensemble, member_places, members, starts.whole, entry.objective)
    return trial.window_request(request, snapshot.taken_at + 2 * env.limits.notice)


def starts_of(
    entry: WaitlistEntry, first: Instant, last: Instant, told: Disclosure = EXACT
) -> Starts:
    """The range of booked periods for these starts, with lead and cleaning time."""
    lead = entry.terms.lead
    return Starts(first - lead, last - lead, entry.length, told)


def first_that_fits(
    env: UseCaseEnvironment,
    ensemble: Ensemble,
    entry: WaitlistEntry,
    first: Instant,
    create: Callable[[Instant], LeaseResult],
    *,
    operator: bool,
) -> LeaseResult:
    """Grant the lease in the earliest window from `first` on.

    A tenant's lease begins at `first`, on the disclosure's grid of instants, or at the last start
    of the range, so its start does not disclose when another project's lease ends.

    `first` is the first start that is not in the past; `create` grants the lease with a given
    start. With `operator` it may begin exactly where another project's ends.

    Raises:
        NoWindow: no start fits.
        Busy: time ran out before a window was found, or a proof that there is none.
        QuotaExceeded: the project's quota allows no start.
    """
    later, known = False, True
    for _ in range(_TRIES):
        snapshot = env.store.snapshot()
        exclusive = env.store.exclusive_ensembles(snapshot).ensembles
        told = env.with_disclosure_for(operator=operator).limits.disclosure
        starts = starts_of(entry, first, entry.latest, told)
        window_request = window_request_of(env, ensemble, starts, (snapshot, exclusive), entry)
        sought = disclosed_earliest_start(
            env, window_request, starts, time_limit=env.limits.time_limit, later=later
        )
        known = known and sought.proved_without_relocation
        if sought.start is None:
            break
        start = sought.start + entry.terms.lead
        try:
            return create(start)
        except QuotaExceeded as refused:
            passes = refused.start_at_once
            if passes is None or not start < passes <= entry.latest:
                raise
            first, later = passes, False
        except Infeasible:
            # The capacity was taken meanwhile, or displacement does not make enough room.
            first, later = start, True
    if not known:
        raise Busy("time ran out before a window was found, or a proof that there is none")
    raise NoWindow("no start of the range fits", explanation=None)
