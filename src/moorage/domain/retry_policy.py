"""Retry policy: how often and until when something is tried again, and with which pauses."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from hashlib import sha256
from math import inf


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and until when something is tried again, and with which pauses.

    All times are seconds, or all are a `Duration`.
    """

    first_pause: float
    longest_pause: float = inf
    growth: float = 2.0
    """How many times as long as the one before each pause is."""
    jitter: float = 0.0
    """The part of each pause that is left to chance, from 0 to 1: those who collided part."""
    at_once: bool = False
    """Whether there is no pause after the first failure."""
    attempts: int = sys.maxsize
    limit: float = inf
    """The time from the first failure on in which further attempts begin."""

    def pause(self, failures: int, chance: float = 1.0) -> float:
        """The pause after so many failures in a row; `chance` is from 0 (shortest) to 1."""
        if self.at_once and failures == 1:
            return 0.0
        # A number of growths that lets no float overflow.
        grown = self.first_pause * self.growth ** min(failures - 1 - self.at_once, 30)
        return min(grown, self.longest_pause) * (1.0 - self.jitter * (1.0 - chance))

    def pause_of(self, id_: str, failures: int) -> int:
        """The pause, with a chance that follows from an id and the number of failures."""
        chance = sha256(f"{id_} {failures}".encode()).digest()[0] / 255
        return int(self.pause(failures, chance))


@dataclass(eq=False, slots=True)
class Retries:
    """The attempts at one thing that were made under a policy."""

    attempts: int = 1
    _until: float | None = None

    def next_pause(self, policy: RetryPolicy, now: float, chance: float = 1.0) -> float | None:
        """The pause before the next attempt, which is counted; None: there is to be none."""
        if self._until is None:
            self._until = now + policy.limit
        if self.attempts >= policy.attempts or now >= self._until:
            return None
        pause = policy.pause(self.attempts, chance)
        self.attempts += 1
        return min(pause, self._until - now)
