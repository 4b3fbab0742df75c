"""What the ledger answers about events, and the port that answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from moorage.domain.events import Event, EventCursor, EventFilter
    from moorage.domain.period import Instant
    from moorage.domain.subscriptions import DeadLetter, DeliveryState, Subscription
    from moorage.usecases.paging import Page


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


class EventLog(Protocol):
    """Events and subscriptions of the ledger.

    On PostgreSQL an event is visible once every commit that began before its own has ended.
    """

    def page(
        self, project_id: str | None, after: EventCursor, wanted: EventFilter, limit: int
    ) -> EventPage:
        """The next events after a cursor, of a project or of all; the work is bounded.

        EventsLost: some events after the cursor are deleted, or the cursor is another ledger's.
        """

    def newest(self) -> EventCursor:
        """The cursor after the newest event."""

    def oldest(self, project_id: str | None) -> EventCursor:
        """The cursor after the newest deleted event, of a project or of all."""

    def surplus(self, before: Instant, keep: int) -> tuple[int, int]:
        """The oldest event's position if older than `before`; how many a project has too many."""

    def subscription(self, id_: str) -> Subscription:
        """A subscription by id. NotFound."""

    def subscriptions(self, project_id: str | None, page: Page) -> Sequence[Subscription]:
        """Subscriptions by creation; `project_id` None means every project."""

    def with_thresholds(self) -> Sequence[Subscription]:
        """Subscriptions with thresholds."""

    def due(self, limit: int) -> Sequence[Subscription]:
        """Subscriptions with events to deliver, the longest due first, each project in turn."""

    def pending(self, one: Subscription, limit: int) -> PendingEvents:
        """The events to deliver next to a subscription; the work is bounded."""

    def deliveries(self, project_id: str, events: Sequence[Event]) -> Sequence[EventDelivery]:
        """The delivery state of a project's events, for each subscription that selects them.

        An event whose dead letter has been deleted counts as delivered.
        """

    def dead_letters(
        self, subscription_id: str, page: Page, *, queued: bool = False
    ) -> Sequence[DeadLetter]:
        """A subscription's dead letters, oldest first; `queued`: only those to be sent again."""

    def dead(self, subscriptions: Collection[str]) -> Mapping[str, int]:
        """Subscription -> number of its dead letters; subscriptions without any are left out."""
