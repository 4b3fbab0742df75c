"""Observers that count commits, snapshots, solves and lapses.

Each watcher is called by, or put around, the part it watches, and passes everything on as it is:
results, errors, timing.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from moorage.domain.errors import Busy, ConcurrentUpdate, MoorageError, Unavailable
from moorage.logs import CURRENT
from moorage.telemetry import table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.effects import Effect
    from moorage.domain.period import Duration
    from moorage.domain.subscriptions import Subscription
    from moorage.engine.joint.problem import Outcome, Problem
    from moorage.telemetry.instruments import Metrics
    from moorage.usecases.events.deliver import DeliveryRound
    from moorage.usecases.ports import Solver

T = TypeVar("T")


@dataclass(frozen=True)
class StoreMetrics:
    """Counts what the store does; the store calls it."""

    metrics: Metrics
    _lost: dict[int, str] = field(default_factory=dict)
    """Of threads whose last commit lost a race: for which request. The number of one that has ended
    is another's before long."""
    unwritable: set[str] = field(default_factory=set)
    """Why commits cannot be written since the last one that was: a full disk, say."""

    def commit(self, work: Callable[[], T]) -> T:
        """Count one try to commit."""
        if self._lost and self._lost.pop(threading.get_ident(), None) == CURRENT.get().own:
            self.metrics.count(table.RETRIES)
        started, outcome = time.perf_counter(), "failed"
        try:
            result = work()
        except MoorageError as error:
            outcome = _outcome(error)
            if outcome == "conflict" and (request := CURRENT.get().own):
                self._lost[threading.get_ident()] = request
            if isinstance(error, Unavailable):
                self.unwritable.add(str(error))
            raise
        else:
            outcome = "committed"
            if self.unwritable:
                self.unwritable.clear()
            return result
        finally:
            self.metrics.count(table.COMMITS, outcome)
            self.metrics.observe(table.COMMIT_SECONDS, time.perf_counter() - started, outcome)

    def refresh(self, work: Callable[[], T]) -> T:
        """Count an update of the snapshot."""
        started = time.perf_counter()
        result = work()
        self.metrics.observe(table.REFRESH_SECONDS, time.perf_counter() - started)
        return result


def _outcome(error: MoorageError) -> str:
    match error:
        case ConcurrentUpdate():
            return "conflict"
        case Busy():
            return "busy"
        case _:
            return "refused"


@dataclass(frozen=True, slots=True)
class MeteredSolver:
    """A solver whose answers are counted."""

    solver: Solver
    metrics: Metrics

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """See `Solver`."""
        started = time.perf_counter()
        strategy, verdict = "none", "failed"
        try:
            outcome = self.solver.solve(problem, time_limit=time_limit, seed=seed)
            strategy, verdict = outcome.solver, outcome.verdict.value
        except Busy:
            verdict = "busy"
            raise
        finally:
            seconds = time.perf_counter() - started
            self.metrics.observe(table.SOLVES, seconds, strategy, verdict)
        return outcome


@dataclass(frozen=True, slots=True)
class MeteredEffects:
    """The use cases of effects, with their results counted."""

    do: Callable[[Effect], str]
    put_off: Callable[[Effect, str], None]
    metrics: Metrics

    def carry_out(self, effect: Effect) -> object:
        """Carry out one effect."""
        outcome = "error"
        try:
            outcome = self.do(effect)
        finally:
            self.metrics.count(table.EFFECTS, effect.kind.value, outcome)
        return outcome

    def postpone(self, effect: Effect, problem: str) -> None:
        """Put off one that failed unexpectedly."""
        self.put_off(effect, problem)


@dataclass(frozen=True, slots=True)
class MeteredExpiry:
    """The use case of expiry, with its results counted."""

    expire: Callable[[Decision | Claim], bool]
    metrics: Metrics

    def __call__(self, item: Decision | Claim) -> bool:
        """Expire one item; False if there was nothing to do."""
        outcome = "failed"
        try:
            noted = self.expire(item)
            outcome = "noted" if noted else "nothing"
        finally:
            self.metrics.count(table.EXPIRED, type(item).__name__.lower(), outcome)
        return noted


@dataclass(frozen=True, slots=True)
class MeteredDeliveries:
    """The use cases of deliveries, with their results counted."""

    do: Callable[[Subscription], DeliveryRound]
    note: Callable[[Sequence[tuple[str, int, int]]], None]
    metrics: Metrics

    def deliver(self, one: Subscription) -> DeliveryRound:
        """Deliver what is due to one subscription."""
        outcome = "error"
        try:
            turn = self.do(one)
            outcome = _outcome_of(turn)
        finally:
            self.metrics.count(table.DELIVERIES, outcome)
        return turn

    def passing(self, passed: Sequence[tuple[str, int, int]]) -> None:
        """Record subscriptions for which no event matched."""
        self.note(passed)


def _outcome_of(turn: DeliveryRound) -> str:
    if turn.given_up:
        return "given-up"
    if turn.failed:
        return "failed"
    return "delivered" if turn.delivered else "nothing"
