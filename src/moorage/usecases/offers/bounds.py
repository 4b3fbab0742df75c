"""How far a search for offers may look, and how many offers a project may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.changes import BoundOffers
from moorage.domain.errors import InvalidDescription, LimitExceeded
from moorage.domain.leases import LeadTooLong, Terms
from moorage.domain.offers import OfferState
from moorage.domain.period import Period, from_now_on
from moorage.domain.quotas import too_much_held
from moorage.usecases.leases.shaping import check_margins, checked_end
from moorage.usecases.limits import hold_within, time_limit_within
from moorage.usecases.quotas import held_limit

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration, Instant
    from moorage.usecases.offers.asking import OfferAsk
    from moorage.usecases.parts import Parts


@dataclass(frozen=True, slots=True)
class Bounds:
    """What was asked, at an instant."""

    first: Instant
    last: Instant
    hold: Duration
    time_limit: Duration


def bounds_of(parts: Parts, asked: OfferAsk) -> Bounds:
    """The range of starts, from now on.

    Raises:
        InvalidDescription: it is in the past, or empty, or its lead would be in the past.
        LimitExceeded: too long, too far ahead, or held for too long.
    """
    now, limits = parts.store.now(), parts.limits
    check_margins(limits, lead=asked.lead, cleaning=asked.cleaning)
    first = from_now_on(asked.earliest, now)
    if asked.latest is not None and asked.latest < now:
        raise InvalidDescription("the range of starts lies in the past", path="offer.latest_start")
    if asked.latest is not None and first <= asked.latest < now + asked.lead:
        raise LeadTooLong(asked.latest - now)
    first = max(first, now + asked.lead)
    if asked.duration <= 0:
        raise InvalidDescription("an offer lasts some time", path="offer.duration")
    if asked.most < 1:
        raise InvalidDescription("ask for one offer at least", path="offer.max_offers")
    longest = limits.horizon - asked.duration - asked.cleaning
    last = now + longest if asked.latest is None else asked.latest
    shown = max(first, last)
    checked_end(
        limits,
        Terms(Period(shown, shown + asked.duration), asked.lead, asked.cleaning),
        now,
    )
    if last < first:
        raise InvalidDescription(
            "no start lies between the earliest and the latest one", path="offer.latest_start"
        )
    if asked.most > limits.offers:
        raise LimitExceeded("offers held", limit=limits.offers, requested=asked.most)
    return Bounds(
        first, last, hold_within(limits, asked.hold), time_limit_within(limits, asked.time_limit)
    )


def check_held(parts: Parts, ensemble: Ensemble) -> None:
    """Let another offer of a project pass; the commit judges once more, by `bounded`.

    Raises:
        LimitExceeded: it holds too many.
        QuotaExceeded: it holds too many places by them.
    """
    store, limits, now = parts.store, parts.limits, parts.store.now()
    there = [
        one.offer
        for one in store.offers(project_id=ensemble.project_id)
        if one.offer is not None and one.offer.state_at(now) is OfferState.OFFERED
    ]
    if len(there) >= limits.offers:
        raise LimitExceeded("offers held", limit=limits.offers, used=len(there), requested=1)
    used = store.held(ensemble.project_id) + sum(one.places for one in there)
    wanted, most = len(ensemble.members), held_limit(parts, ensemble.project_id)
    if used + wanted > most:
        raise too_much_held(limit=most, used=used, requested=wanted)


def bounded(parts: Parts, ensemble: Ensemble) -> BoundOffers:
    """What one more offer is judged by in its commit: others are made at the same time."""
    return BoundOffers(
        ensemble.project_id,
        offers=parts.limits.offers,
        held=parts.limits.held_members,
        requested=len(ensemble.members),
    )
