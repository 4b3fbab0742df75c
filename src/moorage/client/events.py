"""`/v1/events` and `/v1/subscriptions`: what happened, read or delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.client import lookup
from moorage.client.ensembles import answer, dry
from moorage.client.structs import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.client.transport import Reply, Transport

_PATH: Final = "/v1/subscriptions"


class Event(msgspec.Struct, frozen=True):
    """Something that happened."""

    id: str
    type: str
    at: str
    project_id: str = ""
    subject: str = ""
    generation: int = 0
    body: dict[str, Any] = {}


class Events(msgspec.Struct, frozen=True):
    """A page of events, and where the next one begins."""

    events: list[Event]
    cursor: str
    more: bool = False


class Subscription(msgspec.Struct, frozen=True):
    """Which events go where, and how far that has come."""

    id: str
    name: str = ""
    project_id: str = ""
    events: list[str] = []
    url: str = ""
    status: str = ""
    lease_id: str | None = None
    ensemble_id: str | None = None
    role: str | None = None
    below: int | None = None
    above_share: float | None = None
    flavor: str | None = None
    resource_class: str | None = None
    zone: str | None = None
    before: str | None = None
    edge: str = "end"
    delivered: int = 0
    given_up: int = 0
    dead_letters: int = 0
    attempts: int = 0
    failing_since: str | None = None
    next_attempt: str | None = None
    outcome: str | None = None
    created_at: str | None = None
    secret: str | None = None


class DeadLetter(msgspec.Struct, frozen=True):
    """An event that was given up."""

    id: str
    event: Event
    problem: str = ""
    attempts: int = 0
    given_up_at: str | None = None
    queued: bool = False


class EventCalls:
    """`/v1/events`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    def page(
        self,
        after: str | None = None,
        *,
        types: Sequence[str] = (),
        subject: str | None = None,
        limit: int | None = None,
        wait: int = 0,
        all_projects: bool = False,
    ) -> Answer[Events]:
        """The next events after a cursor; `wait`: seconds to wait where there are none yet."""
        asked = {
            "after": after,
            "type": ",".join(types) or None,
            "subject": subject,
            "limit": limit,
            "wait": wait or None,
            "all_projects": "true" if all_projects else None,
        }
        given: dict[str, str | int] = {
            name: value for name, value in asked.items() if value is not None
        }
        reply = self._call("GET", "/v1/events", params=given)
        return Answer(msgspec.convert(reply.body, Events, strict=False), reply.body)


class Subscriptions:
    """`/v1/subscriptions`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id that an id, a name or an id's beginning means."""
        if lookup.UUID.fullmatch(text):
            return text
        every = lookup.pages(self._transport, _PATH, "subscriptions")
        return lookup.pick("subscription", text, every)

    def create(self, body: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Subscription]:
        """Subscribe; only this answer says the secret."""
        reply = self._call("POST", _PATH, body={"subscription": body}, params=dry(dry_run))
        return answer(reply, "subscription", Subscription)

    def all(self, *, all_projects: bool = False) -> Answer[list[Subscription]]:
        """Subscriptions, oldest first."""
        params = {"all_projects": "true"} if all_projects else None
        found = [*lookup.pages(self._transport, _PATH, "subscriptions", params)]
        return Answer(msgspec.convert(found, list[Subscription]), {"subscriptions": found})

    def show(self, id_: str) -> Answer[Subscription]:
        """One subscription."""
        return answer(self._call("GET", f"{_PATH}/{id_}"), "subscription", Subscription)

    def delete(self, id_: str) -> None:
        """Forget it, with its dead letters."""
        self._call("DELETE", f"{_PATH}/{id_}")

    def dead_letters(self, id_: str) -> Answer[list[DeadLetter]]:
        """What was given up, oldest first."""
        found = [*lookup.pages(self._transport, f"{_PATH}/{id_}/dead-letters", "dead_letters")]
        return Answer(msgspec.convert(found, list[DeadLetter]), {"dead_letters": found})

    def resend(
        self, id_: str, letters: Sequence[str] | None = None, *, dry_run: bool = False
    ) -> Reply:
        """Send dead letters once more: those named, or all."""
        return self._call(
            "POST",
            f"{_PATH}/{id_}/resend",
            body={"resend": {} if letters is None else {"dead_letters": list(letters)}},
            params=dry(dry_run),
        )
