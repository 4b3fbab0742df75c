"""One attempt at a decision: a snapshot, a placement found in it, and the changeset to commit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline, search_progress
from moorage.domain.deadline import TimeExpired
from moorage.domain.errors import WrongState
from moorage.domain.leases import LeaseState
from moorage.domain.period import SECOND
from moorage.usecases.decide.decision import (
    DecisionBasis,
    check_held_quota,
    decision_for,
    decision_record,
    held_quota_conditions,
)
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.reliance import reliance
from moorage.usecases.decide.search_plan import SearchPlan
from moorage.usecases.decide.search_result import Observation, SearchResult
from moorage.usecases.decide.transition import check_transition
from moorage.usecases.decide.writes import current_decision, decision_changes
from moorage.usecases.shared.limits import with_explanation_within

if TYPE_CHECKING:
    from moorage.domain.changes import Changeset
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.errors import (
        Busy,
        CapacityExceeded,
        ConstraintViolated,
        MoorageError,
        ProviderConflict,
    )
    from moorage.domain.period import Duration
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import Proposal, RequestIdentity
    from moorage.usecases.decide.solution import DecisionOptions
    from moorage.usecases.shared.limits import Limits

MOMENT: Final = SECOND // 5
"""Time limit of each search while all other writers wait."""
_PROPOSING: Final = 0.1
"""Seconds of the time limit that a search leaves over, as a solver may overrun its own limit."""
_PROPOSING_ONE: Final = 0.0001
"""Seconds left over for each member, for making its changes."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one attempt; nothing is written yet."""

    observation: Observation
    result: SearchResult
    changeset: Changeset | None = None
    """The changeset to commit; None: no placement meets the request."""


