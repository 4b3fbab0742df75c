"""What the ledger answers about events: pages, what is to be delivered, what has been."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.domain.events import Event, EventCursor
    from moorage.domain.subscriptions import DeliveryState, Subscription


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in order. The next page begins at `cursor`; `more` says whether it has events now."""

    events: tuple[Event, ...]
    cursor: EventCursor
    more: bool
    lost: EventCursor | None = None
    """Of a page from `BEGINNING`: the newest event that was deleted before."""


@dataclass(frozen=True, slots=True)
class PendingEvents:
    """The events to deliver next to a subscription.

    They are all its events up to position `reached`. If events were deleted before they were
    delivered to it, `lost` is the cursor up to which they are missing, else None.
    """

    events: tuple[Event, ...]
    reached: int
    lost: EventCursor | None = None


@dataclass(frozen=True, slots=True)
class EventDelivery:
    """The delivery state of an event for one subscription."""

    event: str
    subscription: Subscription
    reached: DeliveryState
