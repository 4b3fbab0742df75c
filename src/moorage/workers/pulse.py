"""Looks every second whether the parts a worker needs are usable, and remembers what it saw.

Readiness is answered from memory: a database that hangs, or a crowd of probes, keeps nobody
waiting. Each part is looked at by a thread of its own; one that has not come back for a while is
not usable either. A worker's snapshot is kept in step this way, too, when nobody asks for it.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import MoorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_log = logging.getLogger(__name__)

INTERVAL: Final = 1.0
STALE: Final = 4.0
"""Seconds after which a look that has not come back counts as a failure."""
_OVERDUE: Final = f"looking at it takes more than {STALE:g} s"


class NotReady(MoorageError):
    """A part is not usable; says why."""


@dataclass(slots=True)
class _Seen:
    """What the last look found, on the monotonic clock."""

    at: float
    problem: str = ""
    said: bool = False
    """Whether the log has the problem."""

    def is_overdue(self) -> bool:
        """Whether the look after it has not come back for too long."""
        return time.monotonic() - self.at > STALE


class Pulse:
    """The looks at all parts.

    `looks` are functions that raise when their part is not usable; `told` hears of each look's
    result, by name, and while a look does not come back that its part is not usable.
    """

    def __init__(
        self,
        looks: Mapping[str, Callable[[], object]],
        *,
        told: Callable[[str, bool], None] = lambda _name, _good: None,
    ) -> None:
        self._looks = looks
        self._told = told
        self._seen: dict[str, _Seen] = {}
        self._telling = Lock()
        self._stop = Event()

    def start(self, *, interval: float = INTERVAL) -> None:
        """Look once now, then every `interval` seconds in threads that keep no process alive."""
        for name in self._looks:
            self._look(name)
            Thread(
                target=self._beat, args=(name, interval), name=f"pulse-{name}", daemon=True
            ).start()
        Thread(target=self._watch, args=(interval,), name="pulse-watch", daemon=True).start()

    def close(self) -> None:
        """Look no more."""
        self._stop.set()

    def check(self, name: str) -> None:
        """Return if the part is usable; look now if nobody looks regularly.

        Raises:
            NotReady: it is not.
        """
        if name not in self._seen:
            self._looks[name]()
            return
        seen = self._seen[name]
        if seen.problem:
            raise NotReady(seen.problem)
        if seen.is_overdue():
            raise NotReady(_OVERDUE)

    def _beat(self, name: str, interval: float) -> None:
        while not self._stop.wait(interval):
            self._look(name)

    def _watch(self, interval: float) -> None:
        while not self._stop.wait(interval):
            for name in self._looks:
                with self._telling:
                    seen = self._seen[name]
                    if not seen.is_overdue():
                        continue
                    if not seen.said:
                        _log.error("not ready: %s: %s", name, seen.problem or _OVERDUE)
                        seen.said = True
                    self._told(name, False)  # noqa: FBT003 - as a look tells it

    def _look(self, name: str) -> None:
        begun, problem = time.monotonic(), ""
        try:
            self._looks[name]()
        except Exception as error:  # noqa: BLE001 - whatever it is, the part is not usable
            problem = str(error) or type(error).__name__
        with self._telling:
            before = self._seen.get(name, _Seen(0))
            # Said when it lasts: at the start, and while a part is replaced, it may be away a
            # moment.
            lasts = bool(before.problem) or time.monotonic() - begun > INTERVAL
            said = bool(problem) and (before.said or lasts)
            if said and not before.said:
                _log.error("not ready: %s: %s", name, problem)
            elif before.said and not problem:
                _log.warning("ready again: %s", name)
            self._seen[name] = _Seen(time.monotonic(), problem, said)
            self._told(name, not problem)
