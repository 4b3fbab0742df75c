"""The retry of what concurrent commits overtook: how often, and with what pauses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from moorage.domain import deadline
from moorage.domain.errors import Busy, ConcurrentUpdate, ConsumerConflict, StaleGeneration
from moorage.domain.period import SECOND
from moorage.domain.retry_policy import Retries, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.period import Duration
    from moorage.usecases.shared.environment import Environment

T = TypeVar("T")

_CONFLICT: Final = RetryPolicy(0.0075, 0.375, growth=1.5, jitter=2 / 3, at_once=True)
"""In seconds; a process's limits say how often, and a request's how long."""


@dataclass(eq=False)
class RetryBudget:
    """The remaining attempts and time of one request."""

    env: Environment
    limit: Duration
    """No new attempt beside others begins so long after the first one was overtaken."""
    retries: Retries = field(default_factory=Retries)
    _random: Random | None = None

    def pause(self) -> bool:
        """Wait before the next attempt; False when there is to be none beside others."""
        env = self.env
        if self._random is None:
            self._random = Random(env.ids.uuid())  # noqa: S311 - parts those who collided
        if deadline.passed():
            return False
        policy = replace(_CONFLICT, attempts=env.limits.attempts, limit=self.limit / SECOND)
        pause = self.retries.next_pause(policy, env.stopwatch(), self._random.random())
        if pause:
            env.pause(max(deadline.left(pause), 0.0))
        return pause is not None


def retry(
    env: Environment,
    attempt: Callable[[], T],
    *,
    must_know: Callable[[ConcurrentUpdate], bool] = lambda error: False,  # noqa: ARG005 - nothing
) -> T:
    """Read, judge and commit until nothing moved meanwhile, or too often.

    Args:
        env: the limits, and the clock to wait by.
        attempt: does it all, from reading on.
        must_know: which other conflicts the caller must be told.

    Raises:
        StaleGeneration, ConsumerConflict: the first one; looking again would not change it.
        ConcurrentUpdate: one that the caller must know.
        Busy: it was overtaken too often.
    """
    budget = RetryBudget(env, env.limits.time_limit)
    while True:
        try:
            return attempt()
        except (StaleGeneration, ConsumerConflict):
            raise
        except ConcurrentUpdate as error:
            if must_know(error):
                raise
            if not budget.pause():
                raise Busy("others changed it too often meanwhile") from error
