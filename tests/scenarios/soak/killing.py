"""kill -9, now and then: of a worker, of a whole service, of the database."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Final

from tests.scenarios.kills import DATABASE, SERVICE, WORKER, Kills
from tests.servers.replica import Replica

ALL: Final = (WORKER, WORKER, WORKER, SERVICE, DATABASE)
"""What is killed, as often as it is named."""


class Killer(Kills):
    """Kills so often on the average; whoever starts things again is its business too."""

    def __init__(
        self,
        served: Sequence[Replica],
        restart: Callable[[], None] | None,
        dice: random.Random,
        per_minute: float,
        aims: Sequence[str] = ALL,
    ) -> None:
        super().__init__(restart)
        self._served, self._dice, self._per_second = served, dice, per_minute / 60
        self._aims = [one for one in aims if one in self.ways]
        self._due = self._next()

    def _next(self) -> float:
        if not self._per_second:
            return float("inf")
        return time.monotonic() + self._dice.expovariate(self._per_second)

    def wait(self, seconds: float) -> None:
        """Let time pass, and kill if it is time."""
        time.sleep(max(0.0, min(seconds, self._due - time.monotonic())))
        if time.monotonic() >= self._due:
            aim = self._dice.choice(self._aims)
            self.kill_and_start(aim, self._dice.choice(self._served))
            self._due = self._next()
