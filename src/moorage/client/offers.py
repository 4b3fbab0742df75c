"""Offers: leases proposed, and held until they expire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from moorage.client import lookup
from moorage.client.ensembles import answer, dry
from moorage.client.errors import Missing
from moorage.client.leases import Granted
from moorage.client.structs import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Reply, Transport

_PATH = "/v1/offers"


class Offer(msgspec.Struct, frozen=True):
    """An offer; times are RFC 3339. `lease_id` is given once it is accepted."""

    id: str
    name: str
    status: str
    start: str
    end: str
    expires_at: str
    handle: str = ""
    request_id: str = ""
    project_id: str = ""
    lead: str = "PT0S"
    cleaning: str = "PT0S"
    proved: bool = False
    score: float = 0.0
    guarantee: str = ""
    places: int = 0
    unit_hours: float = 0.0
    ensemble_id: str | None = None
    lease_id: str | None = None
    created_at: str = ""


class Barred(msgspec.Struct, frozen=True):
    """A window in which everything would fit, and that the project's quota does not allow."""

    start: str
    end: str
    quota: str = ""
    detail: str = ""
    passes_at: str | None = None
    passes: str | None = None
    asked_from: str | None = None


class Offers(msgspec.Struct, frozen=True):
    """Offers, and the service's time when they were made or read."""

    offers: list[Offer]
    computed_at: str
    revision: int | None = None
    dry_run: bool = False
    barred: list[Barred] = []


class OfferCalls:
    """`/v1/offers`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id that an id, a name, a handle (`o3`) or an id's beginning means.

        Of one that was accepted, too.

        A name means the offer that can still be accepted, where others were called so.
        """
        if lookup.UUID.fullmatch(text):
            return text
        everything = list(lookup.pages(self._transport, _PATH, "offers", {"over": "true"}))
        named = [
            one
            for one in everything
            if lookup.called(one, text, standing=one["status"] == "offered")
        ]
        try:
            return lookup.pick("offer", text, named or everything)
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
        """Ask for windows in a range of starts; each is held, or there is an explanation."""
        body = {"offer_request": dict(request)}
        reply = self._call("POST", _PATH, body=body, params=dry(dry_run))
        return Answer(
            msgspec.convert(reply.body, Offers, strict=False), reply.body, reply.request_id
        )

    def show(self, offer_id: str) -> Answer[Offer]:
        """One offer."""
        return answer(self._call("GET", f"{_PATH}/{offer_id}"), "offer", Offer)

    def all(self, *, over: bool = False, all_projects: bool = False) -> Answer[Offers]:
        """Offers that nobody has accepted, oldest first; with `over` those that are over, too."""
        asked: dict[str, str | int] = {"limit": lookup.PAGE}
        asked |= {"over": "true"} if over else {}
        asked |= {"all_projects": "true"} if all_projects else {}
        items: list[Any] = []
        while True:
            reply = self._call("GET", _PATH, params=asked)
            items += reply.body["offers"]
            if len(reply.body["offers"]) < lookup.PAGE:
                break
            asked["marker"] = items[-1]["id"]
        body = {"offers": items, "computed_at": reply.body["computed_at"]}
        return Answer(msgspec.convert(body, Offers, strict=False), body, reply.request_id)

    def accept(
        self, offer_id: str, terms: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Granted]:
        """Make a lease of it, on these terms."""
        reply = self._call(
            "POST", f"{_PATH}/{offer_id}/accept", body={"lease": dict(terms)}, params=dry(dry_run)
        )
        return Answer(
            msgspec.convert(reply.body, Granted, strict=False), reply.body, reply.request_id
        )

    def withdraw(self, offer_id: str) -> Reply:
        """Give it up."""
        return self._call("DELETE", f"{_PATH}/{offer_id}")
