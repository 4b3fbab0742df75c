"""Read, decide, commit: the loop behind every joint decision.

An answer that a concurrent commit overtook is judged again on the newer snapshot, and solved
again only if it broke. Nothing is locked while an answer is looked for, until that has been in vain
a few times: then for one attempt nobody else writes (ADR-0017).
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
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.shared.limits import hold_within, time_limit_within
from moorage.usecases.shared.quotas import check_priority
from moorage.usecases.shared.retry import RetryBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.domain.changes import Change, Changeset, Committed
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.attempt import Attempt
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import Proposal, RequestIdentity
    from moorage.usecases.decide.search_result import Concession, DisplacedConsumer
    from moorage.usecases.decide.solution import DecisionOptions

TURN: Final = 4
"""Every so many attempts one is made alone, and the last one in any case."""
ALONE_MEMBERS: Final = 500
"""Members of a decision that may be made alone. All writers wait for it, about half a millisecond
for each member, so a larger one is only made beside others (ADR-0026)."""
WRITING: Final = 0.0002
"""Seconds for each member that a commit and the answer to a client take after a search."""
EXPLAINING: Final = 1.0
"""Seconds that a refusal has for its reasons, however late it was proved."""
LAST: Final = 1.0
"""Seconds that an attempt has while all others wait, however much was used by those before it."""


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """A decision, with the ensemble it is about; with `dry_run` nothing was written."""

    decision: Decision
    ensemble: Ensemble
    snapshot: Snapshot
    dry_run: bool = False
    concessions: tuple[Concession, ...] = ()
    """What others give up for it."""
    serials: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """See `Committed`."""

    @property
    def displaced(self) -> tuple[DisplacedConsumer, ...]:
        """Consumers that end early for the decision."""
        return tuple(gone for one in self.concessions for gone in one.displaced)


def unplaced_or_held(ensemble: Ensemble) -> Callable[[MemberPlaces], frozenset[MemberName]]:
    """Place every member anew that no server has or is being built for."""
    keeps = {MemberStatus.BUILDING, MemberStatus.ACTIVE}
    return lambda stand: frozenset(
        m.name for m in ensemble.members if stand.of(m.name) not in keeps
    )


def unplaced(ensemble: Ensemble) -> Callable[[MemberPlaces], frozenset[MemberName]]:
    """Place only members that stand nowhere."""
    return lambda stand: frozenset(m.name for m in ensemble.members if m.name not in stand.places)


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A proposal with its options and identity, as a use case has read the ledger."""

    proposal: Proposal
    ask: DecisionOptions
    naming: RequestIdentity


T = TypeVar("T")
DecisionFlow: TypeAlias = Generator[DecisionRequest, DecisionResult, T]
"""A verb that reads, yields what is to be decided, is sent the decision, and returns its answer.

It is thrown what the decision raises. One that has nothing to decide returns without a yield.
"""


def run_decision(
    env: DecideEnvironment,
    read: Callable[[], DecisionFlow[T]],
    *,
    dry_run: bool,
    must_know: Callable[[ConcurrentUpdate], bool] = lambda error: False,  # noqa: ARG005 - nothing
) -> T:
    """Run a use case's decision: read, decide and commit, retried after conflicts.

    What others commit meanwhile matters only where the answer depends on it (see `reliance`). An
    answer that is overtaken is judged anew after a pause, and looked for anew only if it broke;
    if that happens again, then away from the hosts that others are busy with, where possible.
    Every `TURN`th attempt, and the last one, is made while all others who write wait, unless there
    are more than `ALONE_MEMBERS`. Where what was read has changed, it is read again.

    The time limit covers all of it, counted from when the request came in (`domain.deadline`). What
    it takes to write and tell so many members is left to that: where time runs out it does so
    before the commit.

    Args:
        env: the ports and the strategies.
        read: begins a reading; it does all that depends on the ledger.
        dry_run: whether nothing is written.
        must_know: which changes of what was read the caller must be told.

    Raises:
        Infeasible: no placement meets the request; the explanation is stored, unless
            this is a dry run, or nobody asked.
        InvalidDescription: `max_additional` names no role with members, or the stay has ended.
        LimitExceeded: the hold, or the project's held places.
        QuotaExceeded: the priority, or the held places.
        HoldExpired: the hold to go on with has lapsed meanwhile.
        Busy: time ran out before an answer or a proof, no turn came to write, or it was overtaken
            too often.
        StaleGeneration, ConsumerConflict: reading again would not change it.
        ConcurrentUpdate: the ensemble or its decision changed meanwhile, and the caller must know.
        WrongState: the places are a lease's, and this is not that lease's affair.
    """
    with ExitStack() as deadlines:
        return _Loop(env, read, must_know, dry_run, deadlines).run()


def decide_proposal(
    env: DecideEnvironment,
    proposal: Proposal,
    ask: DecisionOptions,
    naming: RequestIdentity,
    *,
    dry_run: bool,
) -> DecisionResult:
    """Decide a proposal that is not read again; see `run_decision`.

    Raises:
        ConcurrentUpdate: what it was made from has changed meanwhile; and as `run_decision`.
    """

    def read() -> DecisionFlow[DecisionResult]:
        return (yield DecisionRequest(proposal, ask, naming))

    return run_decision(env, read, dry_run=dry_run, must_know=lambda _: True)