@dataclass(eq=False)
class AttemptMaker:
    """Makes attempts at one request; later ones reuse earlier answers and conflicts."""

    env: DecideEnvironment
    proposal: Proposal
    options: DecisionOptions
    identity: RequestIdentity
    hold: Duration
    time_limit: Duration
    progress: search_progress.Listener | None = None
    """Hears of the progress of searches, unless all other writers wait for them."""

    def __post_init__(self) -> None:
        self._plan = SearchPlan(self.env, self.proposal, self.options, self.time_limit)
        self._observation: Observation | None = None
        self._attempts = 0

    def attempt(self, *, alone: bool = False) -> Attempt | None:
        """Plan on the newest snapshot; None: entries of the waitlist come first.

        With `alone` all other writers wait for this attempt: each search is limited to `MOMENT`,
        and entries of the waitlist are only detected. Without, they were tried if it returns None.

        Raises:
            Busy: time ran out before an answer or a proof.
            ConcurrentUpdate, QuotaExceeded, HoldExpired, WrongState: see `loop.decide_proposal`.
        """
        env = self._hurried() if alone else self.env
        self._attempts += 1
        self._plan.allow(MOMENT if alone else self.time_limit)
        store, proposal = env.store, self.proposal
        # A new ensemble has no decision yet.
        new = proposal.generation is None
        before = None if new else current_decision(store, proposal.ensemble)
        _check_lease(env, proposal, before)
        snapshot = store.snapshot()
        if not proposal.waitlist_gate(snapshot, detect_only=alone):
            return None
        member_places = locate_members(snapshot, proposal.ensemble)
        if self._observation is None:
            self._check_quota(member_places)
        exclusive = store.exclusive_ensembles(snapshot).ensembles
        there = tuple(one for one in exclusive if not _is_freed(one, proposal))
        observation = self._observation = Observation(snapshot, member_places, there)
        left_over = _PROPOSING + len(proposal.ensemble.members) * _PROPOSING_ONE
        hears = None if alone else self.progress
        with deadline.leaving(left_over), search_progress.listening(hears):
            result = self._plan.search(observation)
        if result.placement is None:
            return Attempt(observation, result)
        deadline.check()
        check_transition(snapshot, proposal.ensemble, result.placement)
        answer = DecisionBasis(snapshot, member_places, result.placement, before, result)
        decision = decision_for(env, proposal, self.options, answer, self.identity, self.hold)
        record = decision_record(decision, answer, self.options, self.time_limit, self._attempts)
        changeset = replace(
            _relying(answer),
            changes=(
                *decision_changes(env, proposal, decision, answer, record),
                *held_quota_conditions(env, decision, proposal.ensemble, answer),
                *env.strategies.restore(env, proposal, decision, answer),
            ),
            exclusive_revision=snapshot.exclusive_revision,
        )
        return Attempt(observation, result, changeset)

    def _check_quota(self, member_places: MemberPlaces) -> None:
        """Check the held places before anything is searched for, of requests of clients only.

        What exceeds the quota takes no search and no turn at writing from others. The commit judges
        it again. Not of a request that frees places of its own: that may make room. A re-decision
        in the background handles `Infeasible`, whatever the quota.

        Raises:
            QuotaExceeded, OtherQuotaExceeded: see `check_held_quota`.
        """
        proposal = self.proposal
        if proposal.promise is None and not proposal.freed and proposal.reader.client_reads:
            placed = proposal.selections[0](member_places)
            check_held_quota(self.env, proposal.ensemble, placed, member_places)

    def learn(self, overtaken: ProviderConflict | CapacityExceeded | ConstraintViolated) -> None:
        """Record the conflict at commit, for the next search."""
        if self._observation is not None:
            self._plan.learn(overtaken, self._observation.snapshot)

    @property
    def explaining(self) -> float:
        """Seconds for the explanation of a refusal."""
        return self._explanation_limits.explanation_budget / SECOND

    @property
    def _explanation_limits(self) -> Limits:
        return with_explanation_within(self.env.limits, self.time_limit)

    def refusal(self, attempt: Attempt) -> MoorageError:
        """The error of an attempt without a placement: the reasons."""
        return self.env.strategies.explain(
            replace(self.env, limits=self._explanation_limits),
            self.proposal,
            self.options,
            self.identity,
            attempt.result,
            attempt.observation,
        )

    def unanswered(self, busy: Busy) -> Busy:
        """The error of a request without an answer; if time ran out, the client is told that."""
        if not (isinstance(busy, TimeExpired) and self.proposal.reader.client_reads):
            return busy
        return self.env.strategies.undecided(self.env, self.proposal, self._plan.unsolved)

    def _hurried(self) -> DecideEnvironment:
        """The environment with a time limit of `MOMENT` for auxiliary searches."""
        return replace(self.env, limits=replace(self.env.limits, time_limit=MOMENT))


def _is_freed(owner: Ensemble, proposal: Proposal) -> bool:
    """Whether the proposal frees every member of this exclusive ensemble."""
    return bool(owner.members) and all(one.uuid in proposal.freed for one in owner.members)


def _relying(answer: DecisionBasis) -> Changeset:
    """An empty changeset that relies on what the decision depends on, concessions included."""
    result = answer.result
    giving_way: dict[str, frozenset[str]] = {}
    for one in result.concessions:
        giving_way |= one.relied()
    beside = frozenset[str]().union(*(one.providers() for one in result.concessions))
    return reliance(
        answer.snapshot, answer.placement, answer.member_places, giving_way, beside, result.ends_by
    )


def _check_lease(env: DecideEnvironment, proposal: Proposal, before: Decision | None) -> None:
    """Check that the ensemble has no lease, or that the proposal is for that lease."""
    lease_id = None if before is None else before.lease_id
    if lease_id is None or (proposal.promise is not None and proposal.promise.lease_id == lease_id):
        return
    if env.store.lease(lease_id).state is not LeaseState.CLOSED:
        raise WrongState(
            f"the ensemble's places belong to lease {lease_id}: change or cancel the lease"
        )
