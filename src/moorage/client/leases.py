"""Leases, and what comes before them: offers, series of leases, the waitlist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client import lookup
from moorage.client.errors import Missing
from moorage.client.lookup import WHOLE
from moorage.client.resource import Answer, Resource, answer, whole
from moorage.wire.leases import Lease, LeaseEvent, Leases, OneLease
from moorage.wire.offers import Offer, Offers
from moorage.wire.series import Cancelled, OneSeries, Series
from moorage.wire.waitlist import WaitlistEntries, WaitlistEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.client.lookup import Part
    from moorage.client.transport import Reply


class LeaseCalls(Resource):
    """`/v1/leases`."""

    path, one, many = "/v1/leases", "lease", "leases"

    def _in_force(self, item: Mapping[str, Any]) -> bool:
        return bool(item["status"] != "closed")

    def _search(self, text: str, **params: str) -> str:
        try:
            return super()._search(text, **params)
        except Missing:
            waiting = {"status": "waiting"}
            entries = lookup.pages(self._transport, "/v1/waitlist", "entries", waiting)
            if any(text == one["name"] or one["id"].startswith(text) for one in entries):
                raise Missing("lease", f"{text} yet: it is on the waitlist") from None
            raise

    def create(self, lease: Mapping[str, Any], *, dry_run: bool = False) -> Answer[OneLease]:
        """Request a lease; it is granted with a proof, or refused with an explanation."""
        return self._send("POST", "", {"lease": lease}, OneLease, dry_run=dry_run)

    def show(self, lease_id: str) -> Answer[Lease]:
        """One lease."""
        return self._get(Lease, f"/{lease_id}")

    def all(  # noqa: PLR0913 - each filter of a listing has its name
        self,
        *,
        name: str | None = None,
        state: str | None = None,
        series: str | None = None,
        since: str | None = None,
        until: str | None = None,
        all_projects: bool = False,
        part: Part = WHOLE,
    ) -> Answer[Leases]:
        """Leases of the caller's project, or of all projects, oldest first, or the first ones.

        With `since` and `until` those whose period overlaps the time from and to these.
        """
        given = {"name": name, "state": state, "series": series, "from": since, "to": until}
        return self._listed(Leases, part=part, all_projects=all_projects, **given)

    def timeline(
        self, since: str, until: str, *, rows: str, closed: bool, all_projects: bool
    ) -> dict[str, Any]:
        """What lasts in a period, in rows and lanes; all of its pages as one."""
        asked: dict[str, str | int] = {"from": since, "to": until, "rows": rows}
        asked |= {"closed": "true"} if closed else {}
        asked |= {"all_projects": "true"} if all_projects else {}
        marker: dict[str, str] = {}
        whole: dict[str, Any] | None = None
        while True:
            page = self._call("GET", "/v1/timeline", params={**asked, **marker}).body
            found = page["timeline"]
            if whole is None:
                whole = page
            else:
                before = len(whole["timeline"]["rows"]["id"])
                found["bars"]["row"] = [before + row for row in found["bars"]["row"]]
                for part in ("rows", "bars"):
                    for name, column in found[part].items():
                        whole["timeline"][part][name] += column
            if not page["timeline_links"]:
                return {**whole, "timeline_links": []}
            marker = {"marker": found["rows"]["id"][-1]}

    def each(
        self,
        *,
        name: str | None = None,
        state: str | None = None,
        series: str | None = None,
        all_projects: bool = False,
    ) -> Iterator[Lease]:
        """As `all`, page after page as they are asked for."""
        return self._each(Lease, name=name, state=state, series=series, all_projects=all_projects)

    def change(
        self, lease_id: str, change: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneLease]:
        """Extend, shrink, grow, move or rename it in one step. Sends its generation."""
        return self._send("PATCH", f"/{lease_id}", {"lease": change}, OneLease, dry_run=dry_run)

    def cancel(self, lease_id: str, generation: int, *, dry_run: bool = False) -> Reply:
        """Cancel it, or end it now if it has started; only if its generation is unchanged."""
        return self._delete(f"/{lease_id}", generation=generation, dry_run=dry_run)

    def events(self, lease_id: str) -> Answer[list[LeaseEvent]]:
        """The lease's events, in the order of time."""
        return self._all(LeaseEvent, f"/{lease_id}/events", "events")


