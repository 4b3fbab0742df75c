"""Read, decide, commit: the loop behind every joint decision.

If a concurrent commit conflicts with an attempt, its placement is verified again on the newer
snapshot, and solved again only if it no longer holds. Attempts lock nothing, but after a few
conflicts one attempt is made while all other writers wait (ADR-0017).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, cast

from moorage.domain import deadline
from moorage.domain.changes import PutDecision, PutEnsemble
from moorage.domain.errors import (
    Busy,
    CapacityExceeded,
    ConcurrentUpdate,
    ConstraintViolated,
    ConsumerConflict,
    InvalidDescription,
    MoorageError,
    ProviderConflict,
    StaleGeneration,
)
from moorage.domain.period import SECOND
from moorage.usecases.decide.attempt import AttemptMaker
from moorage.usecases.decide.max_additional import roles_of_set
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.decide.progress_events import ProgressEvents
from moorage.usecases.shared.limits import hold_within, time_limit_within
from moorage.usecases.shared.quotas import check_priority
from moorage.usecases.shared.retry import RetryBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.domain.changes import Change, Changeset, Committed
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.attempt import Attempt
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import Proposal, RequestIdentity
    from moorage.usecases.decide.search_result import Concession, DisplacedConsumer
    from moorage.usecases.decide.solution import DecisionOptions

TURN: Final = 4
"""Every TURN-th attempt, and the last one, is made while all other writers wait ("alone")."""
ALONE_MEMBERS: Final = 500
"""Members of the largest ensemble that is decided alone. All writers wait for about half a
millisecond per member, so larger ones are only decided concurrently (ADR-0026)."""
WRITING: Final = 0.0002
"""Seconds per member that the commit and the answer to the client take after a search."""
EXPLAINING: Final = 1.0
"""Least number of seconds for the explanation of a refusal, even past the time limit."""


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """A decision, with the ensemble it is about."""

    decision: Decision
    ensemble: Ensemble
    snapshot: Snapshot
    written: bool = True
    """See `Committed`."""
    concessions: tuple[Concession, ...] = ()
    """What other leases and servers give up for the decision."""
    serials: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """See `Committed`."""

    @property
    def displaced(self) -> tuple[DisplacedConsumer, ...]:
        """Consumers that end early for the decision."""
        return tuple(gone for one in self.concessions for gone in one.displaced)


def unplaced_or_held(ensemble: Ensemble) -> Callable[[MemberPlaces], frozenset[MemberName]]:
    """Select every member without a server, unless its server is being built."""
    keeps = {MemberStatus.BUILDING, MemberStatus.ACTIVE}
    return lambda member_places: frozenset(
        m.name for m in ensemble.members if member_places.of(m.name) not in keeps
    )


def unplaced(ensemble: Ensemble) -> Callable[[MemberPlaces], frozenset[MemberName]]:
    """Select only the members without a place."""
    return lambda member_places: frozenset(
        m.name for m in ensemble.members if m.name not in member_places.places
    )


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A proposal that a use case has made from the ledger, with its options and identity."""

    proposal: Proposal
    options: DecisionOptions
    identity: RequestIdentity


T = TypeVar("T")
DecisionFlow: TypeAlias = Generator[DecisionRequest, DecisionResult, T]
"""A use case as a generator: it reads the ledger, yields a DecisionRequest, is sent the
DecisionResult, and returns its answer.

Errors of the decision are thrown into it. If there is nothing to decide it returns without a yield.
"""


def run_decision(
    env: DecideEnvironment,
    read: Callable[[], DecisionFlow[T]],
    *,
    must_know: Callable[[ConcurrentUpdate], bool] = lambda error: False,  # noqa: ARG005 - nothing
) -> T:
    """Run a use case's decision: read, decide and commit, retried after conflicts.

    A concurrent commit conflicts only if the placement depends on what it changed (see `reliance`).
    After a conflict and a pause, the placement is verified again, and searched for again only if it
    no longer holds; after repeated conflicts the search avoids contended hosts where possible.
    Every `TURN`th attempt, and the last one, is made while all other writers wait, unless the
    ensemble has more than `ALONE_MEMBERS`. If the records that `read` has read changed, it is
    called again.

    The time limit counts from when the request came in (`domain.deadline`) and covers everything.
    Searches leave over the time for writing and answering, so that a decision that runs out of time
    does so before its commit.

    `read` starts the use case's generator and does all reading of the ledger. `must_know` says
    whether a conflict on what was read is raised instead of reading again.

    Raises:
        Infeasible: no placement meets the request; the explanation is stored, unless no client
            reads it.
        InvalidDescription: `max_additional` names no role, or the stay has ended.
        LimitExceeded: the hold, or the project's held places.
        QuotaExceeded: the priority, or the held places.
        HoldExpired: the hold that is to be kept has lapsed meanwhile.
        Undecided: time ran out before a placement or a proof.
        Busy: a queue is full, the write lock was not obtained, or there were too many conflicts; or
            time ran out, and no client reads that.
        StaleGeneration, ConsumerConflict: reading again would not help.
        ConcurrentUpdate: the ensemble or its decision changed, and `must_know` says so.
        WrongState: the ensemble's places belong to a lease, and the proposal is not that lease's.
    """
    with ExitStack() as deadlines:
        return _Loop(env, read, must_know, deadlines).run()


