"""Logs a lasting condition once, not at each occurrence."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

QUIET: Final = 60.0
"""Seconds after which what nobody met any more has ended."""
AGAIN: Final = 3600.0
"""Seconds after which what still lasts is said again."""
_MOST: Final = 1000
"""Things remembered; beyond that all are forgotten."""
_SENTENCES: Final = 5
"""Sentences said of one thing while it lasts. Some have a number in them that is always another."""


@dataclass(slots=True)
class _Known:
    """What is remembered of a thing."""

    said: float = float("-inf")
    """When it was said last because it began, or had not been said for long."""
    met: float = float("-inf")
    """When it was met last."""
    sentences: set[str] = field(default_factory=set)
    """In which it was said since."""


class Lasting:
    """Remembers what was said. May be used from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Hashable, _Known] = {}
        self._lock = Lock()

    def is_news(self, thing: Hashable, sentence: str = "") -> bool:
        """Whether to say it in this sentence. Notes that it was met.

        It is news when it begins, when it has not been said for long, and in the first few other
        sentences that are made of it meanwhile.
        """
        now = self._clock()
        with self._lock:
            if len(self._known) >= _MOST and thing not in self._known:
                self._known.clear()
            known = self._known.setdefault(thing, _Known())
            if now - known.met > QUIET or now - known.said >= AGAIN:
                known.said = now
                known.sentences.clear()
            known.met = now
            if sentence in known.sentences or len(known.sentences) >= _SENTENCES:
                return False
            known.sentences.add(sentence)
            return True
