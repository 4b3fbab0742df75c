"""The retry of what concurrent commits overtook: how often, and with what pauses."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from moorage.domain import deadline
from moorage.domain.errors import Busy, ConcurrentUpdate, ConsumerConflict, StaleGeneration
from moorage.domain.period import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.period import Duration
    from moorage.usecases.shared.environment import Environment

T = TypeVar("T")

FIRST_PAUSE: Final = 0.005
"""Seconds, on average, after the second attempt; the first one is repeated at once."""
GROWTH: Final = 1.5
LONGEST_PAUSE: Final = 0.25


def backoff(id_: str, attempts: int, first: Duration, longest: Duration) -> Duration:
    """The wait after so many attempts: doubled each time up to `longest`, less up to half of it.

    The jitter follows from the id and the number, so failures at one time are not retried together.
    """
    doubled = min(first << min(attempts - 1, 30), longest)
    chance = sha256(f"{id_} {attempts}".encode()).digest()[0]
    return doubled // 2 + doubled * chance // 255 // 2


@dataclass(eq=False)
class RetryBudget:
    """The remaining attempts and time of one request.

    Pauses grow, and differ from request to request: those who collided do not meet again.
    """

    env: Environment
    limit: Duration
    """No new attempt beside others begins so long after the first one was overtaken."""
    attempts: int = 1
    _until: float = 0.0
    _dice: Random | None = None

    def pause(self) -> bool:
        """Wait before the next attempt; False when there is to be none beside others."""
        now = self.env.stopwatch()
        if self._dice is None:
            self._dice = Random(self.env.ids.uuid())  # noqa: S311 - parts those who collided
            self._until = now + self.limit / SECOND
        late = now >= self._until or deadline.passed()
        if self.attempts >= self.env.limits.attempts or late:
            return False
        if self.attempts > 1:
            mean = min(FIRST_PAUSE * GROWTH ** (self.attempts - 2), LONGEST_PAUSE)
            longest = deadline.left(self._until - now)
            self.env.pause(max(min(mean * self._dice.uniform(0.5, 1.5), longest), 0.0))
        self.attempts += 1
        return True


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
    patience = RetryBudget(env, env.limits.time_limit)
    while True:
        try:
            return attempt()
        except (StaleGeneration, ConsumerConflict):
            raise
        except ConcurrentUpdate as error:
            if must_know(error):
                raise
            if not patience.pause():
                raise Busy("others changed it too often meanwhile") from error