def decide_proposal(
    env: DecideEnvironment,
    proposal: Proposal,
    options: DecisionOptions,
    identity: RequestIdentity,
) -> DecisionResult:
    """Decide a proposal without reading again after conflicts on it; see `run_decision`.

    Raises:
        ConcurrentUpdate: the records that the proposal was made from have changed meanwhile.
        MoorageError: as `run_decision`.
    """

    def read() -> DecisionFlow[DecisionResult]:
        return (yield DecisionRequest(proposal, options, identity))

    return run_decision(env, read, must_know=lambda _: True)


class _Answered(Exception):
    """A decision flow has returned `value`."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


def _resumed(step: Callable[[], DecisionRequest]) -> DecisionRequest:
    """Resume a decision flow; the next request that it yields.

    Raises:
        _Answered: the flow has returned.
    """
    try:
        return step()
    except StopIteration as returned:
        raise _Answered(returned.value) from None
    finally:
        del step  # it may hold an error, whose traceback has this frame


class _Loop(Generic[T]):
    """The attempts at one request, until one is committed or refused."""

    def __init__(
        self,
        env: DecideEnvironment,
        read: Callable[[], DecisionFlow[T]],
        must_know: Callable[[ConcurrentUpdate], bool],
        deadlines: ExitStack,
    ) -> None:
        self._env = env
        self._read = read
        self._must_know = must_know
        self._deadlines = deadlines
        self._budget = RetryBudget(env, env.limits.time_limit)
        self._limited = False
        """Whether the time limit is running."""
        self._progress: ProgressEvents | None = None
        self._alone = False

    def run(self) -> T:
        """Make attempts until the decision flow returns; its return value."""
        reading = maker = None
        while True:
            try:
                if reading is None or maker is None:
                    reading = self._read()
                    maker = self._begun(_resumed(partial(next, reading)))
                settled = self._attempted(maker, reading)
                if settled is not None:
                    self._deadlines.close()
                    _resumed(partial(reading.send, settled))
            except _Answered as answered:
                return cast("T", answered.value)
            except (StaleGeneration, ConsumerConflict):
                raise
            except ConcurrentUpdate as error:
                if self._must_know(error):
                    raise
                if not self._budget.pause():
                    raise Busy("concurrent changes too often; retry") from error
                maker, self._alone = None, False

    def _begun(self, request: DecisionRequest) -> AttemptMaker:
        """The attempt maker of a request; the first one starts the time limit."""
        env, proposal, options = self._env, request.proposal, request.options
        _check_roles(proposal.ensemble, options)
        _check_priority(env, proposal, options)
        hold = hold_within(env.limits, options.hold)
        time_limit = time_limit_within(env.limits, options.time_limit)
        if not self._limited:
            self._limited = True
            writing = len(proposal.ensemble.members) * WRITING
            self._deadlines.enter_context(deadline.within(env.stopwatch, time_limit / SECOND))
            self._deadlines.enter_context(deadline.leaving(writing))
            self._budget.limit = time_limit
            if proposal.reader.client_reads:
                self._progress = ProgressEvents(env, proposal, time_limit)
        return AttemptMaker(
            env,
            proposal,
            options,
            request.identity,
            hold,
            time_limit,
            None if self._progress is None else self._progress.hear,
        )

    def _attempted(self, maker: AttemptMaker, reading: DecisionFlow[T]) -> DecisionResult | None:
        """Make one attempt; None: another one is needed. Errors are thrown into the flow."""
        problem: MoorageError | None
        try:
            attempt, done = (_alone if self._alone else _freely)(maker)
        except (ProviderConflict, CapacityExceeded, ConstraintViolated) as overtaken:
            problem = self._overtaken(maker, overtaken)
        except Busy as busy:
            # A search that is too long to be made alone is tried again with the full time limit.
            more = self._alone and self._budget.pause()
            self._alone, problem = False, None if more else maker.unanswered(busy)
        except MoorageError as error:
            problem = error
        else:
            if attempt is None:
                self._alone = False
                return None
            if attempt.changeset is not None and done is not None:
                return _settled(maker, attempt, attempt.changeset, done)
            with deadline.allowing(maker.explaining), deadline.at_least(EXPLAINING):
                problem = maker.refusal(attempt)
        try:
            if problem is not None:
                _resumed(partial(reading.throw, problem))
        finally:
            del problem  # its traceback has this frame, and the frame all that was searched
        return None

    def _overtaken(
        self,
        maker: AttemptMaker,
        overtaken: ProviderConflict | CapacityExceeded | ConstraintViolated,
    ) -> Busy | None:
        """Pause before the next attempt; the error if that was the last one."""
        maker.learn(overtaken)
        budget = self._budget
        left = budget.pause()
        may_be_alone = len(maker.proposal.ensemble.members) <= ALONE_MEMBERS
        if not left and (self._alone or not may_be_alone):
            busy = Busy(f"gave up after {budget.retries.attempts} conflicting commits; retry")
            busy.__cause__ = overtaken
            return busy
        self._alone = may_be_alone and (not left or budget.retries.attempts % TURN == 0)
        return None


def _settled(
    maker: AttemptMaker, attempt: Attempt, changeset: Changeset, done: Committed
) -> DecisionResult:
    """The result of an attempt, with the decision as it was stored, or was to be."""
    concessions, written = attempt.result.concessions, done.written
    return DecisionResult(
        *_put(changeset.changes, written=written),
        maker.env.store.snapshot() if written else attempt.observation.snapshot,
        written,
        concessions,
        done.serials,
    )


def _freely(maker: AttemptMaker) -> tuple[Attempt | None, Committed | None]:
    """An attempt with optimistic concurrency; None: waitlist entries were tried first."""
    with maker.env.searches.turn(maker.proposal.ensemble.project_id):
        attempt = maker.attempt()
        if attempt is None or attempt.changeset is None:
            return attempt, None
        deadline.check()  # the last check: after the commit the time limit no longer applies
        with deadline.at_least(deadline.COMMITTING):
            return attempt, maker.env.store.commit(attempt.changeset)


def _alone(maker: AttemptMaker) -> tuple[Attempt | None, Committed | None]:
    """An attempt with exclusive write access; None: waitlist entries come first."""
    attempts: list[Attempt | None] = []

    def propose() -> Changeset | None:
        attempt = maker.attempt(alone=True)
        attempts.append(attempt)
        return None if attempt is None else attempt.changeset

    with deadline.at_least(deadline.COMMITTING):
        done = maker.env.store.commit_alone(propose)
    return attempts[-1], done


def _put(changes: Sequence[Change], *, written: bool) -> tuple[Decision, Ensemble]:
    """The new decision and its ensemble as stored by these changes, or as put if not `written`.

    They create no other decision, and their last ensemble is the decision's.
    """
    decisions = [one for one in changes if isinstance(one, PutDecision) and one.generation is None]
    ensembles = [one for one in changes if isinstance(one, PutEnsemble)]
    decision, ensemble = decisions[-1], ensembles[-1]
    return decision.decision, ensemble.stored if written else ensemble.ensemble


def _check_roles(ensemble: Ensemble, options: DecisionOptions) -> None:
    """Check that `max_additional` names roles, in a set each one once."""
    known = {role.name for role in ensemble.roles}
    for name in options.additional:
        roles = roles_of_set(name)
        for role in roles:
            if role not in known:
                raise InvalidDescription(f"no role {role}", path="max_additional")
        if len(set(roles)) < len(roles):
            raise InvalidDescription(f"a role is named twice in {name}", path="max_additional")


def _check_priority(env: DecideEnvironment, proposal: Proposal, options: DecisionOptions) -> None:
    """Check that the project may request the stay's priority, unless the stay has it already."""
    if options.priority and not (options.as_before or options.any_priority):
        check_priority(env, proposal.ensemble.project_id, options.priority)
