"""`/v1/events` and `/v1/subscriptions`: events, read or delivered."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moorage.client import lookup
from moorage.client.answer import Answer, answer, converted, dry, whole
from moorage.wire.events import DeadLetter, Events, Subscription

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.client.transport import Reply, Transport

_PATH: Final = "/v1/subscriptions"


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
        return whole(reply, Events)


class Subscriptions:
    """`/v1/subscriptions`."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._transport = transport

    def find(self, text: str) -> str:
        """The id for an id, a name or an id's beginning."""
        if lookup.UUID.fullmatch(text):
            return text
        choose = partial(lookup.pick, "subscription", text)
        return lookup.search(self._transport, _PATH, "subscriptions", choose)

    def create(self, body: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Subscription]:
        """Create a subscription; only this answer has the secret."""
        reply = self._call("POST", _PATH, body={"subscription": body}, params=dry(dry_run))
        return answer(reply, "subscription", Subscription)

    def all(self, *, all_projects: bool = False) -> Answer[list[Subscription]]:
        """Subscriptions, oldest first."""
        params = {"all_projects": "true"} if all_projects else None
        found = [*lookup.pages(self._transport, _PATH, "subscriptions", params)]
        return Answer(converted(found, list[Subscription]), {"subscriptions": found})

    def show(self, id_: str) -> Answer[Subscription]:
        """One subscription."""
        return answer(self._call("GET", f"{_PATH}/{id_}"), "subscription", Subscription)

    def delete(self, id_: str) -> None:
        """Delete it with its dead letters."""
        self._call("DELETE", f"{_PATH}/{id_}")

    def dead_letters(self, id_: str) -> Answer[list[DeadLetter]]:
        """Its dead letters, oldest first."""
        found = [*lookup.pages(self._transport, f"{_PATH}/{id_}/dead-letters", "dead_letters")]
        return Answer(converted(found, list[DeadLetter]), {"dead_letters": found})

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
