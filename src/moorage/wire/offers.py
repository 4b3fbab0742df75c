"""Offers: leases proposed and held."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from moorage.wire.decisions import Priority
from moorage.wire.fields import At, Duration, IdempotencyKey, Instant, Length, Link, Name, Uuid
from moorage.wire.leases import Actions, Before, LeaseRequest, Start


class OfferBody(LeaseRequest, frozen=True, forbid_unknown_fields=True):
    """What is to fit, for how long, and in which range of starts.

    Exactly one of `ensemble_id`, `ensemble`, `template` and `amount` says what.
    """

    duration: Duration
    id: IdempotencyKey | None = None
    """The same request under the same id gets the offers it got before."""
    name: Name | None = None
    """Of the leases that come of it; by default the ensemble's, template's or flavor's."""
    ensemble_id: Uuid | None = None
    earliest: Start | None = None
    """The first start; null: now."""
    latest_start: Instant | None = None
    latest_end: Instant | None = None
    """Instead of `latest_start`; without both, as late as a lease may be."""
    max_offers: Annotated[int, Meta(ge=1, le=100)] = 1
    """How many alternatives at most; all are held beside each other."""
    hold: Duration | None = None
    """How long they are held; null: the service's default."""


class OfferCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/offers."""

    offer_request: OfferBody


class OfferedTerms(Struct, frozen=True, forbid_unknown_fields=True):
    """Terms of the lease that an offer becomes; absent ones are as in the offer."""

    name: Name | None = None
    lead: Duration | None = None
    cleaning: Duration | None = None
    expiry: Duration | None = None
    priority: Priority = 0
    before_start: Before | None = None
    on_start: Actions = []
    before_end: Actions = []
    on_end: Actions = []


class OfferAccept(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/offers/{id}/accept."""

    lease: OfferedTerms


class Offer(Struct, frozen=True):
    """A proposed lease, held until it expires. `guarantee` is always `proved`."""

    id: str
    """Of the lease, too, once it is accepted."""
    request_id: str
    """The same for all offers of one request."""
    name: str
    handle: str
    """`o3`: the third lease or offer of its project; accepted, lease `L3`. Empty in a dry run."""
    project_id: str
    user_id: str
    status: str
    """`offered`, `accepted`, `expired` or `withdrawn`."""
    start: At
    end: At
    lead: Length
    cleaning: Length
    expires_at: At
    """When its places are free again, unless it is accepted."""
    proved: bool
    """Whether nothing that starts earlier would have fitted, after the offer before it."""
    score: float
    """1 for the best of a request, less the later one starts."""
    guarantee: str
    places: int
    unit_hours: float
    """Places times hours, from start to end."""
    ensemble_id: str | None
    """The ensemble that it is for, if that was there before; null: it is made when accepted."""
    lease_id: str | None
    """The lease that it has become."""
    created_at: At
    updated_at: At
    links: list[Link]


class OneOffer(Struct, frozen=True):
    """One offer."""

    offer: Offer


class Barred(Struct, frozen=True):
    """A window in which everything would fit, but that the project's quota does not allow."""

    start: At
    end: At
    quota: str
    """The limit that is passed."""
    detail: str
    """What of it is used, and when it would pass."""
    passes_at: At | None
    passes: str | None = None
    """As `passes_at`, `passes` and `asked_from` of the error `quota_exceeded`."""
    asked_from: At | None = None


class Offers(Struct, frozen=True):
    """Offers: those for a request, the earliest start first, or a page of a listing."""

    offers: list[Offer]
    offers_links: list[Link]
    computed_at: At
    revision: int | None = None
    dry_run: bool = False
    barred: list[Barred] = []
    """Windows before or between them that quota does not allow; of a request."""
