"""The waitlist gate: entries that come before a request are tried before it is decided.

A request competes with an entry if both could have places at the same time and both need a common
resource class. Each such entry before it in the order is tried on a snapshot at least as new as the
request's, unless it was tried before and nothing that it could use was freed since. So a request
never gets capacity that an earlier entry could have had. Entries that wait for a quota hold up no
other request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.period import FOREVER, SECOND, Period
from moorage.domain.waitlist import WaitsFor, needed

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Terms
    from moorage.domain.period import Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment

LOOKED_AT: Final = 500
"""How many entries one request reads."""
_ROUNDS: Final = 5
"""How often the list is tried for one request while more capacity is freed."""


@dataclass(eq=False)
class WaitlistTurn:
    """The waitlist gate of one request: tries the entries that come before it."""

    env: UseCaseEnvironment
    priority: int
    """The request's priority; entries of a lower priority come after it."""
    period: Period
    classes: frozenset[str]
    entry: str | None = None
    """The entry that is tried; None: a new request, after all entries of its priority."""
    rounds: int = 0
    gone: set[str] = field(default_factory=set)
    """Ids of entries that wait no longer since they were tried."""

    def __call__(self, snapshot: Snapshot, *, detect_only: bool = False) -> bool:
        """Whether no earlier entry is due; entries made after the snapshot come later.

        Due entries are tried first, unless `detect_only`. See `WaitlistGate`.
        """
        env = self.env
        competing = self._competing() if snapshot.waited and self.rounds < _ROUNDS else []
        if not competing:
            return True
        env.waitlist_memory.see(snapshot)
        due = [
            one
            for one in competing
            if one.waits_for is WaitsFor.CAPACITY and env.waitlist_memory.due(one, env.stopwatch())
        ]
        if detect_only:
            return not due
        self.rounds += bool(due)
        until = env.stopwatch() + env.limits.waitlist_time / SECOND
        for one in due:
            if env.stopwatch() >= until:
                break
            with deadline.anew():
                if env.try_entry(env, one, until - env.stopwatch()):
                    self.gone.add(one.id)
        return not due

    def give_way(self) -> None:
        """Try all earlier entries before the request's own search, which they could outdate."""
        store = self.env.store
        while not self(store.snapshot()):
            pass

    def _competing(self) -> list[WaitlistEntry]:
        """Competing entries before the request, in their order."""
        some = self.env.store.waiting_entries(self.period, LOOKED_AT)
        before = takewhile(lambda one: one.id != self.entry, some)
        return [
            one
            for one in before
            if one.terms.priority >= self.priority
            and one.classes & self.classes
            and one.id not in self.gone
        ]


def turn_of_stay(
    env: UseCaseEnvironment, ensemble: Ensemble, until: Instant | None
) -> WaitlistTurn:
    """The gate of a stay that begins now; all competing entries come before it."""
    now = env.store.now()
    end = FOREVER if until is None else max(until, now + 1)
    return WaitlistTurn(env, 0, Period(now, end), needed(ensemble))


def turn_of_window(env: UseCaseEnvironment, ensemble: Ensemble, terms: Terms) -> WaitlistTurn:
    """The gate of a new lease; entries of the same or a higher priority come before it."""
    return WaitlistTurn(env, terms.priority, terms.occupied, needed(ensemble))
