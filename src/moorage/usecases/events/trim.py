"""Delete events that are too old or too many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, PassEvents, TrimEvents
from moorage.domain.period import MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.usecases.environment import UseCaseEnvironment

AT_ONCE: Final = 5_000
"""Events deleted in one transaction."""
EVERY: Final = 5 * MINUTE
_NOTHING: Final = (0, 0)


def trim(env: UseCaseEnvironment) -> bool:
    """Delete one batch of old events; whether there may be more."""
    limits, log = env.limits, env.store.event_log
    bound = env.store.now() - limits.events_age
    before = log.surplus(bound, limits.events)
    if before == _NOTHING:  # a quiet ledger stays as it is
        return False
    env.store.commit(Changeset((TrimEvents(bound, limits.events, AT_ONCE),)))
    return log.surplus(bound, limits.events) not in {before, _NOTHING}


def record_passed(env: UseCaseEnvironment, passed: Sequence[tuple[str, int, int]]) -> None:
    """Advance subscriptions past events that none of them selects."""
    moved = tuple(one for one in passed if one[1] < one[2])
    if moved:
        env.store.commit(Changeset((PassEvents(moved),)))


@dataclass
class EventTrimmer:
    """Deletes old events in one worker, at most every `EVERY` unless there are more."""

    env: UseCaseEnvironment
    _next: float = 0.0

    def run_round(self) -> bool:
        """Delete old events if it is time; whether there are more to delete now.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        now = self.env.stopwatch()
        if now < self._next:
            return False
        more = trim(self.env)
        if not more:
            self._next = now + EVERY / SECOND
        return more
