"""Response bodies about offers; `offers.py` makes them."""

from __future__ import annotations

from msgspec import Struct

from moorage.api.native.answers import Link


class Offer(Struct, frozen=True):
    """A lease proposed, and held until it expires. `guarantee` is always `proved`."""

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
    start: str
    end: str
    lead: str
    cleaning: str
    expires_at: str
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
    created_at: str
    updated_at: str
    links: list[Link]


class OneOffer(Struct, frozen=True):
    """One offer."""

    offer: Offer


class Barred(Struct, frozen=True):
    """A window in which everything would fit, and that the project's quota does not allow."""

    start: str
    end: str
    quota: str
    """The limit that is passed."""
    detail: str
    """What of it is used, and when it would pass."""
    passes_at: str | None
    passes: str | None = None
    """As `passes_at`, `passes` and `asked_from` of the error `quota_exceeded`."""
    asked_from: str | None = None


class Offers(Struct, frozen=True):
    """Offers: those for a request, the earliest start first, or a page of a listing."""

    offers: list[Offer]
    offers_links: list[Link]
    computed_at: str
    revision: int | None = None
    dry_run: bool = False
    barred: list[Barred] = []
    """Windows before or between them that quota does not allow; of a request."""
