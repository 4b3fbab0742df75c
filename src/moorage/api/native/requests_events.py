"""Request bodies about subscriptions."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from moorage.api.native.requests import Name, Uuid

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
    """Which dead letters; all of a page where none are named."""

    dead_letters: Annotated[list[Uuid], Meta(min_length=1, max_length=1000)] | None = None


class Resend(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/subscriptions/{id}/resend."""

    resend: ResendBody = ResendBody()
