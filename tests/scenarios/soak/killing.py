"""kill -9, now and then: of a worker, of a whole service, of the database."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from tests.servers.replica import Replica


WORKER, SERVICE, DATABASE = "HTTP worker", "supervisor with all its processes", "database server"
ALL: Final = (WORKER, WORKER, WORKER, SERVICE, DATABASE)
"""What is killed, as often as it is named."""


class Killer:
    """Kills so often on the average; whoever starts things again is its business too."""

    def __init__(
        self,
        served: Sequence[Replica],
        restart: Callable[[], None] | None,
        dice: random.Random,
        per_minute: float,
        aims: Sequence[str] = ALL,
    ) -> None:
        self.done: Counter[str] = Counter()
        self._served, self._restart = served, restart
        self._aims = [one for one in aims if one != DATABASE or restart is not None]
        self._dice, self._per_second = dice, per_minute / 60
        self._due = self._next()

    def _next(self) -> float:
        if not self._per_second:
            return float("inf")
        return time.monotonic() + self._dice.expovariate(self._per_second)

    def wait(self, seconds: float) -> None:
        """Let time pass, and kill if it is time."""
        time.sleep(max(0.0, min(seconds, self._due - time.monotonic())))
        if time.monotonic() >= self._due:
            self._kill()
            self._due = self._next()

    def _kill(self) -> None:
        aim = self._dice.choice(self._aims)
        {WORKER: self._worker, SERVICE: self._service, DATABASE: self._database}[aim]()
        self.done[aim] += 1

    def _worker(self) -> None:
        self._dice.choice(self._served).kill_worker()

    def _service(self) -> None:
        one = self._dice.choice(self._served)
        one.down()
        one.start()
        one.up()

    def _database(self) -> None:
        assert self._restart is not None
        self._restart()
