"""kill -9, now and then: of a worker, of a whole service, of the database."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from tests.servers.replica import Replica


class Killer:
    """Kills so often on the average; whoever starts things again is its business too."""

    def __init__(
        self,
        served: Sequence[Replica],
        restart: Callable[[], None] | None,
        dice: random.Random,
        per_minute: float,
    ) -> None:
        self.done: Counter[str] = Counter()
        self._served, self._restart = served, restart
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
        deeds = [self._worker] * 3 + [self._service]
        if self._restart is not None:
            deeds.append(self._database)
        self._dice.choice(deeds)()

    def _worker(self) -> None:
        self._dice.choice(self._served).kill_worker()
        self.done["HTTP worker"] += 1

    def _service(self) -> None:
        one = self._dice.choice(self._served)
        one.down()
        one.start()
        one.up()
        self.done["supervisor with all its processes"] += 1

    def _database(self) -> None:
        assert self._restart is not None
        self._restart()
        self.done["database server"] += 1
