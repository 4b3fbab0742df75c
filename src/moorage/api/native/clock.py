"""`/v1/simulation/clock`: only with a clock that can be set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moorage.api.native.call import Call, Reply
from moorage.domain.period import format_instant, parse_instant
from moorage.wire import clock as wire

if TYPE_CHECKING:
    from moorage.domain.period import Instant


class SettableClock(Protocol):
    """A clock that stands still until it is set."""

    def now(self) -> Instant:
        """The present instant."""

    def set(self, instant: Instant) -> None:
        """Move forward to a later instant. Conflict if it is earlier."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The handlers of one clock."""

    clock: SettableClock

    def show(self, call: Call) -> Reply:  # noqa: ARG002 - the signature of every handler
        """GET: the simulated instant."""
        return self._reply()

    def put(self, call: Call) -> Reply:
        """PUT: move time forward, past every edge on the way."""
        self.clock.set(parse_instant(call.body.clock.now))
        return self._reply()

    def _reply(self) -> Reply:
        return Reply(wire.OneClock(wire.ClockValue(format_instant(self.clock.now()))))
