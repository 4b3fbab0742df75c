"""Read offers: the caller's own, those that are open, and listings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from moorage.domain.errors import ConcurrentUpdate, NotFound, OfferOver, WrongState
from moorage.domain.offers import OfferState
from moorage.domain.period import format_instant
from moorage.usecases.paging import Page
from moorage.usecases.shared.access import sees, visible_project

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.leases import Lease
    from moorage.domain.offers import Offer
    from moorage.domain.period import Instant, Period
    from moorage.usecases.ports import Caller, Store

_WHOLE = Page()


def own_offer(store: Store, caller: Caller, offer_id: str) -> tuple[Lease, Offer]:
    """The offer, if it is the caller's, in any state.

    Raises:
        NotFound: there is no such offer, or it is another project's.
    """
    try:
        found = store.lease(offer_id)
    except NotFound:
        raise NotFound("offer", offer_id) from None
    # Offers that hold places while a series is created are internal.
    kept = found.occurrence is not None
    if found.offer is None or kept or not sees(caller, found.project_id):
        raise NotFound("offer", offer_id)
    return found, found.offer


def open_offer(store: Store, caller: Caller, offer_id: str, now: Instant) -> tuple[Lease, Offer]:
    """The offer, if it can still be accepted or withdrawn.

    Raises:
        NotFound: as `own_offer`.
        WrongState: the offer was accepted.
        OfferOver: the offer has expired, or was withdrawn.
    """
    lease, offer = own_offer(store, caller, offer_id)
    match offer.state_at(now):
        case OfferState.OFFERED:
            return lease, offer
        case OfferState.ACCEPTED:
            raise WrongState(f"the offer was accepted: it is {lease.called}")
        case OfferState.EXPIRED:
            raise OfferOver(f"the offer expired at {format_instant(offer.expires_at)}")
        case OfferState.WITHDRAWN:
            raise OfferOver("the offer was given up, or another of its request was accepted")


def offer_lost(store: Store, caller: Caller, offer_id: str, gone: NotFound) -> NoReturn:
    """Raise the error for an offer some record of which was deleted while it was read.

    Raises:
        NotFound: as `own_offer`; or `gone`, if the stored ensemble it was made to is deleted.
        WrongState, OfferOver: as `open_offer`.
        ConcurrentUpdate: the offer is open; the deleted record was another offer's.
    """
    lease, offer = open_offer(store, caller, offer_id, store.now())
    if gone.name == offer.of:
        raise gone
    raise ConcurrentUpdate(
        "another offer of the request ended meanwhile; retry", subject=lease.id
    ) from gone


def list_offers(
    store: Store,
    caller: Caller,
    *,
    all_projects: bool = False,
    over: bool = False,
    overlaps: Period | None = None,
    page: Page = _WHOLE,
) -> Sequence[Lease]:
    """The caller's offers, or for operators every project's, by creation; not accepted ones.

    Raises:
        Forbidden: a tenant asked for the offers of every project.
        NotFound: the page's marker is no offer for this caller.
    """
    project = visible_project(caller, all_projects=all_projects, project_id=None)
    if page.marker is not None:
        own_offer(store, caller, page.marker)
    return store.offers(project_id=project, over=over, overlaps=overlaps, page=page)
