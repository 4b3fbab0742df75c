"""Events, and subscriptions to them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.fields import At, Length, Link, Name, Uuid

Pattern = Annotated[str, Meta(min_length=1, max_length=48, description="A type, `lease.*` or `*`")]


class SubscriptionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Which events are to be delivered where.

    `lease_id`, `ensemble_id` and `role` leave only events of these. `before` is for the type
    `lease.time_left`; `role` and `below` for `ensemble.max_additional`; for `capacity.threshold`
    `flavor` or `resource_class`, with `below` or `above_share`, and perhaps `zone`.
    """

    events: Annotated[list[Pattern], Meta(min_length=1, max_length=32)]
    url: Annotated[str, Meta(min_length=1, max_length=2000)]
    name: Annotated[str, Meta(max_length=255)] = ""
    secret: Annotated[str, Meta(max_length=128)] | None = None
    """`whsec_` and base64 of 24 to 64 bytes; one is made where none is given."""
    lease_id: Uuid | None = None
    ensemble_id: Uuid | None = None
    role: Name | None = None
    below: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    above_share: Annotated[float, Meta(gt=0, lt=1)] | None = None
    flavor: Annotated[str, Meta(max_length=255)] | None = None
    resource_class: Annotated[str, Meta(max_length=255)] | None = None
    zone: Annotated[str, Meta(max_length=255)] | None = None
    before: str | None = None
    edge: Literal["start", "end"] = "end"


class SubscriptionCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/subscriptions."""

    subscription: SubscriptionBody


class ResendBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Which dead letters to send again; all of a page if none are named."""

    dead_letters: Annotated[list[Uuid], Meta(min_length=1, max_length=1000)] | None = None


class Resend(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/subscriptions/{id}/resend."""

    resend: ResendBody = ResendBody()


class Event(Struct, frozen=True):
    """Something that happened; `generation` is the subject's afterwards."""

    id: str
    type: str
    at: At
    project_id: str
    subject: str
    generation: int
    body: dict[str, Any]
    user: str | None = None
    """Whose request caused it. Of users of other projects a tenant reads only `operator` or
    `another project`."""
    user_project_id: str | None = None
    request_id: str | None = None
    """Of the request that caused it."""
    global_request_id: str | None = None
    """The id of the client's own request, if it sent one."""
    by: str | None = None
    """Instead of a user: the background work of the service, such as `expiry`."""
    cursor: str = ""
    """Reading goes on behind it with this as `after`."""


class Events(Struct, frozen=True):
    """A page of events in the order of the ledger. `cursor` is where the next page begins."""

    events: list[Event]
    cursor: str
    more: bool
    """Whether there are more now: then ask again at once."""
    lost_before: At | None = None
    """Without `after`: events up to this time are kept no more."""


class Subscription(Struct, frozen=True):
    """A subscription to events, and its progress."""

    id: str
    name: str
    project_id: str
    events: list[str]
    url: str
    status: str
    """`active`, or `failing` while deliveries fail."""
    lease_id: str | None
    ensemble_id: str | None
    role: str | None
    below: int | None
    above_share: float | None
    flavor: str | None
    resource_class: str | None
    zone: str | None
    before: Length | None
    edge: str
    delivered: int
    given_up: int
    """Events that became dead letters, all in all."""
    dead_letters: int
    """Those that are there now, also while they are sent again."""
    attempts: int
    """Of the event that is due."""
    failing_since: At | None
    next_attempt: At | None
    outcome: str | None
    """The result of the last attempt."""
    generation: int
    created_at: At
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
    given_up_at: At
    queued: bool
    """Whether it is to be sent once more."""


class DeadLetters(Struct, frozen=True):
    """A page of dead letters, oldest first."""

    dead_letters: list[DeadLetter]
    dead_letters_links: list[Link]


class Resent(Struct, frozen=True):
    """How many dead letters are queued to be sent again."""

    queued: int
    dry_run: bool = False
