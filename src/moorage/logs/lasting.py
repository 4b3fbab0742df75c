"""What is said once while it lasts, however many meet it however often."""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

QUIET: Final = 60.0
"""Seconds after which what nobody met any more has ended."""
AGAIN: Final = 3600.0
"""Seconds after which what still lasts is said again."""
_NEVER: Final = (float("-inf"), float("-inf"))
_MOST: Final = 1000
"""Things remembered; beyond that all are forgotten."""


class Lasting:
    """Remembers what was said. May be used from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Hashable, tuple[float, float]] = {}
        """Thing -> when it was said, and when it was met last."""
        self._lock = Lock()

    def is_news(self, thing: Hashable) -> bool:
        """Whether to say it: it begins, or has not been said for long. Notes that it was met."""
        now = self._clock()
        with self._lock:
            said, met = self._known.get(thing, _NEVER)
            news = now - met > QUIET or now - said >= AGAIN
            if len(self._known) >= _MOST and thing not in self._known:
                self._known.clear()
            self._known[thing] = (now if news else said, now)
            return news
