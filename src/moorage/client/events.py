"""Events, read or delivered to subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.client.resource import Resource
from moorage.wire.events import DeadLetter, Events, Subscription

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.client.resource import Answer


class EventCalls(Resource):
    """`/v1/events`."""

    path = "/v1/events"

    def page(  # noqa: PLR0913 - each filter of a listing has its name
        self,
        after: str | None = None,
        *,
        types: Sequence[str] = (),
        subjects: Sequence[str] = (),
        limit: int | None = None,
        wait: int = 0,
        all_projects: bool = False,
        project_id: str | None = None,
    ) -> Answer[Events]:
        """The next events after a cursor; `wait`: seconds to wait where there are none yet."""
        query: dict[str, object] = {"after": after, "type": ",".join(types)}
        query |= {"subject": ",".join(subjects) or None, "limit": limit, "wait": wait or None}
        query |= {"all_projects": all_projects, "project_id": project_id}
        return self._get(Events, "", None, **query)


class Subscriptions(Resource):
    """`/v1/subscriptions`."""

    path, one, many = "/v1/subscriptions", "subscription", "subscriptions"

    def create(self, body: Mapping[str, Any], *, dry_run: bool = False) -> Answer[Subscription]:
        """Create a subscription; only this answer has the secret."""
        body = {"subscription": body}
        return self._send("POST", "", body, Subscription, "subscription", dry_run=dry_run)

    def all(self, *, all_projects: bool = False) -> Answer[list[Subscription]]:
        """Subscriptions, oldest first."""
        return self._all(Subscription, all_projects=all_projects)

    def show(self, id_: str) -> Answer[Subscription]:
        """One subscription."""
        return self._get(Subscription, f"/{id_}")

    def delete(self, id_: str) -> None:
        """Delete it with its dead letters."""
        self._delete(f"/{id_}")

    def dead_letters(self, id_: str) -> Answer[list[DeadLetter]]:
        """Its dead letters, oldest first."""
        return self._all(DeadLetter, f"/{id_}/dead-letters", "dead_letters")

    def resend(
        self, id_: str, letters: Sequence[str] | None = None, *, dry_run: bool = False
    ) -> Answer[dict[str, Any]]:
        """Send dead letters once more: those named, or all."""
        body = {"resend": {} if letters is None else {"dead_letters": letters}}
        return self._send("POST", f"/{id_}/resend", body, dict[str, Any], dry_run=dry_run)
