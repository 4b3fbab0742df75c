"""The clock of a simulation."""

from __future__ import annotations

from msgspec import Struct

from moorage.wire.fields import Instant


class ClockBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A new instant, not before the present one.

    The clock stops at each edge on the way until all that is due there has been done. The answer's
    `now` is earlier than this one where that takes more than 20 s: send the request again.
    """

    now: Instant


class ClockPut(Struct, frozen=True, forbid_unknown_fields=True):
    """PUT /v1/simulation/clock."""

    clock: ClockBody


class ClockValue(Struct, frozen=True):
    """The simulation's time."""

    now: str


class OneClock(Struct, frozen=True):
    """The simulation's clock."""

    clock: ClockValue
