"""Requests and results of offers, the range of starts searched, and the quota of open offers."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import BoundOffers
from moorage.domain.errors import InvalidDescription
from moorage.domain.leases import LeadTooLong, Terms, Yielding
from moorage.domain.period import Period, from_now_on
from moorage.domain.quotas import QuotaName, too_many_stored, too_much_held
from moorage.domain.requests import Objective
from moorage.usecases.leases.shaping import check_margins, checked_end
from moorage.usecases.shared.limits import hold_within, time_limit_within
from moorage.usecases.shared.quotas import defaults, held_limit, open_offers, stored_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.errors import QuotaExceeded
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.usecases.environment import UseCaseEnvironment


@dataclass(frozen=True, slots=True)
class SearchRange:
    """The range of starts of a request, with its hold and time limit."""

    first: Instant
    last: Instant
    hold: Duration
    time_limit: Duration


def search_range(env: UseCaseEnvironment, request: OfferRequest, project_id: str) -> SearchRange:
    """The range of starts of a request, not before now plus its lead.

    Raises:
        InvalidDescription: the range is in the past or empty, or its lead would be in the past.
        LimitExceeded: the duration, margins, hold or time limit are too long, or the range ends
            too far ahead.
        QuotaExceeded: more offers than the project may have.
    """
    now, limits = env.store.now(), env.limits
    check_margins(limits, lead=request.lead, cleaning=request.cleaning)
    first = from_now_on(request.earliest, now)
    if request.latest is not None and request.latest < now:
        raise InvalidDescription("the range of starts lies in the past", path="offer.latest_start")
    if request.latest is not None and first <= request.latest < now + request.lead:
        raise LeadTooLong(request.latest - now)
    first = max(first, now + request.lead)
    if request.duration <= 0:
        raise InvalidDescription("an offer lasts some time", path="offer.duration")
    if request.most < 1:
        raise InvalidDescription("ask for one offer at least", path="offer.max_offers")
    longest = limits.horizon - request.duration - request.cleaning
    last = now + longest if request.latest is None else request.latest
    shown = max(first, last)
    checked_end(
        limits,
        Terms(Period(shown, shown + request.duration), request.lead, request.cleaning),
        now,
    )
    if last < first:
        raise InvalidDescription(
            "no start lies between the earliest and the latest one", path="offer.latest_start"
        )
    most = stored_limit(env, project_id, QuotaName.OFFERS)
    if request.most > most:
        used = len(open_offers(env.store, project_id))
        raise too_many_stored(QuotaName.OFFERS, limit=most, used=used, requested=request.most)
    return SearchRange(
        first,
        last,
        hold_within(limits, request.hold),
        time_limit_within(limits, request.time_limit),
    )


def check_offer_quota(env: UseCaseEnvironment, ensemble: Ensemble) -> None:
    """Check that a project may have one more offer; the commit checks `offer_conditions` again.

    Raises:
        QuotaExceeded: the project has too many offers, or too many places held.
    """
    there = open_offers(env.store, ensemble.project_id)
    limit = stored_limit(env, ensemble.project_id, QuotaName.OFFERS)
    if len(there) >= limit:
        raise too_many_stored(QuotaName.OFFERS, limit=limit, used=len(there), requested=1)
    used, offered = env.store.held(ensemble.project_id), sum(one.places for one in there)
    requested, most = len(ensemble.members), held_limit(env, ensemble.project_id)
    if used + offered + requested > most:
        raise too_much_held(limit=most, used=used, requested=requested, offered=offered)


def offer_conditions(env: UseCaseEnvironment, ensemble: Ensemble) -> BoundOffers:
    """The commit's condition for one more offer, as others may be created concurrently."""
    return BoundOffers(
        ensemble.project_id,
        offers=defaults(env.limits).limit(QuotaName.OFFERS, None),
        held=env.limits.held_members,
        requested=len(ensemble.members),
    )


@dataclass(frozen=True, slots=True)
class OfferRequest:
    """A request for offers: an ensemble, stored or described, a duration and a range of starts."""

    name: str
    duration: Duration
    earliest: Instant | None = None
    """The first start; None: now."""
    latest: Instant | None = None
    """The last start; None: as late as the horizon allows."""
    lead: Duration = 0
    cleaning: Duration = 0
    hold: Duration | None = None
    """How long each offer is held; None: the configured default."""
    most: int = 1
    """The largest number of offers."""
    ensemble_id: str | None = None
    description: EnsembleDescription | None = None
    """Exactly one of `ensemble_id` and `description` is given."""
    objective: Objective = Objective.SPREAD
    seed: int = 0
    time_limit: Duration | None = None
    """For the search of each offer; None: the configured default."""


@dataclass(frozen=True, slots=True)
class AcceptanceTerms:
    """The terms on which an offer becomes a lease; None: as offered."""

    name: str | None = None
    lead: Duration | None = None
    cleaning: Duration | None = None
    expiry: Duration | None = None
    priority: int = 0
    before_start: frozenset[Yielding] = frozenset(Yielding)
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    any_priority: bool = False
    """See `LeaseRequest.any_priority`."""


@dataclass(frozen=True, slots=True)
class QuotaBarredWindow:
    """A window that would fit, and the quota that does not allow it."""

    period: Period
    why: QuotaExceeded


@dataclass(frozen=True, slots=True)
class OfferResult:
    """The offers for a request, the earliest first."""

    offers: tuple[Lease, ...]
    computed_at: Instant
    revision: int
    barred: tuple[QuotaBarredWindow, ...] = ()
    """Windows before or between the offers that the quota does not allow."""
