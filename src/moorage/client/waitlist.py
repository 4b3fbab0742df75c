"""The waitlist: leases that wait for what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from moorage.client import lookup
from moorage.client.ensembles import answer, dry
from moorage.client.leases import Granted
from moorage.client.structs import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Reply, Transport

_PATH = "/v1/waitlist"


class Estimate(msgspec.Struct, frozen=True):
    """The earliest window in which it would fit as the ledger stands. No promise."""

    start: str
    end: str
    proved: bool = False
    in_range: bool = False
    current: bool = True


class Entry(msgspec.Struct, frozen=True):
    """A lease that waits; times are RFC 3339."""

    id: str
    name: str
    status: str
    earliest_start: str
    latest_start: str
    until: str
    duration: str
    project_id: str = ""
    generation: int = 0
    priority: int = 0
    entered_at: str = ""
    before: int | None = None
    lead: str = "PT0S"
    cleaning: str = "PT0S"
    places: int = 0
    waits_for: str = ""
    why: str = ""
    estimate: Estimate | None = None
    estimate_note: str | None = None
    ensemble_id: str | None = None
    lease_id: str | None = None


class Entries(msgspec.Struct, frozen=True):
    """Every entry asked for, and the service's time when they were read."""

    entries: list[Entry]
    computed_at: str


class WaitlistCalls:
    """`/v1/waitlist`, and leases that may wait."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id that an id, a name or an id's beginning means.

        A name means the entry that waits still, where others were called so.
        """
        if lookup.UUID.fullmatch(text):
            return text
        everything = list(lookup.pages(self._transport, _PATH, "entries"))
        waiting = [one for one in everything if one["status"] == "waiting"]
        named = [one for one in waiting if one["name"] == text]
        return lookup.pick("waitlist entry", text, named or everything)

    def lease(
        self, lease: Mapping[str, Any], wait: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Granted] | Answer[Entry]:
        """Ask for a lease that may wait: it is granted, or an entry of the waitlist."""
        body = {"lease": {**lease, "wait": dict(wait)}}
        reply = self._call("POST", "/v1/leases", body=body, params=dry(dry_run))
        if "entry" in reply.body:
            return answer(reply, "entry", Entry)
        granted = msgspec.convert(reply.body, Granted, strict=False)
        return Answer(granted, reply.body, reply.request_id)

    def show(self, entry_id: str) -> Answer[Entry]:
        """One entry."""
        return answer(self._call("GET", f"{_PATH}/{entry_id}"), "entry", Entry)

    def all(self, *, status: str | None = None, all_projects: bool = False) -> Answer[Entries]:
        """Entries of the caller's project, or of all projects, oldest first."""
        said = {"status": status, "all_projects": "true" if all_projects else None}
        asked: dict[str, str | int] = {key: text for key, text in said.items() if text}
        items: list[Any] = []
        while True:
            reply = self._call("GET", _PATH, params={"limit": lookup.PAGE, **asked})
            items += reply.body["entries"]
            if len(reply.body["entries"]) < lookup.PAGE:
                break
            asked["marker"] = items[-1]["id"]
        body = {"entries": items, "computed_at": reply.body["computed_at"]}
        return Answer(msgspec.convert(body, Entries, strict=False), body, reply.request_id)

    def cancel(self, entry_id: str) -> Reply:
        """Wait no longer."""
        return self._call("DELETE", f"{_PATH}/{entry_id}")
