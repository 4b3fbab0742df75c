"""Checks the parts of a worker every second and keeps the results for readiness probes.

Readiness is answered from memory, so that a database that hangs, or many probes, delay no answer.
Each part is checked by a thread of its own; a check that is overdue makes its part unusable. This
also keeps a worker's snapshot up to date while there are no requests.
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

INTERVAL_SECONDS: Final = 1.0
OVERDUE_SECONDS: Final = 4.0
"""Seconds after which a look that has not come back counts as a failure."""


STARTING_SECONDS: Final = 30.0
"""How long a part may take to be usable for the first time before the log has it: planner and
solver processes start together with the worker that checks them."""


class NotReady(MoorageError):
    """A part is not usable; the message says why."""


@dataclass(slots=True)
class _Result:
    """The result of the last check, with monotonic times."""

    at: float
    problem: str = ""
    logged: bool = False
    """Whether the log has the problem."""

    def is_overdue(self, stale: float) -> bool:
        """Whether a check that has begun is overdue."""
        return time.monotonic() - self.at > stale


class HealthMonitor:
    """The periodic checks of all parts.

    `checks` are functions that raise when their part is not usable; `on_result` is called with each
    result, by name, and with False while a check is overdue.
    """

    def __init__(
        self,
        checks: Mapping[str, Callable[[], object]],
        *,
        on_result: Callable[[str, bool], None] = lambda _name, _good: None,
        stale: float = OVERDUE_SECONDS,
        starting: float = STARTING_SECONDS,
    ) -> None:
        self._checks = checks
        self._on_result = on_result
        self._stale = stale
        self._starting = starting
        self._overdue = f"the check takes more than {stale:g} s"
        self._results: dict[str, _Result] = {}
        self._usable_once: set[str] = set()
        self._started_at = time.monotonic()
        self._lock = Lock()
        self._stop = Event()

    def start(self, *, interval: float = INTERVAL_SECONDS) -> None:
        """Check once now, then every `interval` seconds in daemon threads."""
        for name in self._checks:
            self._check_now(name)
            Thread(
                target=self._repeat, args=(name, interval), name=f"pulse-{name}", daemon=True
            ).start()
        Thread(target=self._watch, args=(interval,), name="pulse-watch", daemon=True).start()

    def close(self) -> None:
        """Stop checking."""
        self._stop.set()

    def check(self, name: str) -> None:
        """Raise unless the part is usable; checks now if the periodic checks do not run.

        Raises:
            NotReady: it is not.
        """
        if name not in self._results:
            self._checks[name]()
            return
        seen = self._results[name]
        if seen.problem:
            raise NotReady(seen.problem)
        if seen.is_overdue(self._stale):
            raise NotReady(self._overdue)

    def _repeat(self, name: str, interval: float) -> None:
        while not self._stop.wait(interval):
            self._check_now(name)

    def _watch(self, interval: float) -> None:
        while not self._stop.wait(interval):
            for name in self._checks:
                with self._lock:
                    seen = self._results[name]
                    if not seen.is_overdue(self._stale):
                        continue
                    if not seen.logged:
                        _log.error("not ready: %s: %s", name, seen.problem or self._overdue)
                        seen.logged = True
                    self._on_result(name, False)  # noqa: FBT003 - the callback's signature

    def _check_now(self, name: str) -> None:
        begun, problem = time.monotonic(), ""
        try:
            self._checks[name]()
        except Exception as error:  # noqa: BLE001 - whatever it is, the part is not usable
            problem = str(error) or type(error).__name__
        with self._lock:
            before = self._results.get(name, _Result(0))
            if not problem:
                self._usable_once.add(name)
            # Logged when it lasts: at the start, and while a part is replaced, it may be away.
            lasts = bool(before.problem) or time.monotonic() - begun > INTERVAL_SECONDS
            logged = bool(problem) and (before.logged or (lasts and not self._is_starting(name)))
            if logged and not before.logged:
                _log.error("not ready: %s: %s", name, problem)
            elif before.logged and not problem:
                _log.warning("ready again: %s", name)
            self._results[name] = _Result(time.monotonic(), problem, logged)
            self._on_result(name, not problem)

    def _is_starting(self, name: str) -> bool:
        """Whether the part has not been usable yet, and may take longer."""
        return (
            name not in self._usable_once and time.monotonic() - self._started_at < self._starting
        )