class OfferCalls(Resource):
    """`/v1/offers`."""

    path, one, many = "/v1/offers", "offer", "offers"

    def _in_force(self, item: Mapping[str, Any]) -> bool:
        return bool(item["status"] == "offered")

    def _search(self, text: str, **params: str) -> str:
        """Also finds an offer that was accepted."""
        try:
            return super()._search(text, over="true", **params)
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
        return self._send("POST", "", {"offer_request": request}, Offers, dry_run=dry_run)

    def show(self, offer_id: str) -> Answer[Offer]:
        """One offer."""
        return self._get(Offer, f"/{offer_id}")

    def all(
        self,
        *,
        over: bool = False,
        since: str | None = None,
        until: str | None = None,
        all_projects: bool = False,
    ) -> Answer[Offers]:
        """Open offers, oldest first; with `over` also those that are over.

        With `since` and `until` those whose period overlaps the time from and to these.
        """
        between = {"from": since, "to": until}
        return self._listed(Offers, part=WHOLE, over=over, all_projects=all_projects, **between)

    def each(self, *, over: bool = False, all_projects: bool = False) -> Iterator[Offer]:
        """As `all`, page after page as they are asked for."""
        return self._each(Offer, over=over, all_projects=all_projects)

    def accept(
        self, offer_id: str, terms: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneLease]:
        """Accept it: it becomes a lease on these terms."""
        body = {"lease": terms}
        return self._send("POST", f"/{offer_id}/accept", body, OneLease, dry_run=dry_run)

    def withdraw(self, offer_id: str) -> Reply:
        """Withdraw it."""
        return self._delete(f"/{offer_id}")


class SeriesCalls(Resource):
    """`/v1/series`."""

    path, one, many = "/v1/series", "series", "series"

    def _in_force(self, item: Mapping[str, Any]) -> bool:
        return bool(item["status"] != "closed")

    def create(self, series: Mapping[str, Any], *, dry_run: bool = False) -> Answer[OneSeries]:
        """Request a series: every occurrence is granted, or the refusal is explained."""
        return self._send("POST", "", {"series": series}, OneSeries, dry_run=dry_run)

    def show(self, series_id: str) -> Answer[OneSeries]:
        """One series with its leases."""
        return self._get(OneSeries, f"/{series_id}", None)

    def all(self, *, name: str | None = None, all_projects: bool = False) -> Answer[list[Series]]:
        """Series of the caller's project, or of all projects, oldest first."""
        return self._all(Series, name=name, all_projects=all_projects)

    def rename(
        self, series_id: str, name: str, generation: int, *, dry_run: bool = False
    ) -> Answer[OneSeries]:
        """Rename it and its leases, if its generation is unchanged."""
        body = {"series": {"name": name, "generation": generation}}
        return self._send("PATCH", f"/{series_id}", body, OneSeries, dry_run=dry_run)

    def extend(
        self, series_id: str, extension: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneSeries]:
        """Add occurrences at the end. Sends its generation."""
        body = {"series": extension}
        return self._send("POST", f"/{series_id}/extend", body, OneSeries, dry_run=dry_run)

    def cancel(
        self,
        series_id: str,
        *,
        since: int | None = None,
        only: int | None = None,
        dry_run: bool = False,
    ) -> Answer[Cancelled]:
        """Cancel leases that have not started: all, from a number on, or one."""
        part = {"from": since, "only": only, "dry_run": dry_run}
        return whole(self._delete(f"/{series_id}", **part), Cancelled)


class WaitlistCalls(Resource):
    """`/v1/waitlist`, and leases that may wait."""

    path, one, many, noun = "/v1/waitlist", "entry", "entries", "waitlist entry"

    def _in_force(self, item: Mapping[str, Any]) -> bool:
        return bool(item["status"] == "waiting")

    def lease(
        self, lease: Mapping[str, Any], wait: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneLease] | Answer[WaitlistEntry]:
        """Request a lease that may wait: it is granted, or becomes an entry of the waitlist."""
        body = {"lease": {**lease, "wait": wait}}
        params = {"dry_run": "true"} if dry_run else {}
        reply = self._call("POST", "/v1/leases", body=body, params=params)
        if "entry" in reply.body:
            return answer(reply, "entry", WaitlistEntry)
        return whole(reply, OneLease)

    def show(self, entry_id: str) -> Answer[WaitlistEntry]:
        """One entry."""
        return self._get(WaitlistEntry, f"/{entry_id}")

    def all(
        self, *, status: str | None = None, all_projects: bool = False
    ) -> Answer[WaitlistEntries]:
        """Entries of the caller's project, or of all projects, oldest first."""
        return self._listed(WaitlistEntries, status=status, all_projects=all_projects)

    def cancel(self, entry_id: str) -> Reply:
        """Leave the waitlist."""
        return self._delete(f"/{entry_id}")
