"""The waitlist: leases that wait for capacity or quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client import lookup
from moorage.client.answer import Answer, answer, dry, listed, whole
from moorage.wire.leases import OneLease
from moorage.wire.waitlist import WaitlistEntries, WaitlistEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.client.transport import Reply, Transport

_PATH = "/v1/waitlist"


class WaitlistCalls:
    """`/v1/waitlist`, and leases that may wait."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id for an id, a name or an id's beginning.

        A name means the entry that waits still, where others were called so.
        """
        if lookup.UUID.fullmatch(text):
            return text

        def choose(entries: Sequence[dict[str, Any]]) -> str:
            waiting = [one for one in entries if one["status"] == "waiting"]
            named = [one for one in waiting if one["name"] == text]
            return lookup.pick("waitlist entry", text, named or entries)

        return lookup.search(self._transport, _PATH, "entries", choose)

    def lease(
        self, lease: Mapping[str, Any], wait: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneLease] | Answer[WaitlistEntry]:
        """Request a lease that may wait: it is granted, or becomes an entry of the waitlist."""
        body = {"lease": {**lease, "wait": dict(wait)}}
        reply = self._call("POST", "/v1/leases", body=body, params=dry(dry_run))
        if "entry" in reply.body:
            return answer(reply, "entry", WaitlistEntry)
        return whole(reply, OneLease)

    def show(self, entry_id: str) -> Answer[WaitlistEntry]:
        """One entry."""
        return answer(self._call("GET", f"{_PATH}/{entry_id}"), "entry", WaitlistEntry)

    def all(
        self, *, status: str | None = None, all_projects: bool = False
    ) -> Answer[WaitlistEntries]:
        """Entries of the caller's project, or of all projects, oldest first."""
        said = {"status": status, "all_projects": "true" if all_projects else None}
        asked: dict[str, str | int] = {key: text for key, text in said.items() if text}
        pages = lookup.replies(self._call, _PATH, "entries", asked)
        return listed(pages, "entries", WaitlistEntries)

    def cancel(self, entry_id: str) -> Reply:
        """Leave the waitlist."""
        return self._call("DELETE", f"{_PATH}/{entry_id}")
