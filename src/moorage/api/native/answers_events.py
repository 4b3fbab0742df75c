"""What is told of events and of subscriptions to them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from moorage.api.native.answers import Link


class Event(Struct, frozen=True):
    """Something that happened; `generation` is the subject's afterwards."""

    id: str
    type: str
    at: str
    project_id: str
    subject: str
    generation: int
    body: dict[str, Any]


class Events(Struct, frozen=True):
    """A page of events in the order of the ledger. `cursor` is where the next page begins."""

    events: list[Event]
    cursor: str
    more: bool
    """Whether there are more now: then ask again at once."""


class Subscription(Struct, frozen=True):
    """Which events go where, and how far that has come."""

    id: str
    name: str
    project_id: str
    events: list[str]
    url: str
    status: str
    """`active`, or `failing` while the target hears nothing."""
    lease_id: str | None
    ensemble_id: str | None
    role: str | None
    below: int | None
    above_share: float | None
    flavor: str | None
    resource_class: str | None
    zone: str | None
    before: str | None
    edge: str
    delivered: int
    given_up: int
    """Events that became dead letters, all in all."""
    dead_letters: int
    """Those that are there now, also while they are sent again."""
    attempts: int
    """Of the event that is due."""
    failing_since: str | None
    next_attempt: str | None
    outcome: str | None
    """What came of the last attempt."""
    generation: int
    created_at: str
    links: list[Link]
    secret: str | UnsetType = UNSET
    """Only in the answer that made it."""


class OneSubscription(Struct, frozen=True):
    """One subscription."""

    subscription: Subscription
    dry_run: bool = False


class Subscriptions(Struct, frozen=True):
    """A page of subscriptions, oldest first."""

    subscriptions: list[Subscription]
    subscriptions_links: list[Link]


class DeadLetter(Struct, frozen=True):
    """An event that was given up for a subscription."""

    id: str
    event: Event
    problem: str
    attempts: int
    given_up_at: str
    queued: bool
    """Whether it is to be sent once more."""


class DeadLetters(Struct, frozen=True):
    """A page of what was given up, oldest first."""

    dead_letters: list[DeadLetter]
    dead_letters_links: list[Link]


class Resent(Struct, frozen=True):
    """How many dead letters are to be sent once more."""

    queued: int
    dry_run: bool = False
