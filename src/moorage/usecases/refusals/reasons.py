"""The reasons of a refused decision: conflicts, relaxations, and a sufficient priority."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.changes import Changeset, FinishExplanation
from moorage.domain.deadline import TimeExpired
from moorage.domain.explain import PENDING, EnsembleChange, Relaxation, Stage
from moorage.domain.period import FOREVER, SECOND, format_instant, parse_instant
from moorage.domain.quotas import MOST_PRIORITY
from moorage.engine.capacity.starts import Starts
from moorage.engine.explain.refusal import LATE
from moorage.engine.explain.relaxations import MAX_RELAXATIONS
from moorage.usecases.decide.loop import EXPLAINING
from moorage.usecases.decide.request import LeasePromise, RefusalDetail
from moorage.usecases.decide.search_plan import search_once, visible
from moorage.usecases.preemption.lease_preemption import SHARE, removal_of_leases
from moorage.usecases.refusals.alternatives import with_alternatives
from moorage.usecases.refusals.explanation import (
    UNTRIED,
    alternatives_in_time,
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
from moorage.usecases.refusals.trial import Trial
from moorage.usecases.shared.limits import ShownTo
from moorage.usecases.shared.pending_work import after_answer

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
    from moorage.usecases.shared.pending_work import AfterAnswer

_log = logging.getLogger(__name__)


def explain_refusal(
    env: DecideEnvironment,
    proposal: Proposal,
    options: DecisionOptions,
    identity: RequestIdentity,
    result: SearchResult,
    observation: Observation,
) -> Infeasible:
    """The error of a request that no strategy can place; see `ExplainsRefusal`."""
    ensemble = proposal.ensemble
    reader = proposal.reader
    if reader.detail is RefusalDetail.NONE:
        why = unexplained(env, result.built, observation.snapshot)
        return refusal(env, result.built, why, identity, ensemble=ensemble, stored=False)
    stored = reader.client_reads
    disclosing = env.with_disclosure_for(operator=reader.operator)
    seen = visible(disclosing, proposal, options, observation)
    trial = Trial(disclosing, proposal, options, seen)
    why = _answered(trial, result) if stored else _reasons(trial, result)
    within = identity.within or identity
    return refusal(env, result.built, why, within, ensemble=ensemble, stored=stored)


_COMMITTED_LATER: Final = 5 * SECOND
"""A pending explanation is stored so long after the end of its time limit, at the latest."""


def _answered(trial: Trial, result: SearchResult) -> Explanation:
    """The explanation that is stored and answered with.

    If it takes longer than the client prefers to wait, it is answered without all alternatives.
    Then they are searched for after the answer, in the time that explanations have.
    """
    env, wait, after = trial.env, deadline.client_wait(), after_answer()
    if wait is None or after is None or not after.allow(trial.proposal.ensemble.project_id):
        return _reasons(trial, result)
    with deadline.searching_within(wait):
        why = _reasons(trial, result)
    if why.complete or not wait.passed():
        after.close()
        return why
    seconds = max(env.limits.explanation_budget / SECOND, EXPLAINING)
    until = env.store.now() + int(seconds * SECOND) + _COMMITTED_LATER
    pending = replace(why, note=PENDING, pending_until=until)
    after.leave(partial(_finish, trial, result, pending, seconds, after))
    wait.applied = True
    return pending


def _finish(
    trial: Trial, result: SearchResult, pending: Explanation, seconds: float, after: AfterAnswer
) -> None:
    """Store the explanation with all its alternatives, in place of the one that was answered."""
    env = trial.env
    with deadline.under(deadline.admitted(env.stopwatch, seconds)):
        why = replace(_reasons(trial, result), id=pending.id)
    after.close()  # or a client that reads it, and asks again at once, would find it counted still
    with deadline.under(deadline.admitted(env.stopwatch, _COMMITTED_LATER / SECOND)):
        env.store.commit(Changeset((FinishExplanation(why),)))
    _log.info("explanation %s is finished", why.id)


def _reasons(trial: Trial, result: SearchResult) -> Explanation:
    """The explanation of a proposal, `trial`, whose search gave no placement."""
    why = _conflicts(trial, result)
    if why.stage is Stage.TIME:
        why = alternatives_in_time(why, lambda why: _with_sufficient_priority(trial, result, why))
    stands = result.clash or result.built.request.fixed
    if not (stands or not trial.reader.client_reads or why.stage is Stage.STATIC):
        why = alternatives_in_time(why, lambda why: _with_alternatives(trial, result, why))
        why = alternatives_in_time(why, lambda why: _with_moves(trial, why))
    return why if why.complete or why.note else replace(why, note=LATE)


def _conflicts(trial: Trial, result: SearchResult) -> Explanation:
    """The explanation with conflicts and relaxations."""
    env, built, snapshot = trial.env, result.built, trial.observation.snapshot
    operator, lease = trial.reader.operator, trial.proposal.promise is not None
    if result.clash:
        why = stay_obstacles(env, built, snapshot, result.staying, result.period, operator=operator)
        less = _timely(lambda: shorter(trial, built))
        note = "" if less.sure else UNTRIED
        return replace(why, relaxations=less.relaxations, note=note, complete=less.sure)
    timely = None
    if not lease and not trial.options.as_before:
        timely = _timely(lambda: stay_alternatives(trial, built))
        if timely.explanation is not None:
            return timely.explanation
    present = trial.reader.resized_from
    why = explain_request(env, built, snapshot, seed=trial.options.seed, present=present)
    why = alternatives_in_time(
        why, lambda why: with_nearest_relaxations(env, why, built, trial, present)
    )
    why = in_time(
        why, lambda why: by_time(env, why, built, snapshot, operator=operator, lease=lease)
    )
    if timely is None and why.stage is Stage.TIME:
        timely = _timely(lambda: shorter(trial, built))
    if timely is None or (timely.sure and not timely.relaxations):
        return why
    note = "" if why.complete and timely.relaxations else why.note
    note = note if timely.sure else UNTRIED
    return replace(
        why,
        relaxations=(*timely.relaxations, *why.relaxations)[:MAX_RELAXATIONS],
        note=note,
        complete=why.complete and timely.sure,
    )


def _timely(search: Callable[[], StayAlternatives]) -> StayAlternatives:
    """The result of `search`; no alternatives, and not sure, if time runs out."""
    try:
        with deadline.alternatives() as waited_for:
            return search() if waited_for else StayAlternatives((), sure=False)
    except TimeExpired:
        return StayAlternatives((), sure=False)


def _with_sufficient_priority(trial: Trial, refused: SearchResult, why: Explanation) -> Explanation:
    """The explanation with the lowest priority with which a lease would be granted.

    It is verified by searches; unchanged if there is none.
    """
    env, promise = trial.env, trial.proposal.promise
    if promise is None or promise.offered or not trial.reader.client_reads:
        return why
    removal = removal_of_leases(
        env,
        trial.proposal,
        partial(search_once, env, trial.options),
        refused,
        trial.observation,
        MOST_PRIORITY,
        env.limits.explanation_budget // SHARE,
    )
    found = None if removal is None else removal.lightest()
    if removal is None or found is None:
        return why
    chosen = [removal.there[one].lease for one in sorted(found)]
    highest = max(one.terms.priority for one in chosen)
    if highest < promise.priority:
        return why  # its own priority suffices; the refused search only ran out of time
    change = EnsembleChange("lease", "terms", "priority", promise.priority, highest + 1)
    more = Relaxation(change, 4, result=_displacing(trial, chosen))
    return replace(why, relaxations=(*why.relaxations[: MAX_RELAXATIONS - 1], more), note="")


def _displacing(trial: Trial, leases: Sequence[Lease]) -> str:
    """`displaces lease 1f2e… until …`; for a tenant the number of leases."""
    if trial.reader.operator:
        return "displaces " + ", ".join(
            f"lease {one.id} until {format_instant(one.terms.period.end)}" for one in leases
        )
    if len(leases) == 1:
        return "displaces 1 lease"
    return f"displaces {trial.env.limits.disclosure.count_text(len(leases))} leases"


def _with_alternatives(trial: Trial, result: SearchResult, why: Explanation) -> Explanation:
    """The explanation with the alternatives: earliest window, largest count, other zones."""
    if result.built.alternatives is not None:
        return why  # windows are searched for members that are one thing only
    now, limits = trial.observation.snapshot.taken_at, trial.env.limits
    period, promise = result.period, trial.proposal.promise
    length = FOREVER if period.end == FOREVER else period.end - period.start
    first = max(period.start, now)
    last = now + limits.horizon - (0 if length == FOREVER else length)
    # A stay that begins later is tried like an offer, which displaces no server now.
    windows = trial.with_promise(promise or LeasePromise("", period, FOREVER, offered=True))
    since = None if promise is None else now + 2 * limits.notice
    why = with_alternatives(
        trial.env,
        why,
        windows.window_request(result.built.request, since),
        result.built,
        trial,
        Starts(first, max(first, last), length),
        lead=0 if promise is None else promise.lead,
        cleaning=0 if promise is None else promise.cleaning,
    )
    earliest = why.earliest
    if earliest is None or promise is not None:
        return why
    why = _of_one_search(why, earliest, period)
    if length == FOREVER:
        return why
    # The window has the length of the requested stay, so it ends after the requested end.
    return replace(why, earliest=replace(earliest, beyond=True))


def _with_moves(trial: Trial, why: Explanation) -> Explanation:
    """The explanation with the number of moves that make room, for those who may read it."""
    env, proposal = trial.env, trial.proposal
    readers = {ShownTo.OPERATORS, ShownTo.EVERYONE} if trial.reader.operator else {ShownTo.EVERYONE}
    if proposal.promise is not None or env.limits.moves_shown_to not in readers:
        return why
    members = proposal.selections[0](trial.observation.member_places)
    return replace(why, moves=env.strategies.count_moves(env, proposal.ensemble, members))


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
