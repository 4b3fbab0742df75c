"""Request bodies about offers. Types and bounds are here; meaning is judged below."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from moorage.api.native.requests import Duration, Instant, Name, Uuid
from moorage.api.native.requests_leases import Actions, AmountBody, Before, LeasedBody, Start
from moorage.api.native.requests_templates import ChosenTemplate


class OfferBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What shall fit, for how long, and over which range of starts.

    Exactly one of `ensemble_id`, `ensemble`, `template` and `amount` says what.
    """

    duration: Duration
    id: Uuid | None = None
    """The same request under the same id gets the offers it got before."""
    name: Name | None = None
    """Of the leases that come of it; by default the ensemble's, template's or flavor's."""
    ensemble_id: Uuid | None = None
    ensemble: LeasedBody | None = None
    template: ChosenTemplate | None = None
    amount: AmountBody | None = None
    earliest: Start | None = None
    """The first start; null: now."""
    latest_start: Instant | None = None
    latest_end: Instant | None = None
    """Instead of `latest_start`; without both, as late as a lease may be."""
    lead: Duration | None = None
    cleaning: Duration | None = None
    max_offers: Annotated[int, Meta(ge=1, le=100)] = 1
    """How many alternatives at most; all are held beside each other."""
    hold: Duration | None = None
    """How long they are held; null: the service's default."""
    objective: Literal["spread", "pack", "balance"] = "spread"
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    time_limit: Duration | None = None
    """For the search of each offer."""


class OfferCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/offers."""

    offer_request: OfferBody


class OfferedTerms(Struct, frozen=True, forbid_unknown_fields=True):
    """The terms of the lease that an offer becomes; what is not said is as it was offered."""

    name: Name | None = None
    lead: Duration | None = None
    cleaning: Duration | None = None
    expiry: Duration | None = None
    priority: Annotated[int, Meta(ge=0, le=1000)] = 0
    before_start: Before | None = None
    on_start: Actions = []
    before_end: Actions = []
    on_end: Actions = []


class OfferAccept(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/offers/{id}/accept."""

    lease: OfferedTerms
