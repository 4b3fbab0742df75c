"""The waitlist entries that come before a request: they are tried before it is decided.

A request competes with an entry where both could have places at the same time, and both need some
of one resource class. Each such entry that stands before it in the order is tried on a snapshot as
new as the one that the request is decided on, unless it was tried before and nothing that it could
want was freed since. So whatever the request gets, none of those could have had. Whom a quota keeps
waiting keeps nobody else waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    from moorage.usecases.ports import Keepers

LOOKED_AT: Final = 500
"""Entries of the list that one request looks at."""
_ROUNDS: Final = 5
"""How often the list is tried for one request, while more and more is freed."""


@dataclass(eq=False)
class WaitlistTurn:
    """The waitlist gate of one request: tries the entries that come before it."""

    env: UseCaseEnvironment
    priority: int
    """The request's: those of less are behind it."""
    period: Period
    classes: frozenset[str]
    entry: str | None = None
    """The entry that is tried; None: the request is new, and behind all of its priority."""
    rounds: int = 0

    def __call__(self, snapshot: Snapshot, keepers: Keepers, *, merely: bool = False) -> bool:
        """See `WaitlistGate`; who begins to wait after the keepers were read, has come later."""
        env = self.env
        ahead = self._ahead() if keepers.waited and self.rounds < _ROUNDS else []
        if not ahead:
            return True
        env.line.see(snapshot, keepers.revision)
        due = [
            one
            for one in ahead
            if one.waits_for is WaitsFor.CAPACITY and env.line.due(one, env.stopwatch())
        ]
        if merely:
            return not due
        self.rounds += bool(due)
        until = env.stopwatch() + env.limits.waitlist_time / SECOND
        for one in due:
            if env.stopwatch() >= until:
                break
            with deadline.anew():
                env.try_entry(env, one, until - env.stopwatch())
        return not due

    def give_way(self) -> None:
        """Let them have it before looking at all: what they get is not worth finding."""
        store = self.env.store
        while not self(store.snapshot(), store.keepers()):
            pass

    def _ahead(self) -> list[WaitlistEntry]:
        """Entries before it that compete with it, in their order."""
        some = self.env.store.waiting_entries(self.period, LOOKED_AT)
        before = takewhile(lambda one: one.id != self.entry, some)
        return [
            one
            for one in before
            if one.terms.priority >= self.priority and one.classes & self.classes
        ]


def turn_of_stay(
    env: UseCaseEnvironment, ensemble: Ensemble, until: Instant | None
) -> WaitlistTurn:
    """The gate of a stay that begins now: all competing entries come before it."""
    now = env.store.now()
    end = FOREVER if until is None else max(until, now + 1)
    return WaitlistTurn(env, 0, Period(now, end), needed(ensemble))


def turn_of_window(env: UseCaseEnvironment, ensemble: Ensemble, terms: Terms) -> WaitlistTurn:
    """The gate of a new lease window: entries of the same or a higher priority come before it."""
    return WaitlistTurn(env, terms.priority, terms.occupied, needed(ensemble))
