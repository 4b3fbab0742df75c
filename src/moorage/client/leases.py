"""Leases: places promised for a later period."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from moorage.client import lookup, structs
from moorage.client.ensembles import answer, dry
from moorage.client.errors import Missing
from moorage.client.structs import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.client.transport import Reply, Transport

_PATH = "/v1/leases"


class Reservation(msgspec.Struct, frozen=True):
    """What a lease holds for one role; the numbers are None in listings."""

    id: str
    role: str
    resource_class: str = ""
    flavor: str | None = None
    count: int | None = None
    claimed: int | None = None
    remaining: int | None = None


class DisplacedConsumer(msgspec.Struct, frozen=True):
    """One that ends early for a lease; `declared_end` is the end it had before."""

    consumer: str
    project_id: str = ""
    end: str | None = None
    declared_end: str | None = None
    priority: int = 0


class Displaced(msgspec.Struct, frozen=True):
    """How many end early for a lease, and to operators who they are."""

    count: int = 0
    consumers: list[DisplacedConsumer] = []


class Occurrence(msgspec.Struct, frozen=True):
    """Which of a series a lease is."""

    series_id: str
    index: int


class MayYield(msgspec.Struct, frozen=True):
    """It may have to give up its places to a lease of a priority `above` this, `until` then."""

    above: int
    until: str


class PreemptedLease(msgspec.Struct, frozen=True):
    """A lease that gives up its places for another, and when it would fit next."""

    id: str
    name: str = ""
    project_id: str = ""
    priority: int = 0
    start: str = ""
    end: str = ""
    units: int = 0
    earliest_start: str | None = None
    earliest_end: str | None = None
    proved: bool = False


class Preempted(msgspec.Struct, frozen=True):
    """How many leases give up their places for another, and to operators which."""

    count: int = 0
    leases: list[PreemptedLease] = []


class Lease(msgspec.Struct, frozen=True):
    """A lease. `generation` is what a change must name; times are RFC 3339."""

    id: str
    name: str
    status: str
    start: str
    end: str
    handle: str = ""
    ensemble_id: str = ""
    decision_id: str = ""
    project_id: str = ""
    degraded: bool = False
    missing: int = 0
    proposal: dict[str, Any] | None = None
    generation: int = 0
    guarantee: str = ""
    lead: str = "PT0S"
    cleaning: str = "PT0S"
    expiry: str | None = None
    expires_at: str | None = None
    priority: int = 0
    before_start: list[str] = []
    on_start: list[str] = []
    before_end: list[str] = []
    on_end: list[str] = []
    binding: str = ""
    reservations: list[Reservation] = []
    occurrence: Occurrence | None = None
    displaced: Displaced = Displaced()
    notified: int | None = None
    proposed_places: dict[str, str] = {}
    may_yield: MayYield | None = None
    outcome: str | None = None
    waitlist_entry: str | None = None


class Granted(msgspec.Struct, frozen=True):
    """A lease granted or changed (or, in a dry run, only judged), with its placement."""

    lease: Lease
    decision: structs.Decision | None = None
    revision: int = 0
    preempted: Preempted = Preempted()


class Leases(msgspec.Struct, frozen=True):
    """Every lease asked for, and the service's time when they were read."""

    leases: list[Lease]
    computed_at: str


class Hearer(msgspec.Struct, frozen=True):
    """A subscription that wants a notice: it has `heard`, it is `waiting`, or it is `given_up`."""

    id: str
    name: str = ""
    status: str = ""


class Audience(msgspec.Struct, frozen=True):
    """Who a notice is for; `subscriptions` is None where that is known no more."""

    webhook: str = "none"
    subscriptions: list[Hearer] | None = None


class Event(msgspec.Struct, frozen=True):
    """Something that happens because of a lease, or has happened."""

    id: str
    kind: str
    due: str
    status: str
    attempts: int = 0
    action: str | None = None
    told: Audience | None = None
    outcome: str | None = None


class LeaseCalls:
    """`/v1/leases`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id that an id, a name, a handle (`L3`) or an id's beginning means.

        A name means the lease that is not over, where others that were called so are.
        """
        if lookup.UUID.fullmatch(text):
            return text
        everything = list(lookup.pages(self._transport, _PATH, "leases"))
        named = [one for one in everything if lookup.called(one, text, standing=_standing(one))]
        try:
            return lookup.pick("lease", text, named or everything)
        except Missing:
            waiting = {"status": "waiting"}
            entries = lookup.pages(self._transport, "/v1/waitlist", "entries", waiting)
            if any(text == one["name"] or one["id"].startswith(text) for one in entries):
                raise Missing("lease", f"{text} yet: it is on the waitlist") from None
            raise

    def create(self, lease: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Granted]:
        """Ask for a lease; it is granted with a proof, or refused with an explanation."""
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
        items: list[Any] = []
        while True:
            reply = self._call("GET", _PATH, params={"limit": lookup.PAGE, **asked})
            items += reply.body["leases"]
            if len(reply.body["leases"]) < lookup.PAGE:
                break
            asked["marker"] = items[-1]["id"]
        body = {"leases": items, "computed_at": reply.body["computed_at"]}
        return Answer(msgspec.convert(body, Leases, strict=False), body, reply.request_id)

    def change(
        self, lease_id: str, change: Mapping[str, Any], *, dry_run: bool = False
    ) -> Answer[Granted]:
        """Extend, shrink, grow, move or rename it, in one step. Names its generation."""
        reply = self._call(
            "PATCH", f"{_PATH}/{lease_id}", body={"lease": change}, params=dry(dry_run)
        )
        return _granted(reply)

    def cancel(self, lease_id: str, generation: int, *, dry_run: bool = False) -> Reply:
        """Give it back; one that has started ends now. If it is still at that generation."""
        return self._call(
            "DELETE",
            f"{_PATH}/{lease_id}",
            params=dry(dry_run),
            headers={"If-Match": f'"{generation}"'},
        )

    def events(self, lease_id: str) -> Answer[list[Event]]:
        """What happens because of it and when, in the order of time."""
        body = {"events": [*lookup.pages(self._transport, f"{_PATH}/{lease_id}/events", "events")]}
        return Answer(msgspec.convert(body["events"], list[Event], strict=False), body)


def _standing(one: Mapping[str, Any]) -> bool:
    return bool(one["status"] != "closed")


def _granted(reply: Reply) -> Answer[Granted]:
    return Answer(msgspec.convert(reply.body, Granted, strict=False), reply.body, reply.request_id)
