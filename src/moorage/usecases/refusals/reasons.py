"""The reasons of a refused decision: conflicts, relaxations, and a sufficient priority."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from moorage.domain.deadline import TimeExpired
from moorage.domain.ensembles import EnsembleChange
from moorage.domain.explain import Relaxation, Stage
from moorage.domain.period import FOREVER, format_instant, parse_instant
from moorage.domain.quotas import MOST_PRIORITY
from moorage.engine.capacity.starts import Starts
from moorage.engine.explain.refusal import NO_SMALL_CHANGE
from moorage.engine.explain.relaxations import MAX_RELAXATIONS
from moorage.usecases.decide.request import LeasePromise, RefusalDetail
from moorage.usecases.decide.search_plan import search_once, visible
from moorage.usecases.preemption.lease_preemption import SHARE, removal_of_leases
from moorage.usecases.refusals.alternatives import with_alternatives
from moorage.usecases.refusals.explanation import (
    LATE,
    UNTRIED,
    explain_request,
    in_time,
    refusal,
    unexplained,
    with_nearest_relaxations,
)
from moorage.usecases.refusals.obstacles import in_time as by_time
from moorage.usecases.refusals.obstacles import stay_obstacles
from moorage.usecases.refusals.stay_alternatives import (
    TIME,
    StayAlternatives,
    shorter,
    stay_alternatives,
)
from moorage.usecases.refusals.trial import ChangedRequestTrial, Trial, WindowRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.errors import Infeasible
    from moorage.domain.explain import Explanation, Window
    from moorage.domain.leases import Lease
    from moorage.domain.period import Period
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.request import Proposal, RequestIdentity
    from moorage.usecases.decide.search_result import Observation, SearchResult
    from moorage.usecases.decide.solution import DecisionOptions
    from moorage.usecases.shared.environment import Environment


def sufficient_priority(
    env: DecideEnvironment,
    proposal: Proposal,
    options: DecisionOptions,
    refused: SearchResult,
    observation: Observation,
) -> Relaxation | None:
    """The lowest priority with which a refused lease would be granted, verified by searches."""
    promise = proposal.promise
    if promise is None or promise.offered or not proposal.hooks.reader.client_reads:
        return None
    budget = env.limits.explanation_budget // SHARE
    removal = removal_of_leases(
        env,
        proposal,
        partial(search_once, env, options),
        refused,
        observation,
        MOST_PRIORITY,
        budget,
    )
    found = None if removal is None else removal.lightest()
    if removal is None or found is None:
        return None
    chosen = [removal.there[one].lease for one in sorted(found)]
    highest = max(one.terms.priority for one in chosen)
    if highest < promise.priority:
        return None  # its own priority suffices; the refused search only ran out of time
    operator = proposal.hooks.reader.operator
    change = EnsembleChange("lease", "terms", "priority", promise.priority, highest + 1)
    return Relaxation(change, 4, result=_displacing(env, chosen, operator=operator))


def _displacing(env: Environment, leases: Sequence[Lease], *, operator: bool) -> str:
    """`displaces lease 1f2e… until …`; for a tenant the number of leases."""
    if operator:
        return "displaces " + ", ".join(
            f"lease {one.id} until {format_instant(one.terms.period.end)}" for one in leases
        )
    if len(leases) == 1:
        return "displaces 1 lease"
    return f"displaces {env.limits.disclosure.count_text(len(leases))} leases"


def explain_refusal(  # noqa: PLR0913 - the request, its result and the environment
    env: DecideEnvironment,
    proposal: Proposal,
    options: DecisionOptions,
    identity: RequestIdentity,
    result: SearchResult,
    observation: Observation,
    *,
    dry_run: bool,
) -> Infeasible:
    """The error of a request that no strategy can place; see `ExplainsRefusal`."""
    ensemble = proposal.ensemble
    reader = proposal.hooks.reader
    if reader.detail is RefusalDetail.NONE:
        why = unexplained(env, result.built, observation.snapshot)
        return refusal(env, result.built, why, identity, ensemble=ensemble, stored=False)
    stored = identity.explained or not (dry_run or not reader.client_reads)
    why = reasons(env, proposal, options, result, observation)
    within = identity.within or identity
    return refusal(env, result.built, why, within, ensemble=ensemble, stored=stored, silent=dry_run)


def reasons(
    env: DecideEnvironment,
    proposal: Proposal,
    options: DecisionOptions,
    result: SearchResult,
    observation: Observation,
) -> Explanation:
    """The explanation of a refused proposal.

    Args:
        env: for the solver, and to read leases.
        proposal: the refused proposal.
        options: its options.
        result: the search result without a placement; see `SearchPlan.search`.
        observation: the ledger as that search read it.
    """
    env = env.with_disclosure_for(operator=proposal.hooks.reader.operator)
    observation = visible(env, proposal, options, observation)
    why = _but_as_it_is(proposal, _reasons(env, proposal, options, result, observation))

    def enough(why: Explanation) -> Explanation:
        more = sufficient_priority(env, proposal, options, result, observation)
        if more is None:
            return why
        return replace(why, relaxations=(*why.relaxations[: MAX_RELAXATIONS - 1], more), note="")

    if why.stage is Stage.TIME:
        why = in_time(why, enough)
    stands = result.clash or result.built.request.fixed
    if stands or not proposal.hooks.reader.client_reads or why.stage is Stage.STATIC:
        return why
    return in_time(
        why,
        lambda why: _with_alternatives_in_time(env, proposal, options, result, observation, why),
    )


def _but_as_it_is(proposal: Proposal, why: Explanation) -> Explanation:
    """The explanation without the relaxation to the present count, if one role is resized."""
    resized_from = proposal.hooks.reader.resized_from
    if len(resized_from) != 1:
        return why
    ((role, count),) = resized_from.items()
    ways = tuple(
        one
        for one in why.relaxations
        if (one.change.subject, one.change.name, one.change.field, one.change.after)
        != ("member", role, "count", count)
    )
    if ways == why.relaxations:
        return why
    return replace(why, relaxations=ways, note=why.note if ways else NO_SMALL_CHANGE)


def _with_alternatives_in_time(
    env: DecideEnvironment,
    proposal: Proposal,
    options: DecisionOptions,
    result: SearchResult,
    observation: Observation,
    why: Explanation,
) -> Explanation:
    """The explanation with the alternatives: earliest window, largest count, other zones."""
    now, limits = observation.snapshot.taken_at, env.limits
    period, lead, cleaning, since = result.period, 0, 0, None
    if proposal.promise is not None:
        lead, cleaning = proposal.promise.lead, proposal.promise.cleaning
        since = now + 2 * limits.notice
    length = FOREVER if period.end == FOREVER else period.end - period.start
    last = now + limits.horizon - (0 if length == FOREVER else length)
    # A stay that begins later is tried like an offer, which displaces no server now.
    promise = proposal.promise or LeasePromise("", period, FOREVER, offered=True)
    window_request = WindowRequest(
        proposal.ensemble,
        result.built.request,
        observation.snapshot,
        observation.exclusive,
        displacing_from=since,
        barred=proposal.known_hosts.barred,
        seed=options.seed,
        trial=Trial(env, proposal, promise, options, observation),
    )
    first = max(period.start, now)
    starts = Starts(first, max(first, last), length)
    otherwise = ChangedRequestTrial(env, proposal, options, observation)
    why = with_alternatives(
        env, why, window_request, result.built, otherwise, starts, lead=lead, cleaning=cleaning
    )
    earliest = why.earliest
    if earliest is None or proposal.promise is not None:
        return why
    why = _of_one_search(why, earliest, period)
    if length == FOREVER:
        return why
    # The window has the length of the requested stay, so it ends after the requested end.
    return replace(why, earliest=replace(earliest, beyond=True))


def _of_one_search(why: Explanation, earliest: Window, period: Period) -> Explanation:
    """The explanation with later starts in relaxations bounded by the earliest window's start.

    Relaxations try starts at the ends of leases only; the stay may fit earlier, when another
    booking ends.
    """

    def sooner(one: Relaxation) -> Relaxation:
        change = one.change
        is_start = (change.subject, change.field) == (TIME, "start")
        if not is_start or parse_instant(str(change.after)) <= earliest.start:
            return one
        return replace(one, change=replace(change, after=format_instant(earliest.start)))

    if earliest.start >= period.end:
        return why
    return replace(why, relaxations=tuple(sooner(one) for one in why.relaxations))


def _timely(search: Callable[[], StayAlternatives]) -> StayAlternatives:
    """The result of `search`; no alternatives, and not sure, if time runs out."""
    try:
        return search()
    except TimeExpired:
        return StayAlternatives((), sure=False)


def _reasons(
    env: DecideEnvironment,
    proposal: Proposal,
    options: DecisionOptions,
    result: SearchResult,
    observation: Observation,
) -> Explanation:
    built, snapshot = result.built, observation.snapshot
    operator = proposal.hooks.reader.operator
    if result.clash:
        why = stay_obstacles(env, built, snapshot, result.staying, result.period, operator=operator)
        less = _timely(lambda: shorter(env, proposal, options, built, observation))
        return replace(why, relaxations=less.relaxations, note="" if less.sure else UNTRIED)
    timely = None
    if proposal.promise is None and not options.as_before:
        timely = _timely(lambda: stay_alternatives(env, proposal, options, built, observation))
        if timely.explanation is not None:
            return timely.explanation
    why = explain_request(env, built, snapshot, seed=options.seed)
    otherwise, lease = (
        ChangedRequestTrial(env, proposal, options, observation),
        proposal.promise is not None,
    )
    why = in_time(why, lambda why: with_nearest_relaxations(env, why, built, otherwise))
    why = in_time(
        why,
        lambda why: by_time(env, why, built, snapshot, operator=operator, lease=lease),
    )
    if timely is None and why.stage is Stage.TIME:
        timely = _timely(lambda: shorter(env, proposal, options, built, observation))
    if timely is None or (timely.sure and not timely.relaxations):
        return why
    note = why.note if why.note in {UNTRIED, LATE} or not timely.relaxations else ""
    note = note if timely.sure else UNTRIED
    return replace(
        why, relaxations=(*timely.relaxations, *why.relaxations)[:MAX_RELAXATIONS], note=note
    )
