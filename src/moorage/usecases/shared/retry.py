"""Retries of attempts that conflict with concurrent commits: how often, and with what pauses."""

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
"""Pauses in seconds; `Limits.attempts` and the request's time limit end the retries."""


@dataclass(eq=False)
class RetryBudget:
    """The remaining attempts and time of one request."""

    env: Environment
    limit: Duration
    """No new attempt begins so long after the first conflict."""
    retries: Retries = field(default_factory=Retries)
    _random: Random | None = None

    def pause(self) -> bool:
        """Sleep before the next attempt; False if the attempts or the time are used up."""
        env = self.env
        if self._random is None:
            self._random = Random(env.ids.uuid())  # noqa: S311 - jitter for conflicting requests
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
    """Repeat an attempt until it commits without a conflict, within the limits.

    `must_know` says whether a conflict is raised instead of retried.

    Raises:
        StaleGeneration, ConsumerConflict: from the first attempt; reading again would not help.
        ConcurrentUpdate: a conflict for which `must_know` is true.
        Busy: there were too many conflicts.
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
                raise Busy("concurrent changes too often; retry") from error