class _Answered(Exception):
    """Raised when a flow has returned this value."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


def _resumed(step: Callable[[], DecisionRequest]) -> DecisionRequest:
    """The next request that a flow yields.

    Raises:
        _Answered: it has returned.
    """
    try:
        return step()
    except StopIteration as returned:
        raise _Answered(returned.value) from None


class _Loop(Generic[T]):
    """The attempts at one request, until one is committed or refused."""

    def __init__(
        self,
        env: DecideEnvironment,
        read: Callable[[], DecisionFlow[T]],
        must_know: Callable[[ConcurrentUpdate], bool],
        dry_run: bool,  # noqa: FBT001 - handed on
        deadlines: ExitStack,
    ) -> None:
        self._env = env
        self._read = read
        self._must_know = must_know
        self._dry_run = dry_run
        self._deadlines = deadlines
        self._budget = RetryBudget(env, env.limits.time_limit)
        self._limited = False
        """Whether the time limit has begun."""
        self._alone = False

    def run(self) -> T:
        """Attempt after attempt; what the reading makes of the decision."""
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
                    raise Busy("others changed it too often meanwhile") from error
                maker, self._alone = None, False

    def _begun(self, asked: DecisionRequest) -> AttemptMaker:
        """The attempt maker of a request; the first one starts the time limit."""
        env, proposal, ask = self._env, asked.proposal, asked.ask
        _check_roles(proposal.ensemble, ask)
        _check_priority(env, proposal, ask)
        hold = hold_within(env.limits, ask.hold)
        time_limit = time_limit_within(env.limits, ask.time_limit)
        if not self._limited:
            self._limited = True
            writing = len(proposal.ensemble.members) * WRITING
            self._deadlines.enter_context(deadline.within(env.stopwatch, time_limit / SECOND))
            self._deadlines.enter_context(deadline.leaving(writing))
            self._budget.limit = time_limit
        return AttemptMaker(env, proposal, ask, asked.naming, hold, time_limit, self._dry_run)

    def _attempted(self, maker: AttemptMaker, reading: DecisionFlow[T]) -> DecisionResult | None:
        """One attempt; None: another is due. The reading is thrown any other error."""
        problem: MoorageError | None
        try:
            attempt, done = (_alone if self._alone else _freely)(maker)
        except (ProviderConflict, CapacityExceeded, ConstraintViolated) as overtaken:
            problem = self._overtaken(maker, overtaken)
        except Busy as busy:
            # What could not be told in a moment is looked at with more time.
            more = self._alone and self._budget.pause()
            self._alone, problem = False, None if more else busy
        except MoorageError as error:
            problem = error
        else:
            if attempt is None:
                self._alone = False
                return None
            if attempt.decision is not None:
                return _settled(maker, attempt, attempt.decision, done)
            with deadline.at_least(EXPLAINING):
                problem = maker.refusal(attempt)
        if problem is not None:
            _resumed(partial(reading.throw, problem))
        return None

    def _overtaken(
        self,
        maker: AttemptMaker,
        overtaken: ProviderConflict | CapacityExceeded | ConstraintViolated,
    ) -> Busy | None:
        """Wait for the next attempt; or the error where that was the last one."""
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
    maker: AttemptMaker, attempt: Attempt, decision: Decision, done: Committed | None
) -> DecisionResult:
    """The decision of an attempt, as it is stored; of a dry run as it would be."""
    concessions = attempt.result.concessions
    if attempt.changeset is None or done is None:
        return DecisionResult(
            decision,
            maker.proposal.ensemble,
            attempt.observation.snapshot,
            dry_run=True,
            concessions=concessions,
        )
    return DecisionResult(
        *_written(attempt.changeset.changes),
        maker.env.store.snapshot(),
        concessions=concessions,
        serials=done.serials,
    )


def _freely(maker: AttemptMaker) -> tuple[Attempt | None, Committed | None]:
    """An attempt with optimistic concurrency; None: waitlist entries were tried first."""
    attempt = maker.attempt()
    if attempt is None or attempt.changeset is None:
        return attempt, None
    deadline.check()  # what follows the commit is done, and nothing of it expires
    return attempt, maker.env.store.commit(attempt.changeset)


def _alone(maker: AttemptMaker) -> tuple[Attempt | None, Committed | None]:
    """An attempt with exclusive write access; None: waitlist entries come first."""
    attempts: list[Attempt | None] = []

    def propose() -> Changeset | None:
        attempt = maker.attempt(alone=True)
        attempts.append(attempt)
        return None if attempt is None else attempt.changeset

    with deadline.at_least(LAST):
        done = maker.env.store.commit_alone(propose)
    return attempts[-1], done


def _written(changes: Sequence[Change]) -> tuple[Decision, Ensemble]:
    """The new decision and its ensemble as stored by this changeset.

    Only the new decision is born with its changeset, and its ensemble is the only one changed.
    """
    decisions = [one for one in changes if isinstance(one, PutDecision) and one.generation is None]
    ensembles = [one for one in changes if isinstance(one, PutEnsemble)]
    return decisions[-1].stored, ensembles[-1].stored


def _check_roles(ensemble: Ensemble, ask: DecisionOptions) -> None:
    """Let `max_additional` pass when it names roles with members."""
    for name in ask.additional:
        if not any(member.name.role == name for member in ensemble.members):
            raise InvalidDescription(f"no role {name} with members", path="max_additional")


def _check_priority(env: DecideEnvironment, proposal: Proposal, ask: DecisionOptions) -> None:
    """Let the priority of a stay pass that its project may ask for, or that it has already."""
    if ask.priority and not (ask.as_before or ask.any_priority):
        check_priority(env, proposal.ensemble.project_id, ask.priority)
