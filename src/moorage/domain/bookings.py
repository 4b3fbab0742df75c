"""Bookings: a consumer takes amounts from a provider over a period."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from moorage.domain.period import FOREVER, Instant, Period
from moorage.domain.resources import Amounts


class BookingState(StrEnum):
    """The state of a booking; see `design`: held -> claimed -> allocated."""

    HELD = "held"
    """Keeps a member's place for its decision; consumer = the member's UUID."""
    CLAIMED = "claimed"
    """The place is being taken by a real server; has an expiry of its own."""
    RESERVED = "reserved"
    """Keeps a member's place for its lease; consumer = the member's UUID."""
    ALLOCATED = "allocated"
    """A Placement allocation; the only state that Placement's wire shows."""


class Binding(StrEnum):
    """Whether a booking's provider is final or a witness that may be swapped."""

    PLANNED = "planned"
    BOUND = "bound"


_ALLOCATED: Final = BookingState.ALLOCATED
"""Looked up once: a look at a member of an enumeration is a call."""


@dataclass(slots=True, unsafe_hash=True)
class Booking:
    """Amounts of resource classes that `consumer` takes from `provider` over `period`.

    `period` is the whole intended stay: a hold for an open-ended server is open-ended,
    so nothing else can be promised behind it. `lapses_at` is when the booking vanishes by
    itself unless claimed; an allocation never lapses. Both bounds are half-open: at
    `lapses_at` the booking no longer exists.

    It does not change; the type checker sees to that. A `frozen` dataclass takes six times as long
    to make, and a snapshot has hundreds of thousands.
    """

    consumer: Final[str]
    provider: Final[str]
    amounts: Final[Amounts]
    period: Final[Period]
    state: Final[BookingState] = BookingState.ALLOCATED
    lapses_at: Final[Instant] = FOREVER
    binding: Final[Binding] = Binding.BOUND
    decision: Final[str | None] = None
    preemptible: Final[bool] = False
    """Whether its owner agreed that it ends for a lease that needs the place."""
    yields_to: Final[str | None] = None
    """The lease for which it ends before its time."""
    declared_end: Final[Instant | None] = None
    """Where it ends early, for a lease or as its host goes, the end that it had before."""
    priority: Final[int] = 0
    """Its lease's; of a preemptible stay: those with less end for a lease before it does."""

    def live(self, now: Instant) -> bool:
        """Whether the booking still exists at `now`.

        An end in the past does not remove an allocation: a server past its end is overrun
        and occupies until its allocations are deleted.
        """
        if now >= self.lapses_at:
            return False
        return self.state is _ALLOCATED or now < self.period.end

    def occupies_until(self, now: Instant) -> Instant:
        """The instant at which it stops counting, seen from `now`: its end, or never if overrun."""
        return FOREVER if self.period.end <= now else self.period.end
