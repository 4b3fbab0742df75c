"""Changes of bookings: allocations, holds, the swap of one for the other, and ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.consumers import AnyGeneration, Consumer
    from moorage.domain.period import Duration, Instant
    from moorage.domain.resources import Amounts


@dataclass(frozen=True, slots=True)
class Stay:
    """The terms of a consumer's first allocations."""

    life: Duration | None = None
    """How long they last from the commit on; None: for ever."""
    until: Instant | None = None
    """When they end at the latest."""
    preemptible: bool = False
    yields_to: str | None = None
    """The lease for which they end at `until`, before their life is over."""
    declared_end: Instant | None = None
    """When their life is over, of one that has begun before them."""
    decision: str | None = None
    """The decision whose place they take."""
    priority: int = 0
    """See `Booking.priority`."""


OPEN: Final = Stay()
"""The terms of Placement's allocations: they stay until they are deleted."""


@dataclass(frozen=True, slots=True)
class ReplaceAllocations:
    """Replace a consumer's whole set of allocations (bookings from now on).

    They end as those before them did, and are as preemptible. A consumer without any before
    gets them on the terms of `stay`; but on the terms of the consumer that it `takes_over`, if that
    gives up these very allocations before. `until` says another end in any case.

    `generation` is the consumer's expected one: None for "must not exist yet", ANY_GENERATION
    for "do not check". Empty `allocations` clears the consumer. The generation of each
    provider in the new set (or, when clearing, of each one cleared) moves once per changeset.
    Raises ConsumerConflict, CapacityExceeded, ConstraintViolated, UnknownName.
    """

    consumer: Consumer
    allocations: Mapping[str, Amounts]
    generation: int | AnyGeneration | None
    until: Instant | None = None
    stay: Stay = OPEN
    takes_over: str | None = None
    """The consumer of the same changeset whose allocations these are."""


@dataclass(frozen=True, slots=True)
class DeleteAllocations:
    """Drop a consumer's allocations; NotFound if it has none. Moves no generation."""

    consumer: str


@dataclass(frozen=True, slots=True)
class PutBookings:
    """Replace all holds of `consumer` (not its allocations) by these; they share its UUID.

    Moves no wire generation: holds do not show on Placement's wire.
    """

    consumer: Consumer
    bookings: tuple[Booking, ...]


@dataclass(frozen=True, slots=True)
class DropBookings:
    """Drop the holds of these consumers; consumers without any are passed over.

    With `decision`, only those held or reserved for it and not claimed: holds of another decision,
    and places claimed meanwhile, stay.
    """

    consumers: frozenset[str]
    decision: str | None = None


@dataclass(frozen=True, slots=True)
class SwapHold:
    """Turn a hold into a server's allocation.

    The member's bookings are re-written under `server` in this commit, with the same
    providers and amounts, state allocated, and no lapse.

    HoldExpired when the hold has lapsed or never was; ConsumerConflict when `server` exists
    with allocations already; NotFound when it is another project's, or not a server.
    """

    member_uuid: str
    server: Consumer


@dataclass(frozen=True, slots=True)
class TakeHold:
    """Free a live hold's place for what the same changeset writes.

    What is judged is the end state, so a hold can be exchanged for an allocation on a full host,
    though not for more than was held and is free.

    HoldExpired when the hold has lapsed or never was.
    """

    member_uuid: str


@dataclass(frozen=True, slots=True)
class EndBookings:
    """Set another end on every booking of these consumers.

    With `yields_to` they end early for that lease: each must be preemptible, and remembers the end
    it had. Without, what they yielded to is forgotten. Moves no wire generation. Consumers
    without bookings are passed over.

    ConcurrentUpdate: one that should yield is not preemptible. CapacityExceeded: a later end
    than before, for which there is no room.
    """

    consumers: frozenset[str]
    end: Instant
    yields_to: str | None = None


@dataclass(frozen=True, slots=True)
class BindAllocations:
    """Give a consumer's allocations the end and yielding of another booking that it had before.

    They take the place of that booking's decision. Moves no generation: what Placement's wire shows
    of them stays as it is. A consumer without allocations is passed over.
    """

    consumer: str
    terms: Booking
