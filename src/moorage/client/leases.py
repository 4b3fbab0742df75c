"""Leases: places granted for a later period."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client import lookup
from moorage.client.answer import Answer, answer, converted, dry, listed, whole
from moorage.client.errors import Missing
from moorage.wire.leases import Lease, LeaseEvent, Leases, OneLease

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.client.transport import Reply, Transport

_PATH = "/v1/leases"


class LeaseCalls:
    """`/v1/leases`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id for an id, a name, a handle (`L3`) or an id's beginning.

        A name means the lease that is not over, where others that were called so are.
        """
        if lookup.UUID.fullmatch(text):
            return text

        def choose(leases: Sequence[dict[str, Any]]) -> str:
            named = [one for one in leases if lookup.called(one, text, standing=_standing(one))]
            return lookup.pick("lease", text, named or leases)

        try:
            return lookup.search(self._transport, _PATH, "leases", choose)
        except Missing:
            waiting = {"status": "waiting"}
            entries = lookup.pages(self._transport, "/v1/waitlist", "entries", waiting)
            if any(text == one["name"] or one["id"].startswith(text) for one in entries):
                raise Missing("lease", f"{text} yet: it is on the waitlist") from None
            raise

    def create(self, lease: Mapping[str, Any], *, dry_run: bool = False) -> Answer[OneLease]:
        """Request a lease; it is granted with a proof, or refused with an explanation."""
        return _granted(self._call("POST", _PATH, body={"lease": lease}, params=dry(dry_run)))

    def show(self, lease_id: str) -> Answer[Lease]:
        """One lease."""
        return answer(self._call("GET", f"{_PATH}/{lease_id}"), "lease", Lease)

    def all(
        self,
        *,
        name: str | None = None,
        state: str | None = None,
        series: str | None = None,
        all_projects: bool = False,
    ) -> Answer[Leases]:
        """Leases of the caller's project, or of all projects, oldest first."""
        said = {
            "name": name,
            "state": state,
            "series": series,
            "all_projects": "true" if all_projects else None,
        }
        asked: dict[str, str | int] = {key: text for key, text in said.items() if text}
        pages = lookup.replies(self._call, _PATH, "leases", asked)
        return listed(pages, "leases", Leases)

    def change(
        self, lease_id: str, change: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[OneLease]:
        """Extend, shrink, grow, move or rename it in one step. Sends its generation."""
        reply = self._call(
            "PATCH", f"{_PATH}/{lease_id}", body={"lease": change}, params=dry(dry_run)
        )
        return _granted(reply)

    def cancel(self, lease_id: str, generation: int, *, dry_run: bool = False) -> Reply:
        """Cancel it, or end it now if it has started; only if its generation is unchanged."""
        return self._call(
            "DELETE",
            f"{_PATH}/{lease_id}",
            params=dry(dry_run),
            headers={"If-Match": f'"{generation}"'},
        )

    def events(self, lease_id: str) -> Answer[list[LeaseEvent]]:
        """The lease's events, in the order of time."""
        body = {"events": [*lookup.pages(self._transport, f"{_PATH}/{lease_id}/events", "events")]}
        return Answer(converted(body["events"], list[LeaseEvent]), body)


def _standing(one: Mapping[str, Any]) -> bool:
    return bool(one["status"] != "closed")


def _granted(reply: Reply) -> Answer[OneLease]:
    return whole(reply, OneLease)
