"""`/v1/offers`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from moorage.api.native import lease_requests, leases, reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.formats import view
from moorage.api.native.paging import listed
from moorage.domain.errors import InvalidDescription
from moorage.domain.offers import OfferState
from moorage.domain.period import HOUR, format_instant
from moorage.usecases.offers.accept import AcceptanceTerms, accept_offer
from moorage.usecases.offers.create import OfferRequest, create_offers
from moorage.usecases.offers.expiry import withdraw_offer
from moorage.usecases.offers.queries import list_offers, own_offer
from moorage.usecases.shared.access import own_ensemble
from moorage.wire import offers as wire

if TYPE_CHECKING:
    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.usecases.offers.requests import QuotaBarredWindow
    from moorage.wire.offers import OfferBody, OfferedTerms


def create(call: Call) -> Reply:
    """POST: find and hold windows in a range of starts, or explain why there is none."""
    body: OfferBody = call.body.offer_request
    offered = call.perform(
        create_offers,
        offer_request(call, body),
        reading.identity(call, body, body.id),
    )
    return call.made(
        wire.Offers(
            offers=[offer_view(call, one) for one in offered.offers],
            offers_links=[],
            computed_at=format_instant(offered.computed_at),
            revision=offered.revision,
            dry_run=call.dry_run,
            barred=[_barred(one) for one in offered.barred],
        ),
    )


def listing(call: Call) -> Reply:
    """GET: a page of open offers, oldest first."""
    read = partial(
        list_offers,
        call.env.store,
        call.caller,
        all_projects=call.flag("all_projects"),
        over=call.flag("over"),
        overlaps=reading.overlapped(call),
    )
    # The fields that only offers for a request have are as they are without one.
    others = wire.Offers([], [], format_instant(call.env.store.now()))
    more = structs.asdict(others)
    del more["offers"], more["offers_links"]
    view = partial(offer_view, call)
    return listed(call, "offers", lambda page: read(page=page), view, more)


def show(call: Call) -> Reply:
    """GET: one offer, in any state."""
    lease, _ = own_offer(call.env.store, call.caller, call.path["id"])
    return Reply(wire.OneOffer(offer_view(call, lease)))


def withdraw(call: Call) -> Reply:
    """DELETE: withdraw an offer; its places are free at once."""
    call.perform(withdraw_offer, call.path["id"])
    return Reply()


def accept(call: Call) -> Reply:
    """POST: accept an offer, which becomes a lease."""
    granted = call.perform(
        accept_offer,
        call.path["id"],
        acceptance_terms(call.body.lease, any_priority=call.may(reading.PRIORITY)),
    )
    return leases.granted_reply(call, granted, created=True)


def offer_request(call: Call, body: OfferBody) -> OfferRequest:
    """The request of a body.

    Raises:
        InvalidDescription: it says several things where one is needed or none at all, or its
            times, durations or members cannot be understood.
        NotFound: no such template or ensemble for this caller.
    """
    wanted = [body.ensemble_id, body.ensemble, body.template, body.amount]
    if sum(one is not None for one in wanted) != 1:
        raise InvalidDescription(
            "give one of ensemble_id, ensemble, template and amount, and not more", path="offer"
        )
    name = body.name or _name(call, body)
    duration = reading.duration(body.duration, "offer.duration") or 0
    return OfferRequest(
        name=name,
        duration=duration,
        earliest=_instant(body.earliest, "earliest"),
        latest=_latest(body, duration),
        lead=lease_requests.span(body.lead, "offer.lead") or 0,
        cleaning=lease_requests.span(body.cleaning, "offer.cleaning") or 0,
        hold=reading.duration(body.hold, "offer.hold"),
        most=body.max_offers,
        ensemble_id=body.ensemble_id,
        description=_description(call, body, name),
        objective=reading.objective(call, body.objective),
        seed=body.seed,
        time_limit=reading.duration(body.time_limit, "offer.time_limit"),
    )


def acceptance_terms(body: OfferedTerms, *, any_priority: bool = False) -> AcceptanceTerms:
    """The terms that a body gives; `any_priority` as in `LeaseRequest`.

    Raises:
        InvalidDescription: its durations or actions cannot be understood.
    """
    return AcceptanceTerms(
        name=body.name,
        lead=lease_requests.span(body.lead, "lease.lead"),
        cleaning=lease_requests.span(body.cleaning, "lease.cleaning"),
        expiry=lease_requests.span(body.expiry, "lease.expiry"),
        priority=body.priority,
        before_start=lease_requests.before_start(body.before_start),
        actions=lease_requests.actions(body),
        any_priority=any_priority,
    )


def offer_view(call: Call, lease: Lease) -> wire.Offer:
    """An offer with its present state."""
    offer, terms = lease.offer, lease.terms
    assert offer is not None, "only offers are shown so"
    state = offer.state_at(call.env.store.now())
    taken = state is OfferState.ACCEPTED
    links = [call.link("self", "offers", lease.id)]
    if taken:
        links.append(call.link("lease", "leases", lease.id))
    hours = offer.places * (terms.period.end - terms.period.start) / HOUR
    return view(
        wire.Offer,
        offer,
        lease,
        terms,
        terms.period,
        request_id=offer.request,
        handle=f"o{lease.serial}" if lease.serial else "",
        status=state,
        guarantee="proved",
        unit_hours=round(hours, 2),
        ensemble_id=lease.ensemble_id if taken else offer.of,
        lease_id=lease.id if taken else None,
        links=links,
    )


def _barred(one: QuotaBarredWindow) -> wire.Barred:
    why = one.why
    return view(
        wire.Barred,
        one.period,
        quota=why.what,
        detail=why.message,
        passes_at=why.passes_at,
        asked_from=why.asked_from,
        passes=None if why.passes_at is None else "asked" if why.when_asked else "start",
    )


def _name(call: Call, body: OfferBody) -> str:
    """The default name of the leases."""
    if body.ensemble_id is not None:
        return own_ensemble(call.env.store, call.caller, body.ensemble_id).name
    if body.template is not None:
        return body.template.name.partition("@")[0]
    if body.amount is not None and body.amount.flavor is not None:
        return body.amount.flavor
    return (body.ensemble.name if body.ensemble is not None else None) or "offer"


def _description(call: Call, body: OfferBody, name: str) -> EnsembleDescription | None:
    if body.template is not None:
        return lease_requests.template_ensemble(call, body.template)
    if body.ensemble is not None:
        return lease_requests.described_ensemble(body.ensemble, name)
    return None if body.amount is None else lease_requests.flavor_ensemble(body.amount, name)


def _latest(body: OfferBody, duration: Duration) -> Instant | None:
    if body.latest_start is not None and body.latest_end is not None:
        raise InvalidDescription(
            "give latest_start or latest_end, and not both", path="offer.latest_end"
        )
    end = _instant(body.latest_end, "latest_end")
    return _instant(body.latest_start, "latest_start") if end is None else end - duration


def _instant(text: str | None, field: str) -> Instant | None:
    return None if text is None else reading.instant(text, f"offer.{field}")
