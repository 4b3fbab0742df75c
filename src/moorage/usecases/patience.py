"""Trying again what others overtook: how often, and with what pauses in between."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from moorage.domain.errors import Busy, ConcurrentUpdate, ConsumerConflict, StaleGeneration
from moorage.domain.period import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.period import Duration
    from moorage.usecases.parts import Parts

T = TypeVar("T")

FIRST_PAUSE: Final = 0.005
"""Seconds, on average, after the second attempt; the first one is repeated at once."""
GROWTH: Final = 1.5
LONGEST_PAUSE: Final = 0.25


@dataclass(eq=False)
class Patience:
    """What is left of it for one request.

    Pauses grow, and differ from request to request: those who collided do not meet again.
    """

    parts: Parts
    limit: Duration
    """No new attempt beside others begins so long after the first one was overtaken."""
    attempts: int = 1
    _until: float = 0.0
    _dice: Random | None = None

    def pause(self) -> bool:
        """Wait before the next attempt; False when there is to be none beside others."""
        now = self.parts.stopwatch()
        if self._dice is None:
            self._dice = Random(self.parts.ids.uuid())  # noqa: S311 - parts those who collided
            self._until = now + self.limit / SECOND
        if self.attempts >= self.parts.limits.attempts or now >= self._until:
            return False
        if self.attempts > 1:
            mean = min(FIRST_PAUSE * GROWTH ** (self.attempts - 2), LONGEST_PAUSE)
            self.parts.pause(min(mean * self._dice.uniform(0.5, 1.5), self._until - now))
        self.attempts += 1
        return True


def again(
    parts: Parts,
    attempt: Callable[[], T],
    *,
    must_know: Callable[[ConcurrentUpdate], bool] = lambda error: False,  # noqa: ARG005 - nothing
) -> T:
    """Read, judge and commit until nothing moved meanwhile, or too often.

    Args:
        parts: the limits, and the clock to wait by.
        attempt: does it all, from reading on.
        must_know: which other conflicts the caller must be told.

    Raises:
        StaleGeneration, ConsumerConflict: the first one; looking again would not change it.
        ConcurrentUpdate: one that the caller must know.
        Busy: it was overtaken too often.
    """
    patience = Patience(parts, parts.limits.time_limit)
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
