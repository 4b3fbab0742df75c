"""Offers: proposed leases, held until they expire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client import lookup
from moorage.client.answer import Answer, answer, dry, listed, whole
from moorage.client.errors import Missing
from moorage.wire.leases import OneLease
from moorage.wire.offers import Offer, Offers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.client.transport import Reply, Transport

_PATH = "/v1/offers"


class OfferCalls:
    """`/v1/offers`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id for an id, a name, a handle (`o3`) or an id's beginning.

        Of one that was accepted, too.

        A name means the offer that can still be accepted, where others were called so.
        """
        if lookup.UUID.fullmatch(text):
            return text

        def choose(offers: Sequence[dict[str, Any]]) -> str:
            named = [
                one
                for one in offers
                if lookup.called(one, text, standing=one["status"] == "offered")
            ]
            return lookup.pick("offer", text, named or offers)

        try:
            return lookup.search(self._transport, _PATH, "offers", choose, {"over": "true"})
        except Missing:
            # An offer that was accepted is a lease by the same id: the service says so.
            leases = lookup.pages(self._transport, "/v1/leases", "leases")
            accepted = [one | {"handle": f"o{one.get('handle', '')[1:]}"} for one in leases]
            begun = [
                one for one in accepted if one["handle"] == text or str(one["id"]).startswith(text)
            ]
            if not begun:
                raise
            return lookup.pick("offer", text, begun)

    def create(self, request: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Offers]:
        """Request windows in a range of starts; each is held, or there is an explanation."""
        body = {"offer_request": dict(request)}
        reply = self._call("POST", _PATH, body=body, params=dry(dry_run))
        return whole(reply, Offers)

    def show(self, offer_id: str) -> Answer[Offer]:
        """One offer."""
        return answer(self._call("GET", f"{_PATH}/{offer_id}"), "offer", Offer)

    def all(self, *, over: bool = False, all_projects: bool = False) -> Answer[Offers]:
        """Open offers, oldest first; with `over` also those that are over."""
        asked: dict[str, str | int] = {}
        asked |= {"over": "true"} if over else {}
        asked |= {"all_projects": "true"} if all_projects else {}
        pages = lookup.replies(self._call, _PATH, "offers", asked)
        return listed(pages, "offers", Offers)

    def accept(
        self, offer_id: str, terms: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneLease]:
        """Accept it: it becomes a lease on these terms."""
        reply = self._call(
            "POST", f"{_PATH}/{offer_id}/accept", body={"lease": dict(terms)}, params=dry(dry_run)
        )
        return whole(reply, OneLease)

    def withdraw(self, offer_id: str) -> Reply:
        """Withdraw it."""
        return self._call("DELETE", f"{_PATH}/{offer_id}")
