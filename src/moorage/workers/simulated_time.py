"""A simulation's clock that stops at every edge on its way, with all background work done there.

The result of a jump is that of time that passes: what begins, ends, lapses or is freed within the
jump takes effect in its order, and at its instant. So one jump over a month comes to the same as
thirty over a day.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from moorage.domain.period import checked

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from moorage.domain.period import Instant
    from moorage.workers.ledger_work import LedgerWork

MOST_SECONDS: Final = 20.0
"""After so long a jump stops at the edge that it has reached."""


class SettableClock(Protocol):
    """A clock that stands still until it is set."""

    def now(self) -> Instant:
        """The present instant."""

    def set(self, instant: Instant) -> None:
        """Move forward to a later instant. Conflict if it is earlier."""


@dataclass(frozen=True, slots=True)
class SimulatedTime:
    """A clock that passes every edge between now and the instant it is set to."""

    clock: SettableClock
    next_edge: Callable[[], Instant]
    work: LedgerWork
    turn: AbstractContextManager[object]
    """Held meanwhile: the loops that do the same work in the background wait for it."""

    def now(self) -> Instant:
        """The present instant."""
        return self.clock.now()

    def set(self, instant: Instant) -> None:
        """Move forward to a later instant, or after `MOST_SECONDS` to the edge reached by then.

        Raises:
            Conflict: it is earlier than now.
            InvalidDescription: it is later than times may be.
            MoorageError: the ledger is out of reach.
        """
        with self.turn:
            until = time.monotonic() + MOST_SECONDS
            if checked(instant) <= self.now():
                self.clock.set(instant)
            else:
                self.work.finish()
            while self.now() < instant:
                self.clock.set(min(self.next_edge(), instant))
                self.work.finish()
                if time.monotonic() > until:
                    return
